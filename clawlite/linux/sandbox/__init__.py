"""Processes of their own for tools, with the least rights that the kernel can give (CKP 5.7).

Imports: files, io.
Used by: admin, tools.
"""

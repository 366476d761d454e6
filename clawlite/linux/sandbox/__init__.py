"""Processes of their own for tools, with the least rights that the kernel can give (CKP 5.7): what
a call may do, the processes that run and watch it, and what they tell the agent.

Imports: confinement, files, io.
Used by: doctor, mcp, tools.
"""

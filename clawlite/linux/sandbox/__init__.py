"""Separate processes for tools, with the fewest rights that the kernel can give (CKP 5.7): what a
call may do, the processes that run and watch it, and how they report to the agent.

Imports: confinement, files, io, maker.
Used by: doctor, mcp, tools.
"""

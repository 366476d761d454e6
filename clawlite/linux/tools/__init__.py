"""Where a tool call runs and what the built-in tools do.

Imports: confinement, files, io, maker, mcp, net, sandbox, secrets.
Used by: runtime.
"""

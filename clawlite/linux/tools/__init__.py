"""Where a tool call runs and what the built-in tools do.

Imports: files, hardware, io, net, sandbox, secrets.
Used by: runtime.
"""

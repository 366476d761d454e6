"""MCP servers of one agent: processes that live as long as it does, and calls of their tools.

Imports: io, sandbox.
Used by: tools.
"""

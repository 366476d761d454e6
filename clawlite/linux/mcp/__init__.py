"""MCP servers of one agent: processes that live as long as it does, and calls of their tools;
and the agent's own tools for MCP clients.

Imports: io, sandbox.
Used by: admin, tools.
"""

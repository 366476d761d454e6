"""MCP servers of one agent, processes that live as long as it does or servers at a URL, and calls
of their tools, what they ask a person; and the agent's own tools for MCP clients, on stdio or over
HTTP.

Imports: io, net, sandbox.
Used by: admin, tools.
"""

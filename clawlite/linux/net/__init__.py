"""Connections to servers: name look-up, proxies, TLS, the one door to the network of a sandboxed
tool, and the small HTTP server of webhooks and MCP clients.

Imports: no other room.
Used by: audit, channels, mcp, runtime, swarm, telemetry, tools.
"""

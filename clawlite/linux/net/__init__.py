"""Connections to servers: name look-up, proxies, TLS, the one door to the network of a sandboxed
tool, and the small HTTP server of webhooks and MCP clients.

Imports: secrets.
Used by: approvals, audit, channels, mcp, runtime, swarm, telemetry, tools.
"""

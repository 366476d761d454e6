"""The page: a process of its own in front of the agents of this machine, for people in a browser
and for operators over HTTP and WebSocket (docs/page.md).

Imports: base, gateway_operators, proxy, systems.
Used by: cli.
"""

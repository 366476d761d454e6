"""The A2A door: an agent for other agents, over HTTP (docs/a2a.md).

Imports: manifest, proxy, systems.
Used by: gateway.
"""

"""The Model Context Protocol: a client, over HTTP too, when its server is started and ended, what
of a server's tools is pinned, a server of the agent's own, and objects of tools.py that offer
tools.

Imports: no other room.
Used by: host, linux, teach.
"""

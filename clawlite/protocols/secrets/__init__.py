"""The files of tokens: the people of an agent or a gateway, and which doors a token opens.

Imports: no other room.
Used by: host, linux.
"""

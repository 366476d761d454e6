"""Calls and feeds of services (docs/services.md).

Imports: no other room.
Used by: host, linux.
"""

"""Text that a person may read at a terminal: JSON with escapes, and a text that comes in pieces.

Imports: no other room.
Used by: host, linux.
"""

"""Whether an answer only repeats itself.

Imports: no other room.
Used by: host, linux.
"""

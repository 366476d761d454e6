"""What an image may require of the machine that runs it: abilities, provider APIs, kinds of
channels and exporters.

Imports: no other room.
Used by: host, linux.
"""

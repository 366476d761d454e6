"""Where a connection may go, and how a person signs in (OAuth 2.0, device authorization).

Imports: sandbox.
Used by: host, linux.
"""

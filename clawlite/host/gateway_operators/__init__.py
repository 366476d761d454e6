"""Operators of boards behind a gateway: people at the page reach each board by a socket, as they
reach an agent of this machine, and share the one line to it (docs/page.md).

Imports: base.
Used by: gateway, page.
"""

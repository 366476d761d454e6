"""Channels of boards that a gateway carries: it speaks to their platforms, and the boards decide.

Imports: systems.
Used by: gateway.
"""

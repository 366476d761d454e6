"""Policies folded into one decision for each tool, and what policies want scanned and audited (CKP
5.8).

Imports: base, image, models.
Used by: builder, channels, compiler, identity, manifest, mcp, providers, tools.
"""

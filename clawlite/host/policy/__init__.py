"""Policies folded into one decision for each tool, and what policies want scanned and audited (CKP
5.8).

Imports: base, models.
Used by: builder, compiler, fit, manifest, mcp, providers.
"""

"""The Memory of a manifest and its settings (CKP 5.6).

Imports: base, models, providers, sandbox.
Used by: builder, fit, manifest.
"""

"""The documents that a manifest refers to: read, followed, fetched from registries and pinned.

Imports: base, models, schema.
Used by: builder, compiler, fit, manifest, providers, services, tools.
"""

"""The documents that a manifest refers to: read, followed, fetched from registries and pinned.

Imports: base, models, schema.
Used by: builder, compiler, drivers, fit, manifest, mcp, providers, services, tools.
"""

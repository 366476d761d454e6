"""The documents that a manifest refers to: read, followed, fetched from registries and pinned.

Imports: base, models, schema.
Used by: builder, drivers, hardware, manifest, mcp, providers, sandbox, services, skills, tools.
"""

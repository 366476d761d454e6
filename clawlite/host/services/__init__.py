"""Services of a manifest: their descriptors, what of them is granted, and how it is executed.

Imports: base, documents, mcp, models, sandbox, schema, skills, tools.
Used by: builder, manifest.
"""

"""The Sandbox of a manifest, and the credentials of its tools (CKP 5.7).

Imports: base, boards, documents, models, schema.
Used by: builder, compiler, identity, manifest, mcp, memory, services, skills, tools.
"""

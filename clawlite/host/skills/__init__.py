"""The Skills of a manifest, and its composite tools (CKP 5.5).

Imports: base, documents, models, providers, sandbox.
Used by: builder, compiler, services, tools, world_models.
"""

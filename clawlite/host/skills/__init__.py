"""The Skills of a manifest, and its composite tools (CKP 5.5).

Imports: base, documents, models, providers, sandbox, tools.
Used by: builder, manifest, services, world_models.
"""

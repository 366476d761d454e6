"""MCP servers of a manifest: started when it is built, their tools listed and pinned.

Imports: base, documents, models, policy, providers, sandbox, schema, systems.
Used by: builder, manifest, services, tools.
"""

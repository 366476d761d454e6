"""Providers of a manifest: their order, the requests prepared for them, reflex rules and recorded
turns (CKP 5.2).

Imports: base, documents, image, models, policy, schema.
Used by: builder, fit, identity, manifest, mcp, memory, projects, rules, skills, swarm, telemetry,
tools, world_models.
"""

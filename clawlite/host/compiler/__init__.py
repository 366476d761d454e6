"""The back end: a checked Manifest becomes the sections of an image.

Imports: base, channels, documents, image, manifest, mcp, memory, models, policy, providers, rules,
schema, services, swarm, telemetry, tools.
Used by: builder, fit, gateway.
"""

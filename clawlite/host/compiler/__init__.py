"""The back end: a checked Manifest becomes the sections of an image, feature by feature.

Imports: base, channels, hardware, image, manifest, mcp, memory, models, policy, providers, rules,
sandbox, schema, services, skills, swarm, telemetry, tools, world_models.
Used by: builder, fit, gateway.
"""

"""The back end: a checked Manifest becomes the sections of an image.

Imports: channels, documents, image, manifest, mcp, memory, policy, providers, rules, schema,
services, swarm, telemetry, tools.
Used by: bench, builder, fit, gateway.
"""

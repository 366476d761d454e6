"""The back end: a checked Manifest becomes the sections of an image, feature by feature.

Imports: image, manifest, policy, sandbox, schema, tools.
Used by: builder, gateway.
"""

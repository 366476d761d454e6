"""The Telemetry of a manifest (CKP 5.10).

Imports: models, providers, swarm, tools.
Used by: compiler, manifest.
"""

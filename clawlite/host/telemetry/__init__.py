"""The Telemetry of a manifest (CKP 5.10).

Imports: models, providers, swarm, world_models.
Used by: manifest.
"""

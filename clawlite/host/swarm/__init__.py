"""The Swarm of a manifest (CKP 5.9).

Imports: base, models, providers.
Used by: identity, manifest, telemetry.
"""

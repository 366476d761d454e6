"""The Swarm of a manifest (CKP 5.9).

Imports: base, providers.
Used by: compiler, manifest, telemetry.
"""

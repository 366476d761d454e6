"""The WorldModels of a manifest (CKP 0.3.0).

Imports: base, models, providers, skills.
Used by: manifest, telemetry.
"""

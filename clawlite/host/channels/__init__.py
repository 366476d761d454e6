"""Channels of a manifest and the settings that belong to them (CKP 5.3).

Imports: base, models.
Used by: compiler, manifest, rules.
"""

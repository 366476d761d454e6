"""Channels of a manifest and the settings that belong to them (CKP 5.3).

Imports: base, models, policy.
Used by: identity, manifest, rules.
"""

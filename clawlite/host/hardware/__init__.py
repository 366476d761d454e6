"""Pins, buses and simulated devices of clawlite.toml, and whether a board has them.

Imports: base, boards, documents, models.
Used by: builder, manifest, projects, rules, wiring.
"""

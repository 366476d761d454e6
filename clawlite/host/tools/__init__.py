"""Tools of a manifest, and the functions and tool providers of tools.py (CKP 5.4).

Imports: base, boards, documents, drivers, firmware, image, mcp, models, policy, providers, sandbox,
schema, skills, systems.
Used by: compiler, manifest, rules.
"""

"""Tools of a manifest, and the functions and tool providers of tools.py (CKP 5.4).

Imports: base, boards, documents, drivers, firmware, image, mcp, models, policy, providers, sandbox,
schema, systems.
Used by: builder, compiler, manifest, rules, services, skills.
"""

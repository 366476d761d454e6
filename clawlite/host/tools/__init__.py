"""Tools, skills, sandboxes, buses and credentials of a manifest, and the functions and tool
providers of tools.py (CKP 5.4, 5.5, 5.7).

Imports: base, boards, documents, drivers, firmware, mcp, models, providers, schema, systems.
Used by: builder, compiler, fit, manifest, memory, rules, services, telemetry, wiring.
"""

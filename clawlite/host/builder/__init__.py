"""The work behind `clawlite check`, `build`, `add`, `discover`, `schema` and `tools`.

Imports: base, boards, compiler, documents, drivers, fit, image, manifest, mcp, models, policy,
providers, rules, sandbox, services, skills.
Used by: bench, cli, flash, projects.
"""

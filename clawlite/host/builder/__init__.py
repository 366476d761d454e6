"""The work behind `clawlite check`, `build`, `add`, `discover`, `schema` and `tools`.

Imports: base, boards, compiler, documents, drivers, fit, hardware, image, manifest, mcp, memory,
models, policy, providers, rules, sandbox, services, skills, tools.
Used by: bench, cli, flash, projects.
"""

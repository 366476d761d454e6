"""The work behind `clawlite check`, `build`, `add`, `discover` and `tools`.

Imports: base, boards, compiler, documents, drivers, fit, image, manifest, mcp, policy, services,
tools.
Used by: bench, cli, flash.
"""

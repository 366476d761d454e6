"""The work behind `clawlite check`, `build`, `discover` and `tools`.

Imports: base, boards, compiler, documents, fit, image, manifest, mcp, policy, services,
tools.
Used by: bench, cli, flash.
"""

"""The work behind `clawlite check`, `build` and `tools`.

Imports: base, boards, compiler, documents, fit, image, manifest, tools.
Used by: bench, cli, flash.
"""

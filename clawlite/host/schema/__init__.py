"""JSON Schema and regular expressions, compiled to the tables that `clawlite/core` runs.

Imports: base.
Used by: compiler, documents, mcp, providers, sandbox, services, tools.
"""

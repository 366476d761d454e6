"""The grammar of the sentences by which people teach rules; core/teach has the rows that become
rules.

Imports: mcp.
Used by: linux.
"""

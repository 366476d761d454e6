"""What the rows of benchmarks are held to: one table, which is data, and who reads it.

Imports: no other room.
Used by: bench.
"""

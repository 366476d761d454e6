"""The targets of the benchmarks: one table, which is data, and the code that reads it.

Imports: no other room.
Used by: bench.
"""

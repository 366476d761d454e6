"""The record of what was decided and what ran, in a chain of hashes (CKP 5.8).

Imports: files, io, net.
Used by: admin, monitor, records, runtime.
"""

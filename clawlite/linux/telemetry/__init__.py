"""Events and metrics of an agent, and the exporters that carry them away (CKP 5.10).

Imports: files, io, net, secrets.
Used by: runtime.
"""

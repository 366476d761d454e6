"""Events and metrics of an agent, and the exporters that carry them away (CKP 5.10).
A new exporter goes to exporters.py, or into a file of its own beside otlp.py that exporters.py
names.

Imports: files, io, net.
Used by: runtime.
"""

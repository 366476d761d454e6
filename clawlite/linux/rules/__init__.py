"""Readings, and rules that begin by themselves (clawlite/core/rules): they run beside the loop, and
each act is a tool call through the one pipeline.

Imports: files, hardware, io, secrets.
Used by: admin, monitor, runtime.
"""

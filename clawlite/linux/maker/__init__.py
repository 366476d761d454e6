"""The maker's own code: tools.py and the modules beside it, read, checked against the image, and
run, in the agent or in a process of their own.

Imports: files, io.
Used by: runtime, sandbox, tools.
"""

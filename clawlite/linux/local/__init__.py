"""The local model: which of the agent's tools a sentence asks for, found on this machine without a
network.  Engine and weights are a stranger's native code: they run in a confined process, and what
they say is compared with the sentence before anything is called (docs/local.md).

Imports: confinement, files, io, terminal.
Used by: admin, doctor, runtime.
"""

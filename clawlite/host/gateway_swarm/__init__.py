"""The swarms of a gateway's devices: whether they are stopped, and whose members the devices are.

Imports: systems.
Used by: gateway.
"""

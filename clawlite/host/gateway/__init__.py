"""Keys and network for devices that have neither.

Imports: base, compiler, console, manifest, proxy, serial, sim.
Used by: cli.
"""

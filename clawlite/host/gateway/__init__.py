"""Keys and network for devices that have neither.

Imports: base, compiler, console, manifest, serial, sim.
Used by: cli.
"""

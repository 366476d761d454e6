"""Keys and network for devices that have neither.

Imports: a2a, base, compiler, console, gateway_swarm, manifest, proxy, serial, sim.
Used by: cli.
"""

"""Keys and network for devices that have neither.

Imports: a2a, base, board_console, compiler, gateway_channels, gateway_operators, gateway_swarm,
image, manifest, proxy, serial, sim, systems.
Used by: cli.
"""

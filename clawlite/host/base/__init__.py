"""What every room of the host needs: problems with their file and line, text formats, paths, data
files and the progress of a long run.

Imports: no other room.
Used by: bench, board_console, boards, builder, channels, cli, documents, drivers, firmware, fit,
flash, gateway, gateway_operators, hardware, identity, image, manifest, mcp, memory, models, page,
policy, projects, providers, proxy, rules, sandbox, schema, serial, services, sim, skills, swarm,
tools, wiring, world_models.
"""

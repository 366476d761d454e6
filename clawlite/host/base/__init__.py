"""What every room of the host needs: problems with their file and line, text formats, paths, data
files and the progress of a long run.

Imports: no other room.
Used by: bench, board_console, boards, builder, channels, cli, documents, firmware, fit, flash,
gateway, image, manifest, memory, models, policy, projects, providers, proxy, schema, serial,
services, sim, tools, wiring.
"""

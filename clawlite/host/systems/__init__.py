"""What differs between Linux, macOS and Windows for a process: what a loop can wait for, and how a
process and what it started are ended.

Imports: no other room.
Used by: a2a, board_console, gateway, gateway_channels, gateway_swarm, mcp, page, serial, tools.
"""

"""The sandbox of an agent, as its image has it, and the limits that its manifest leaves out (CKP
5.7).

Imports: no other room.
Used by: host, linux, net.
"""

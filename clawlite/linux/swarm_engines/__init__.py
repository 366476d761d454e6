"""The engines of swarms beyond one machine: Redis and NATS, each in a thread of its own,
behind one small interface (CKP 5.9).

Imports: files, net.
Used by: swarm, swarm_commands.
"""

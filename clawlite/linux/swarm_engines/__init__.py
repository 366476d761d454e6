"""The engines of swarms beyond one machine: Redis, NATS and MQTT brokers, each in a thread of its
own, behind one small interface (CKP 5.9).

Imports: files, io, net.
Used by: swarm, swarm_commands.
"""

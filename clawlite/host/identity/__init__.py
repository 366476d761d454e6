"""The identity of an agent, and the numbers of all its parts.

Imports: base, channels, image, models, policy, providers, sandbox, swarm.
Used by: manifest.
"""

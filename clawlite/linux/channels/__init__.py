"""Who speaks to an agent beside its console: schedules, webhooks, Telegram and MQTT topics (CKP
5.3).

Imports: files, io, memory, net, secrets.
Used by: admin, runtime, swarm.
"""

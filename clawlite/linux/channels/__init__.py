"""Who speaks to an agent beside its console: schedules, webhooks, Telegram and MQTT topics (CKP
5.3).  telegram.py, mqtt.py, webhook.py and cron.py speak to the outside.  Each file of the room may
import the other files of this room, core and protocols, and the rooms of the next line, and nothing
else of clawlite (tests/test_layers.py).

Imports: approvals, files, io, memory, net, secrets.
Used by: admin, runtime.
"""

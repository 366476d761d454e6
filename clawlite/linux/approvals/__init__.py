"""Who is asked for the approvals that wait, and who is told how they ended (docs/channels.md):
approvers.py asks the admins of all channels, buttons.py knows the buttons below a question, and
notify.py sends a notice elsewhere.

Imports: io, net.
Used by: channels.
"""

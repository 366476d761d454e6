"""The agents that work together, the methods by which one gives another a task, how many reports
become one, and which tasks wait for each other (CKP 5.9).

Imports: session.
Used by: host, linux.
"""

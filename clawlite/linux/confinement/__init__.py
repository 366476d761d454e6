"""The kernel's means to confine a process, one file for each: namespaces, Landlock, system call
filters, control groups, limits.  The room sandbox decides which call gets which of them.

Imports: files.
Used by: doctor, sandbox, swarm_commands, tools.
"""

"""What the kernel is asked for to confine a process, one file for each means: namespaces, Landlock,
system call filters, control groups, limits.  Which call gets which of them is the sandbox's.

Imports: no other room.
Used by: sandbox, swarm_commands.
"""

"""Run a program on a kernel that gives it no user namespaces, as some systems do: ``python
without_userns.py PROGRAM [ARGUMENT ...]``.
"""

import errno
import os
import sys

from clawlite.linux.confinement import seccomp, syscalls

program = seccomp._Program(syscalls.MACHINE)
program.refuse_bits("clone", 0, 0x10000000)  # CLONE_NEWUSER
program.refuse_bits("unshare", 0, 0x10000000)
program.refuse("clone3", errno.ENOSYS)
syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
seccomp.install(program.code())
os.execv(sys.argv[1], sys.argv[1:])

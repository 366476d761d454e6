"""Whether this system has the kernel whose means confine tools."""

import sys

from clawlite.core.base.errors import SandboxDenied

IS_LINUX = sys.platform == "linux"


def check_kernel():
    """Raise ``SandboxDenied`` on a system that is not Linux."""
    if IS_LINUX:
        return
    name = "macOS" if sys.platform == "darwin" else sys.platform
    raise SandboxDenied(
        "sandbox level process needs Linux: what contains a tool (namespaces, Landlock, seccomp) "
        "is in its kernel, and this is %s" % name,
        "run this agent on Linux or a Raspberry Pi, or try it here with sandbox level none, which "
        "contains nothing",
        {"reason": "no sandbox"},
    )

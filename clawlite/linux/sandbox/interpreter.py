"""Why a program that is there cannot be started: a script's interpreter is not there, or a loader.
It looks from where it is called: in a sandbox, at what that shows.
"""

import os

from clawlite.protocols.mcp.script_line import MAX_LINE, interpreter, no_interpreter

_DEEPEST = 4  # scripts that begin with scripts: the kernel follows no more


def missing_interpreter(program: str, path: str, has_failed: bool = False):
    """Return (message, hint) when *program* needs what is not there, else None.

    path        PATH of the program
    has_failed  the kernel says that something does not exist, or may not be started.  Before it is
                asked, only a name that env would not find is told: env itself starts well
    """
    script = _find(program, path)
    for _ in range(_DEEPEST):
        head = _head(script)
        if head is None:
            return None
        asked, name = interpreter(head)
        if not asked:
            break
        if name and not _find(name, path):
            return no_interpreter(script, asked, name)
        if not name and has_failed and _head(asked) is None:
            return no_interpreter(script, asked, "")
        script = _find(name, path) if name else asked
    is_elf = has_failed and head.startswith(b"\x7fELF")
    return no_interpreter(script, "", "") if is_elf else None


def _find(program: str, path: str) -> str:
    """Return the path of *program*, as execvp looks for it; "" when there is none."""
    if "/" in program:
        return program
    for folder in path.split(":"):
        one = os.path.join(folder, program)
        if os.access(one, os.X_OK) and os.path.isfile(one):
            return one
    return ""


def _head(path: str):
    """Return the first bytes of a file that may be run, None when it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(fd, MAX_LINE)
    except OSError:
        return None
    finally:
        os.close(fd)

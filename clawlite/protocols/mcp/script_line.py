"""What the first line of a script (``#!``) starts, and the error where that is not there.  The
kernel calls such a script itself a file that does not exist.  No I/O: the caller has read the line.
"""

MAX_LINE = 256  # bytes that the kernel looks at (BINPRM_BUF_SIZE)


def interpreter(head: bytes) -> tuple:
    """Return (program, name) of a script that begins with *head*: the program that the kernel
    starts, and the one that it looks for in PATH where it is env, else "".  ("", ""): no script.
    """
    if not head.startswith(b"#!"):
        return "", ""
    line = head[2:MAX_LINE].split(b"\n")[0]
    words = line.decode("utf-8", "replace").strip(" \t").split(None, 1)
    if not words:
        return "", ""
    program = words[0] if len(words) > 1 else words[0] + ("\r" if line.endswith(b"\r") else "")
    if program.rsplit("/", 1)[-1] != "env" or len(words) < 2:
        return program, ""
    for word in words[1].split():
        # -S node --flag, and settings of variables before the name
        if not word.startswith("-") and "=" not in word:
            return program, word
    return program, ""


def no_interpreter(script: str, program: str, name: str) -> tuple:
    """Return (message, hint) for *script*, whose *program*, or *name* in PATH, is not there.

    program  "" where it is no script: what loads it is not there
    """
    if not program:
        message = "%s is there, but the loader that it needs is not" % script
        return message, "install what was made for this machine and its C library"
    what = program
    if name:
        what = name + " in PATH"
    elif what.endswith("\r"):
        what = what[:-1] + "\\r (the line ends as on Windows)"
    message = "the first line of %s (#!) asks for %s, which cannot be started here" % (script, what)
    return message, (
        "install it, and mount its folder where there is a sandbox; or name it itself in the uri: "
        "stdio:///PATH/OF/%s#NAME, and the script in [mcp.NAME] args"
        % (name or program.strip("\r").rsplit("/", 1)[-1])
    )

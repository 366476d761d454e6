"""What can run in a sandbox: a command, a server, a function of tools.py, or a function of clawlite
itself.

``most`` of each: the bytes that the files of the workspace may have together, or None; a
``Builtin`` checks that itself.  ``cpu_s``: the seconds of processor time that it may use with all
that it starts, or None.

A job goes to the child alone, never to the server: nobody else may read its environment and
arguments.
"""

import marshal
import sys

from clawlite.core.base.errors import ClawError


class Command:
    """A program.  Its outcome: {"exit_code", "output", "truncated", "original_bytes", "ended",
    "note"}.

    argv   list of str, the first is looked up in PATH inside the sandbox
    cwd    str, where it starts: "" is the workspace; virtual or real
    stdin  bytes, all that it can read there
    env    dict of str, beside the clean environment that every child gets
    files  dict of str, secrets that it finds as files (linux/confinement/secretfiles.py)
    exit_code is 128 + N when signal N ended it; ended is "" or the limit that did;
    note is "" or what this sandbox cannot give although it is declared, for who wonders why
    something failed"""

    KIND = "command"
    most = cpu_s = None

    def __init__(
        self, argv: list, cwd: str = "", stdin: bytes = b"", env: dict = None, files: dict = None
    ):
        self.argv, self.cwd, self.stdin, self.env, self.files = (
            argv,
            cwd,
            stdin,
            env or {},
            files or {},
        )

    def pack(self) -> bytes:
        """Return it as the bytes that the child reads."""
        return marshal.dumps(
            {
                "argv": list(self.argv),
                "stdin": self.stdin,
                "env": dict(self.env),
                "files": self.files,
            }
        )


class Server(Command):
    """A program that talks on stdin and stdout for as long as the agent lives (``Engine.open``).

    Its outcome is a command's; ``output`` is what it wrote to stderr.  The sandbox's time for one
    call does not limit it; its other limits hold for its whole life, and *cpu_s* is of it all.
    """

    KIND = "server"

    def __init__(self, argv: list, env: dict = None, cpu_s: int = None):
        super().__init__(argv, env=env)
        self.cpu_s = cpu_s


class Function:
    """A function of the maker's tools.py.  Its outcome: the JSON value that it returns.

    path, source  of the file, which was checked against the image; it is run anew for each call
    generator     bool, it yields: milliseconds to wait, or {"ask": text}
    """

    KIND = "function"
    cwd = ""
    most = cpu_s = None

    def __init__(
        self,
        path: str,
        source: bytes,
        name: str,
        arguments: dict,
        generator: bool = False,
        env: dict = None,
        files: dict = None,
    ):
        self.path, self.source, self.name, self.arguments = path, source, name, arguments
        self.generator, self.env, self.files = generator, env or {}, files or {}

    def pack(self) -> bytes:
        """Return it as the bytes that the child reads; raises ``ValueError`` for arguments that
        are not JSON values.
        """
        return marshal.dumps(
            {
                "path": self.path,
                "code": _code(self.path, self.source),
                "name": self.name,
                "arguments": self.arguments,
                "generator": self.generator,
                "env": dict(self.env),
                "files": self.files,
            }
        )


_codes = {}  # the last one: an agent has one tools.py


def _code(path: str, source: bytes):
    """Return the code of a file, which is compiled once and run nowhere but in children.  Raises
    ``ClawError``.
    """
    if (path, source) not in _codes:
        try:
            code = compile(source, path, "exec")
        except (SyntaxError, ValueError) as e:
            raise ClawError(
                "%s: %s" % (type(e).__name__, e), "mend %s and build again" % path
            ) from None
        _codes.clear()
        _codes[path, source] = code
    return _codes[path, source]


def modules_of(source: bytes) -> list:
    """Return the modules of the standard library that *source* imports at the start of a line:
    what every child of it will want.
    """
    found = []
    for line in source.split(b"\n"):
        words = line.decode("utf-8", "replace").split("#")[0].replace(",", " , ").split()
        if words[:1] == ["from"] and len(words) > 1 and not line.startswith(b" "):
            found.append(words[1])
        elif words[:1] == ["import"] and not line.startswith(b" "):
            found += [word for before, word in zip(words, words[1:]) if before in ("import", ",")]
    return sorted({name for name in found if name.partition(".")[0] in sys.stdlib_module_names})


class Builtin:
    """A function of a module of clawlite.  Its outcome: the JSON value that it returns; a
    ``ClawError`` stays what it is.
    """

    KIND = "builtin"
    cwd = ""
    most = cpu_s = None

    def __init__(self, module: str, name: str, arguments: dict, env: dict = None):
        if not module.startswith("clawlite."):
            raise ValueError("%s is no module of clawlite" % module)
        self.module, self.name, self.arguments, self.env = module, name, arguments, env or {}

    def pack(self) -> bytes:
        """Return it as the bytes that the child reads."""
        return marshal.dumps(
            {
                "module": self.module,
                "name": self.name,
                "arguments": self.arguments,
                "env": dict(self.env),
            }
        )

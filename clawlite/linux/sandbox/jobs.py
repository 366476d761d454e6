"""What can run in a sandbox: a command, a server, a function of tools.py, or a function of clawlite
itself.

Each job has ``most``, the bytes that all files of the workspace may have together, or None (a
``Builtin`` checks that itself), and ``cpu_s``, the seconds of processor time for it and all
processes that it starts, or None.

A job is sent only to the child, never to the server, so that no other process can read its
environment and arguments.
"""

import marshal
import os
import sys

from clawlite.core.base.errors import ClawError


class Command:
    """A program.  Its outcome: {"exit_code", "output", "truncated", "original_bytes", "ended",
    "note"}.

    argv   list of str, the first is looked up in PATH inside the sandbox
    cwd    str, the folder that it starts in, virtual or real; "" is the workspace
    stdin  bytes, its whole standard input
    env    dict of str, added to the clean environment that every child gets
    files  dict of str, secrets that it gets as files (linux/confinement/secretfiles.py)
    In the outcome, exit_code is 128 + N when signal N ended it, and ended is "" or the name of the
    limit that ended it.  note is "" or a declared feature that this sandbox lacks, which may
    explain a failure"""

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

    Its outcome has the fields of a command's; ``output`` is its stderr.  The sandbox's time limit
    for a call does not apply to it.  The other limits and *cpu_s* apply to its whole life.
    """

    KIND = "server"

    def __init__(self, argv: list, env: dict = None, cpu_s: int = None):
        super().__init__(argv, env=env)
        self.cpu_s = cpu_s


class Function:
    """A function of the maker's tools.py.  Its outcome: the JSON value that it returns.

    path, source  of the file, which was checked against the image; each call runs it again
    modules       {name: source} of the modules beside it
    show          function(text) that takes what it prints, or None
    generator     bool, the function yields: milliseconds to wait, or {"ask": text}
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
        modules: dict = None,
    ):
        self.modules, self.show = modules or {}, None
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
                "modules": {
                    name: _code(os.path.join(os.path.dirname(self.path), name + ".py"), source)
                    for name, source in self.modules.items()
                },
                "name": self.name,
                "arguments": self.arguments,
                "generator": self.generator,
                "env": dict(self.env),
                "files": self.files,
            }
        )


_codes: dict = {}  # {path: (source, code)}


def _code(path: str, source: bytes):
    """Return the compiled code of a file.  It is compiled once, and runs only in children.  Raises
    ``ClawError``.
    """
    if path not in _codes or _codes[path][0] != source:
        try:
            code = compile(source, path, "exec")
        except (SyntaxError, ValueError) as e:
            raise ClawError(
                "%s: %s" % (type(e).__name__, e), "mend %s and build again" % path
            ) from None
        _codes[path] = source, code
    return _codes[path][1]


def modules_of(source: bytes) -> list:
    """Return the modules of the standard library that *source* imports at the start of a line: all
    children that run it need them.
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
    """A function of a module of clawlite.  Its outcome: the JSON value that it returns, or the
    ``ClawError`` that it raises.
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

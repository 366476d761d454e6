"""The command line's first step: dispatch with the standard library alone.

Device verbs (run, ask, serve, trace, service, doctor, channels, swarm, mcp) need no package, nor do
inspect, tools, conformance and bench, which are the host part's; with --port run and ask are the
host's; the others load click.  A device verb over a manifest compiles it here, with the host part,
and then becomes the runtime (exec), so that no agent ever carries the compiler in its memory. Where
nothing has changed since the last time, the image beside the manifest is run at once
(linux/admin/image_cache.py)."""

import os
import sys

DEVICE_VERBS = ("run", "ask", "serve")
# an agent runs where Linux, macOS or WSL is
NOT_ON_WINDOWS = (*DEVICE_VERBS, "mcp", "trace", "audit", "service", "doctor", "swarm", "channels")
PLAIN_VERBS = ("inspect", "tools", "conformance", "bench")  # of host/cli/standalone.py


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
        return _unwritten(e)


def _write_as_elsewhere():
    """Write UTF-8 with plain line ends, to a pipe or a file, too: Windows would take its own code
    page, which has not all letters, and its own line ends.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")
    if sys.stdin is not None:
        sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")


def _no_agents(verb: str, args: list) -> int:
    """Say what to use in the place of *verb* on Windows; return the exit code."""
    from clawlite.core.base.errors import ClawError

    error = ClawError(
        "clawlite %s does not run on Windows" % verb,
        "use WSL (wsl --install) or a Raspberry Pi, or a board: clawlite flash --port COM3, with "
        "clawlite gateway for its keys and network",
    )
    if "--json" in args:
        import json

        print(json.dumps({"error": error.to_json()}))
    sys.stderr.write("clawlite: %s - %s\n" % (error.message, error.hint))
    return 2


def _unwritten(e: OSError) -> int:
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
        from clawlite.linux.admin.usage import TEXT

        print(TEXT, file=sys.stdout if args else sys.stderr)
        return 0 if args else 2
    on_board = any(arg.partition("=")[0] in ("--port", "--dir") for arg in args)
    if sys.platform == "win32" and not {"--help", "-h"} & {*args}:
        is_elsewhere = on_board and args[0] not in ("serve", "service", "swarm", "doctor")
        if args[0] == "sim" or args[0] in NOT_ON_WINDOWS and not is_elsewhere:
            return _no_agents(args[0], args)
    if (
        args
        and args[0] in DEVICE_VERBS
        and not (
            args[0] != "serve" and any(arg == "--port" or arg.startswith("--port=") for arg in args)
        )
    ):
        return _device(args[0], args[1:])
    if args[:1] == ["mcp"]:
        return _mcp(args[1:])
    if args and args[0] == "trace" and not on_board:
        from clawlite.linux.admin.trace import main as trace

        return trace(args[1:])
    if args and args[0] == "service":
        from clawlite.linux.admin.service import main as service

        return service(args[1:])
    if args and args[0] == "doctor":
        from clawlite.linux.doctor.doctor import main as doctor

        return doctor(args[1:])
    if args and args[0] == "secrets" and not on_board:
        from clawlite.linux.admin.secrets import main as secrets

        return secrets(args[1:], _name_of)
    if args and args[0] == "audit" and not on_board:
        from clawlite.linux.admin.audit import main as audit

        return audit(args[1:])
    if args[:1] == ["swarm"]:
        from clawlite.linux.swarm_commands.commands import main as swarm

        return swarm(args[1:])
    if args[0] == "channels":
        from clawlite.linux.admin.dead_letters import main as channels

        return channels(args[1:])
    if args[0] in PLAIN_VERBS:
        try:
            from clawlite.host.cli.standalone import main as plain

            return plain(args)
        except ImportError as e:
            return _missing(e)
    if not args[0].startswith("-"):
        from clawlite.linux.admin.usage import commands

        if args[0] not in commands():
            return _unknown(args[0], commands())
    try:
        from clawlite.host.cli.cli import main as host
    except ImportError as e:
        return _missing(e)
    return host(args, _line_editor, _Secrets(), _show, _sandboxes)


def _name_of(manifest: str) -> str:
    """Return the name of the agent of *manifest*, which has no image yet."""
    try:
        from clawlite.host.manifest.manifest import load
    except ImportError as e:
        from clawlite.core.base.errors import ClawError

        raise ClawError(
            "there is no image here, and to read a manifest needs the host packages "
            "(%s is missing)" % e.name,
            "name an image, or --agent AGENT",
        ) from None
    return load(manifest).name


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


def _show(verb: str, args: list, records) -> int:
    """Show what a board has on record; the host fetches it, and may not import what shows it."""
    if verb == "audit":
        from clawlite.linux.admin.audit import main as show
    else:
        from clawlite.linux.admin.trace import main as show
    return show(args, records)


def _mcp(args: list) -> int:
    from clawlite.linux.admin import commands

    if args[:1] == ["serve"]:
        if any(arg.partition("=")[0] == "--port" for arg in args):
            try:
                from clawlite.host.cli.standalone import main as plain

                return plain(["mcp", *args])
            except ImportError as e:
                return _missing(e)
        return _device(commands.MCP, args[1:])
    print(commands.USAGE[commands.MCP], file=sys.stdout if args[:1] == ["--help"] else sys.stderr)
    return 0 if args[:1] == ["--help"] else 2


def _device(verb: str, args: list) -> int:
    if sys.platform == "win32":  # to say how it is called
        return _agent(verb, args)
    from clawlite.linux.files import code_file

    code_file.use()
    try:
        return _agent(verb, args)
    finally:
        code_file.rewrite()


def _agent(verb: str, args: list) -> int:
    from clawlite.linux.admin import commands
    from clawlite.linux.io import stdio

    stdio.open_closed()
    command = commands.parse(verb, args)
    if isinstance(command, int):
        return command
    if command.is_image:
        return commands.run(command)
    if command.is_vacant:
        return commands.run_bootstrap()
    from clawlite.linux.admin import image_cache

    at_use = verb in ("serve", commands.MCP)
    current = image_cache.find(command.name, at_use)
    if current:
        command.name = current
        return commands.run(command)
    try:
        from clawlite.host.build.build import build_facts
        from clawlite.host.cli.ui import print_error
    except ImportError as e:
        return _missing(e)
    from clawlite.core.base.errors import ClawError

    try:
        image, facts = build_facts(command.name, at_use)
        if facts is not None:
            image_cache.store(command.name, at_use, image, facts)
    except ClawError as e:
        return print_error(e, False)
    start = os.path.join(os.path.dirname(os.path.abspath(__file__)), "__main__.py")
    os.execv(sys.executable, [sys.executable, start] + command.with_image(image))


def _unknown(name: str, known: list) -> int:
    from clawlite.host.base.problems import did_you_mean, value_text

    hint = did_you_mean(name, known)
    sys.stderr.write(
        "clawlite: there is no command %s%s All commands: clawlite --help\n"
        % (value_text(name), " - " + hint if hint else ".")
    )
    return 2


def _missing(e: ImportError) -> int:
    sys.stderr.write(
        "clawlite: this needs the host packages (%s is missing) - pip install "
        "'clawlite[host]', "
        "or use an image that was built elsewhere\n" % e.name
    )
    return 2

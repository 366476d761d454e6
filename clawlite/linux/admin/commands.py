"""The device verbs: ``run``, ``ask`` and ``serve``, with the standard library alone."""

import gc
import os
import sys

from clawlite.core.base.errors import ClawError
from clawlite.linux.files import files

MCP = "mcp serve"  # the verb of an agent that is an MCP server
USAGE = {
    "run": "usage: clawlite run [MANIFEST | IMAGE] [--record FILE]",
    "ask": "usage: clawlite ask TEXT [MANIFEST | IMAGE] [--approve] [--record FILE]",
    "serve": "usage: clawlite serve [MANIFEST | IMAGE] --stdio",
    MCP: "usage: clawlite mcp serve [MANIFEST | IMAGE]",
}
HELP = {
    "run": "Talk to an agent on this terminal. /help there lists its commands.\nWith --port PORT "
    "on a board, where it is flashed first.\n"
    "--record FILE appends each turn, as the provider builtin:replay plays it.",
    "ask": "One turn, then exit: 5 when policy, a sandbox or a person said no. --approve answers "
    "yes to what asks first.\n"
    "With --port PORT of the agent that runs on a board.\n"
    "--record FILE appends the turn, as the provider builtin:replay plays it.",
    "serve": "CKP JSON-RPC on stdin and stdout, one JSON document a line.\n"
    "In a folder without an agent: the one of the manifest in claw.initialize, with "
    "inline primitives only.",
    MCP: "The agent's tools for an MCP client, which starts this command and talks on its stdin "
    "and stdout.\nEach call goes through policy, approval, sandbox and audit.\n"
    "With --port PORT the tools of the agent that runs on a board.",
}
IMAGE = "claw.cbor"
MANIFESTS = ("claw.yaml", "claw.yml", "claw.json")
FLAGS = {"run": ("--record",), "ask": ("--approve", "--record"), "serve": ("--stdio",), MCP: ()}


class Command:
    """One parsed command line.

    verb, text  text is for ``ask``
    name        the image or the manifest
    flags       list of options
    record      file that turns are appended to, or None
    """

    def __init__(self, verb: str, text, name: str, flags: list, record=None):
        self.verb = verb
        self.text = text
        self.name = name
        self.flags = flags
        self.record = record

    @property
    def is_image(self) -> bool:
        """Whether *name* is an image, or calls itself one: its errors are an image's then."""
        return self.name.endswith(".cbor") or files.is_image(self.name)

    @property
    def is_vacant(self) -> bool:
        """Whether no agent is named or lies here: an operator brings one
        (linux/runtime/bootstrap_session.py).
        """
        return (
            self.verb == "serve"
            and self.name == "."
            and not any(os.path.lexists(name) for name in MANIFESTS)
        )

    def with_image(self, image: str) -> list:
        """Return the arguments of the same command over *image*."""
        return (
            self.verb.split()
            + ([self.text] if self.text is not None else [])
            + [image]
            + self.flags
            + (["--record", self.record] if self.record else [])
        )


def parse(verb: str, args: list):
    """Return a ``Command``, or the exit code when there is nothing to run."""
    if "--help" in args or "-h" in args:
        print(USAGE[verb] + "\n\n" + HELP[verb])
        return 0
    record = None
    if "--record" in args and "--record" in FLAGS[verb]:
        at = args.index("--record")
        record = "".join(args[at + 1 : at + 2])
        if not record or record.startswith("--"):
            return failed("--record: expected a file\n%s" % USAGE[verb])
        args = args[:at] + args[at + 2 :]
    flags = [arg for arg in args if arg.startswith("--")]
    names = [arg for arg in args if not arg.startswith("--")]
    unknown = [flag for flag in flags if flag not in FLAGS[verb]]
    if unknown:
        return failed("unknown option %s\n%s" % (unknown[0], USAGE[verb]))
    if verb == "ask" and not (names and names[0].strip()):
        return failed("expected a text to ask\n%s" % USAGE[verb])
    if verb == "serve" and not flags:
        return failed("expected --stdio: no other transport is built yet\n%s" % USAGE[verb])
    text = names.pop(0) if verb == "ask" else None
    if len(names) > 1:
        return failed("expected one manifest or image, got %s\n%s" % (" ".join(names), USAGE[verb]))
    name = names[0] if names else "."
    if not names and files.is_image(IMAGE) and not any(os.path.lexists(one) for one in MANIFESTS):
        name = IMAGE
    return Command(verb, text, name, flags, record)


def run(command: Command) -> int:
    """Run a command over an image; return the exit code."""
    # until READY (Shell.start): a collection on the way there finds nothing, for 1 ms
    gc.disable()
    from clawlite.linux.io import signals
    from clawlite.linux.runtime.shell import Shell

    try:
        image = files.open_image(command.name)
        wake = signals.catch()
        try:
            shell = Shell(
                image,
                os.path.dirname(os.path.abspath(command.name)),
                command.verb in ("serve", MCP),
                wake,
                session=_session(command.verb),
            )
            if command.record:
                from clawlite.linux.runtime.recording import Recording

                shell.console.on_turn = Recording(command.record, shell.console.tell).turn
            if command.verb == "ask":
                from clawlite.linux.admin.ask import ask

                code = ask(shell, command.text, "--approve" in command.flags)
            else:
                code = shell.run()
            if shell.wire.fault:
                failed("stdout cannot be written: " + shell.wire.fault)
            return code or int(shell.wire.fault != "")
        except KeyboardInterrupt:  # while tools.py was loaded: nothing had begun
            return 128 + (signals.terminated() or 2)
        finally:
            signals.release()
    except ClawError as e:
        return failed(e.message + (" - " + e.hint if e.hint else ""))


def _session(verb: str):
    """Return what takes the records of the line in the place of an operator's session, or None."""
    if verb != MCP:
        return None
    from clawlite.linux.mcp.offer import StdioSession

    return StdioSession


def run_bootstrap() -> int:
    """Serve an operator who brings the agent along; return the exit code."""
    from clawlite.linux.io import signals
    from clawlite.linux.runtime.bootstrap_session import BootstrapSession

    wake = signals.catch()
    try:
        return BootstrapSession(wake).run()
    except ClawError as e:
        return failed(e.message + (" - " + e.hint if e.hint else ""))
    finally:
        signals.release()


def failed(message: str) -> int:
    """Say what is wrong on stderr; return 2: bad usage, manifest or image."""
    sys.stderr.write("clawlite: %s\n" % message)
    return 2

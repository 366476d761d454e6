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
    MCP: "usage: clawlite mcp serve [MANIFEST | IMAGE] [--http [ADDRESS:]PORT]",
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
    "With --http over Streamable HTTP at http://ADDRESS:PORT/mcp, on this machine alone "
    "(127.0.0.1);\nclients send the agent's secret MCP_TOKEN as Bearer (clawlite secrets set "
    "MCP_TOKEN), or\na token of this machine's gateway: clawlite gateway token NAME --for mcp.\n"
    "With --port PORT the tools of the agent that runs on a board.",
}
IMAGE = "claw.cbor"
MANIFESTS = ("claw.yaml", "claw.yml", "claw.json")
FLAGS = {
    "run": ("--record",),
    "ask": ("--approve", "--record"),
    "serve": ("--stdio",),
    MCP: ("--http",),
}
VALUES = {"--record": "a file", "--http": "a port, or an address and a port (127.0.0.1:8000)"}
BUILT = "--built"  # the image was compiled for this start; command.py alone gives it
_DOOR = "mcp"  # of a gateway's token
TOKEN = "MCP_TOKEN"  # the secret of clients of ``mcp serve --http``


class Command:
    """One parsed command line.

    verb, text  text is for ``ask``
    name        the image or the manifest
    flags       list of options
    record      file that turns are appended to, or None
    http        (address, port) where an MCP server listens, or None
    """

    def __init__(self, verb: str, text, name: str, flags: list, record=None, http=None):
        self.verb = verb
        self.text = text
        self.name = name
        self.flags = flags
        self.record = record
        self.http = http

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
            + [image, BUILT]
            + self.flags
            + (["--record", self.record] if self.record else [])
            + (["--http", "%s:%d" % self.http] if self.http else [])
        )


def parse(verb: str, args: list):
    """Return a ``Command``, or the exit code when there is nothing to run."""
    if "--help" in args or "-h" in args:
        print(USAGE[verb] + "\n\n" + HELP[verb])
        return 0
    values = {}
    for flag, what in VALUES.items():
        if flag in args and flag in FLAGS[verb]:
            at = args.index(flag)
            values[flag] = "".join(args[at + 1 : at + 2])
            if not values[flag] or values[flag].startswith("--"):
                return print_failure("%s: expected %s" % (flag, what), USAGE[verb])
            args = args[:at] + args[at + 2 :]
    http = None
    if "--http" in values:
        http = _address(values["--http"])
        if http is None:
            return print_failure(
                "--http %s: expected %s; only this machine may reach it, so the address is "
                "127.0.0.1 or ::1" % (values["--http"], VALUES["--http"]),
                USAGE[verb],
            )
    flags = [arg for arg in args if arg.startswith("--")]
    names = [arg for arg in args if not arg.startswith("--")]
    unknown = [flag for flag in flags if flag not in FLAGS[verb] and flag != BUILT]
    if unknown:
        return print_failure("unknown option %s" % unknown[0], USAGE[verb])
    if verb == "ask" and not (names and names[0].strip()):
        return print_failure("expected a text to ask", USAGE[verb])
    if verb == "serve" and "--stdio" not in flags:
        return print_failure("expected --stdio: no other transport is built yet", USAGE[verb])
    text = names.pop(0) if verb == "ask" else None
    try:
        (text or "").encode()
    except UnicodeError:  # what the shell gave is in another encoding
        return print_failure("That text is not UTF-8 text. Nothing was done.")
    if len(names) > 1:
        return print_failure(
            "expected one manifest or image, got %s" % " ".join(names), USAGE[verb]
        )
    name = names[0] if names else "."
    if not names and files.is_image(IMAGE) and not any(os.path.lexists(one) for one in MANIFESTS):
        name = IMAGE
    return Command(verb, text, name, flags, values.get("--record"), http)


def _address(text: str):
    """Return (address, port) of this machine that *text* names, or None."""
    host, _, port = text.rpartition(":")
    host = {"": "127.0.0.1", "localhost": "127.0.0.1"}.get(host, host.strip("[]"))
    is_port = port.isascii() and port.isdigit() and int(port[:6]) < 65536
    return (host, int(port)) if host in ("127.0.0.1", "::1") and is_port else None


def run(command: Command) -> int:
    """Run a command over an image; return the exit code.  When the package is replaced meanwhile,
    that is told once, at the end.
    """
    # until READY (Shell.start): a collection on the way there finds nothing, for 1 ms
    gc.disable()
    from clawlite.linux.files import code_file
    from clawlite.linux.io import replaced

    watch = replaced.Watch()
    watch.start()
    try:
        return _run(command, watch)
    except replaced.PackageReplaced:
        return 1
    finally:
        is_replaced = watch.is_replaced()
        watch.stop()
        if is_replaced:
            code_file.leave()
            sys.stderr.write("clawlite: %s\n" % replaced.TEXT)


def _run(command: Command, watch) -> int:
    from clawlite.linux.io import signals
    from clawlite.linux.runtime.shell import Shell

    try:
        image = files.open_image(command.name)
        if BUILT not in command.flags:
            _tell_of_trusted(image)
        wake = signals.catch()
        try:
            shell = Shell(
                image,
                os.path.dirname(os.path.abspath(command.name)),
                command.verb in ("serve", MCP),
                wake,
                session=_session(command),
            )
            if command.record:
                from clawlite.linux.runtime.recording import Recording

                shell.console.on_turn = Recording(command.record, shell.console.tell).turn
            if command.http:
                _listen(shell, command.http)
            if command.verb != "ask":  # which ends by itself
                shell.package = watch
            if command.verb == "ask":
                from clawlite.linux.admin.ask import ask

                code = ask(shell, command.text, "--approve" in command.flags)
            else:
                code = shell.run()
            if shell.wire.fault:
                print_failure("stdout cannot be written: " + shell.wire.fault)
            return code or int(shell.wire.fault != "")
        except KeyboardInterrupt:  # while tools.py was loaded: nothing had begun
            return 128 + (signals.terminated() or 2)
        finally:
            signals.release()
            signals.end_as_asked()
    except ClawError as e:
        return print_failure(e.message + (" - " + e.hint if e.hint else ""))


def _tell_of_trusted(image):
    """Say that an image, which nobody compiles at this start, has what trusted servers said when it
    was built.
    """
    from clawlite.core.image.image import MCP as SERVERS

    if not image.size_of(SERVERS):
        return
    from clawlite.linux.mcp.section import trusted

    names = trusted(image)
    if names:
        print_failure(
            '[mcp.NAME] trust = "start" (%s): an image has the descriptions of its '
            "build - name the manifest to take what the server says now" % ", ".join(names)
        )


def _session(command: Command):
    """Return what takes the records of the line in the place of an operator's session, or None."""
    if command.verb != MCP:
        return None
    if command.http:
        from clawlite.linux.mcp.http_offer import HTTPSession

        return HTTPSession
    from clawlite.linux.mcp.offer import StdioSession

    return StdioSession


def _listen(shell, address: tuple):
    """Let MCP clients come over HTTP.  Raises ``ClawError``."""
    import hmac

    from clawlite.linux.secrets import gateway_tokens
    from clawlite.linux.secrets.secrets import SecretMissing, resolve, stores

    try:
        token = resolve(TOKEN, stores(shell.agent.image.agent.name))
    except SecretMissing:
        if not gateway_tokens.is_given_out(_DOOR):
            raise
        token = ""
    if token and shell.agent.image.guard is not None:
        shell.agent.image.guard.learn(token)

    def is_right(bearer: bytes) -> bool:
        is_own = hmac.compare_digest(bearer, token.encode()) and bool(token)
        return is_own or gateway_tokens.opens(_DOOR, bearer)

    url = shell.session.listen(*address, is_right, shell.audit and shell.startup.flushed_answer)
    shell.add_member(shell.session)
    shell.outlasts_input = True
    print_failure("the tools of %s are at %s" % (shell.agent.image.agent.name, url))
    sys.stderr.flush()


def run_bootstrap() -> int:
    """Serve an operator who brings the agent along; return the exit code."""
    from clawlite.linux.io import signals
    from clawlite.linux.runtime.bootstrap_session import BootstrapSession

    wake = signals.catch()
    try:
        return BootstrapSession(wake).run()
    except ClawError as e:
        return print_failure(e.message + (" - " + e.hint if e.hint else ""))
    finally:
        signals.release()


def print_failure(message: str, usage: str = "") -> int:
    """Say what is wrong on stderr, in one line, and *usage* below; return 2: bad usage, manifest
    or image.
    """
    from clawlite.core.base.printable import escape_ends

    # a name of a file, or a word of a command, may hold what would drive the terminal
    line = escape_ends("clawlite: " + message) + "\n" + (usage + "\n" if usage else "")
    sys.stderr.write(line.encode("utf-8", "replace").decode())
    return 2


def print_error(e, as_json: bool, code: int) -> int:
    """Show the error *e* on stderr, and on stdout *as_json*; return the exit code."""
    if as_json:
        from clawlite.linux.io.jsontext import document

        print(document({"error": e.to_json()}))
    print_failure(e.message + (" - " + e.hint if e.hint else ""))
    return getattr(e, "exit_code", code)  # of a port: 3, 4

"""The device verbs: ``run``, ``ask`` and ``serve``, with the standard library alone."""

import gc
import os
import sys

from clawlite.core.base.errors import ClawError
from clawlite.linux.files import files

MCP = "mcp serve"  # the verb of an agent that is an MCP server
IMAGE = "claw.cbor"
# options of a page, and what their values are called
OF_PAGE = {
    "--listen": "listen",
    "--tls-cert": "certificate",
    "--tls-key": "key",
    "--behind-proxy": "proxied",
    "--host": "names",
}
MANIFESTS = ("claw.yaml", "claw.yml", "claw.json")
_DOOR = "mcp"  # of a gateway's token
TOKEN = "MCP_TOKEN"  # the secret of clients of ``mcp serve --http``


class BadUsage(ClawError):
    """A command that is typed wrong."""

    exit_code = 2


class Command:
    """A command line that runs an agent here.

    verb    "run", "ask", "serve" or ``MCP``;  values  what its row in verbs.py takes
    name    the image or the manifest
    http    (address, port) where an MCP server listens, or None
    Raises ``ClawError``.
    """

    def __init__(self, verb: str, values: dict):
        self.verb = verb
        self.text = values.get("text")
        self.approves = values.get("approve", False)
        self.record = values.get("record")
        self.is_stdio = values.get("stdio", False)
        self.exchange = values.get("exchange")
        self.page = _read_page_options(values)
        self.socket = values.get("socket", False) or bool(self.page)
        self.is_built = values["built"]
        self.http = _address(values["http"]) if values.get("http") else None
        if verb == "ask":
            _check_text(self.text)
        if verb == "serve" and not (self.is_stdio or self.page or self.exchange or self.socket):
            raise ClawError(
                "expected a way to serve: --stdio, --listen, --folder or --socket",
                "clawlite serve --stdio",
            )
        self.name = values["manifest"] or "."
        if values["manifest"] is None and files.is_image(IMAGE) and not _has_manifest():
            self.name = IMAGE

    @property
    def is_image(self) -> bool:
        """Whether *name* is an image, or calls itself one: its errors are an image's then."""
        return self.name.endswith(".cbor") or files.is_image(self.name)

    @property
    def is_vacant(self) -> bool:
        """Whether no agent is named or lies here: an operator brings one
        (linux/runtime/bootstrap_session.py).
        """
        return self.is_stdio and self.name == "." and not _has_manifest()

    def with_image(self, image: str) -> list:
        """Return the arguments of the same command over *image*."""
        return (
            self.verb.split()
            + ["--built"]
            + (["--stdio"] if self.is_stdio else [])
            + self.page
            + (["--folder=" + self.exchange] if self.exchange else [])
            + (["--approve"] if self.approves else [])
            + (["--record=" + self.record] if self.record else [])
            + (["--socket"] if self.socket else [])
            + (["--http=%s:%d" % self.http] if self.http else [])
            + ["--"]
            + ([self.text] if self.text is not None else [])
            + [image]
        )


def page_words(values: dict) -> list:
    """Return the options of a page that *values* has, [] for none."""
    words = []
    for option, key in OF_PAGE.items():
        given = values.get(key) or ()
        for one in given if isinstance(given, (tuple, list)) else [given]:
            words.append("%s=%s" % (option, one))
    return words


def _read_page_options(values: dict) -> list:
    """Return the options of the page that ``serve`` starts, [] for none.  Raises ``ClawError``."""
    words = page_words(values)
    if words and not values.get("listen"):
        option = words[0].partition("=")[0]
        raise BadUsage("%s: expected --listen beside it" % option, "clawlite serve --help")
    return words


def _has_manifest() -> bool:
    return any(os.path.lexists(name) for name in MANIFESTS)


def _check_text(text: str):
    if not text.strip():
        raise ClawError("expected a text to ask", "clawlite ask TEXT")
    try:
        text.encode()
    except UnicodeError:  # what the shell gave is in another encoding
        raise ClawError(
            "That text is not UTF-8 text. Nothing was done", "write it in UTF-8"
        ) from None


def _address(text: str) -> tuple:
    """Return (address, port) of this machine that *text* names.  Raises ``ClawError``."""
    host, _, port = text.rpartition(":")
    host = {"": "127.0.0.1", "localhost": "127.0.0.1"}.get(host, host.strip("[]"))
    is_port = port.isascii() and port.isdigit() and int(port[:6]) < 65536
    if host in ("127.0.0.1", "::1") and is_port:
        return host, int(port)
    raise ClawError(
        "--http %s: expected a port, or an address and a port (127.0.0.1:8000); only this machine "
        "may reach it, so the address is 127.0.0.1 or ::1" % text,
        "clawlite mcp serve --http 8000",
    )


def run(command: Command) -> int:
    """Run a command over an image; return the exit code.  When the package is replaced meanwhile,
    that is told once, at the end.
    """
    # until READY (Shell.start): a collection on the way there finds nothing, for 1 ms
    gc.disable()
    from clawlite.linux.files import code_file
    from clawlite.linux.io import package_check

    watch = package_check.Watch()
    watch.start()
    try:
        return _run(command, watch)
    except package_check.PackageReplaced:
        return 1
    finally:
        is_replaced = watch.is_replaced()
        watch.stop()
        if is_replaced:
            code_file.leave()
            sys.stderr.write("clawlite: %s\n" % package_check.TEXT)


def _run(command: Command, watch) -> int:
    from clawlite.linux.io import signals
    from clawlite.linux.runtime.optional_parts import prepare
    from clawlite.linux.runtime.shell import Shell

    try:
        image = files.open_image(command.name, prepare)
        if not command.is_built:
            _tell_of_trusted(image)
        is_elsewhere = command.verb == "serve" and not command.is_stdio
        if is_elsewhere:  # whoever holds stdin is no operator
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, 0)
            os.close(null)
        wake = signals.catch()
        try:
            shell = Shell(
                image,
                os.path.dirname(os.path.abspath(command.name)),
                command.verb in ("serve", MCP),
                wake,
                session=_session(command),
                answers=_answers(command),
                package=None if command.verb == "ask" else watch,  # it ends by itself
                outlasts_input=bool(command.http) or is_elsewhere,
            )
            if command.record:
                from clawlite.linux.admin.recording import Recording

                shell.console.on_turn.append(Recording(command.record, shell.console.tell).turn)
            if command.http:
                _listen(shell, command.http)
            if command.verb in ("run", "serve"):
                _open_lines(shell, command)
            if command.verb == "ask":
                from clawlite.linux.admin.ask import ask

                code = ask(shell, command.text)
            else:
                code = shell.run()
            if shell.wire.fault:
                print_failure("stdout cannot be written: " + shell.wire.fault)
            return code or int(shell.wire.fault != "")
        except KeyboardInterrupt:  # while tools.py was loaded: nothing had begun
            return 128 + (signals.end_signal() or 2)
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
    from clawlite.linux.mcp.section import list_trusted

    names = list_trusted(image)
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


def _answers(command: Command):
    """Return what answers approvals in the place of a person, or None."""
    if command.verb != "ask":
        return None
    from clawlite.linux.admin.ask import answering

    return answering(command.approves)


def _open_lines(shell, command: Command):
    """Let operators come beside the one on stdin.  Raises ``ClawError``."""
    if command.socket or "page" in shell.image.requires:
        from clawlite.linux.records.record_group import RecordGroup
        from clawlite.linux.tasks.control_socket import ControlSocket
        from clawlite.linux.tasks.watch_group import WatchGroup

        shell.serve(shell.add_part(WatchGroup(shell)))
        shell.serve(shell.add_part(RecordGroup(shell)))
        shell.add_part(ControlSocket(shell))
    if command.exchange:
        from clawlite.linux.tasks.folder_line import FolderLine

        shell.add_part(FolderLine(shell, command.exchange))
    if command.page:
        from clawlite.linux.admin.page_process import PageProcess

        shell.add_part(PageProcess(shell.image.agent.name, command.page, shell.end))


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
    if token and shell.guard is not None:
        shell.guard.learn(token)

    def is_right(bearer: bytes) -> bool:
        is_own = hmac.compare_digest(bearer, token.encode()) and bool(token)
        return is_own or gateway_tokens.opens(_DOOR, bearer)

    url = shell.session.listen(*address, is_right, shell.audit and shell.startup.flush_answer)
    shell.add_part(shell.session)
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


def print_failure(message: str, verb: str = "") -> int:
    """Say what is wrong with *verb* on stderr, in one line; return 2: bad usage, manifest or
    image.
    """
    from clawlite.core.base.printable import escape_ends

    # a name of a file, or a word of a command, may hold what would drive the terminal
    line = escape_ends("clawlite%s: %s" % (verb and " " + verb, message)) + "\n"
    sys.stderr.write(line.encode("utf-8", "replace").decode())
    return 2


def print_error(e, as_json: bool, code: int, verb: str = "") -> int:
    """Show the error *e* of *verb* on stderr, and on stdout *as_json*; return the exit code."""
    if as_json:
        from clawlite.linux.io.jsontext import document

        print(document({"error": e.to_json()}))
    print_failure(e.message + (" - " + e.hint if e.hint else ""), verb)
    return getattr(e, "exit_code", code)  # of a port: 3, 4

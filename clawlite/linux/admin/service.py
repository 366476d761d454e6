"""``clawlite service install|remove|status|talk``: an agent that systemd starts, with the standard
library alone.

An agent with channels beside its console (any row of ``KINDS`` in protocols/image/features.py), or
in a swarm, runs from boot on; so does one with --tty, which serves that terminal (a UART, a USB
gadget).  Of any other nothing runs until somebody connects to its socket, and it ends when they
leave: it does nothing alone.  As root these are units of the system that run as another user; else
they are units of the user."""

import os
import subprocess
import sys

from clawlite.core.base.errors import ClawError
from clawlite.core.base.printable import escape_name
from clawlite.linux.admin import units
from clawlite.linux.admin.commands import OF_PAGE, page_words
from clawlite.linux.files import files
from clawlite.linux.files.packages import PACKAGE
from clawlite.linux.files.regular_file import open_regular
from clawlite.linux.io.jsontext import document
from clawlite.protocols.image.features import CLI, KINDS

BOOTED = "/run/systemd/system"  # sd_booted(3)
SYSTEM = "/etc/systemd/system"
_START = os.path.join(PACKAGE, "__main__.py")


def install_unit(image, as_json: bool, **options):
    """Install a service, and show what was written.  Raises ``ClawError``, as the others."""
    _print("install", install(image, **options), as_json)


def remove_unit(name: str, dry_run: bool, as_json: bool):
    """Remove a service, and show what was removed."""
    _print("remove", remove(name, dry_run), as_json)


def show_status(name, as_json: bool):
    """Show the services that are installed."""
    _print("status", status(name), as_json)


def _print(verb: str, found, as_json: bool):
    print(document(found) if as_json else text(verb, found))


def text(verb: str, found) -> str:
    """Return what a person reads."""
    if verb == "status":
        rows = [
            "%-24s %-8s %-10s %s"
            % (escape_name(row["name"]), row["scope"], row["enabled"], row["active"])
            for row in found
        ]
        return (
            "\n".join(rows)
            or "no service of an agent is installed; install one with: clawlite service install"
        )
    lines = []
    for file in found["files"]:
        lines.append(
            "# %s\n%s" % (file["path"], file["text"])
            if found["dry_run"] and "text" in file
            else "%s %s" % ({"install": "written", "remove": "removed"}[verb], file["path"])
        )
    if found["dry_run"]:
        lines += ["# " + " ".join(words) for words in found["commands"]]
    elif found.get("next"):
        lines.append("Next: " + found["next"])
    return "\n".join(lines)


# -- install


def install(
    name, tty=None, user=None, writable=(), dry_run: bool = False, root=None, page=False, **place
) -> dict:
    """Install the service of the image *name* (None: claw.cbor here), or of the *page*, with the
    options that *place* has of it; return what ``--json`` shows.

    Keys: name, scope ("system", "user"), user, files ([{path, text}]), commands ([[word]]),
    dry_run, next. Raises ``ClawError``.
    """
    root = os.getuid() == 0 if root is None else root
    if page:
        service = plan_page(name, tty, user, writable, root, place)
    else:
        _refuse_place(place)
        service = plan(name or "claw.cbor", tty, user, writable, root)
    folder = SYSTEM if root else user_folder()
    written = [{"path": os.path.join(folder, file), "text": body} for file, body in service.units()]
    for file in written:
        _check_ours(file["path"])
    systemctl = ["systemctl"] if root else ["systemctl", "--user"]
    old = _other_units(folder, service.name, [os.path.basename(file["path"]) for file in written])
    mains = [unit for unit in old if not unit.endswith("@.service")]
    commands = [systemctl + ["disable", "--now"] + mains] if old else []
    commands += [
        systemctl + ["daemon-reload"],
        systemctl + ["enable", service.main],
        systemctl + ["restart", service.main],
    ]
    log = "journalctl %s-u %s" % ("" if root else "--user ", service.main)
    if page:
        following = "log in at the address that it tells: " + log
    elif service.tty:
        following = "it serves %s" % service.tty
    elif service.is_kept_up:
        following = "it serves its channels; read its log with: %s -f" % log
    else:
        following = "clawlite service talk %s" % service.name
    if not root:
        following += "; to keep it when nobody is logged in: sudo loginctl enable-linger $USER"
    found = {
        "name": service.name,
        "scope": "system" if root else "user",
        "user": service.user,
        "files": written,
        "commands": commands,
        "dry_run": dry_run,
        "next": following,
    }
    if not found["dry_run"]:
        _demand_systemd()
        _make_state(service)
        os.makedirs(folder, exist_ok=True)
        # it was of another kind: both at once would be two processes of one agent
        if old:
            run(commands[:1])
            for unit in old:
                os.remove(os.path.join(folder, unit))
        for file in written:
            _write(file["path"], file["text"])
        run(commands[1:] if old else commands)
    return found


def _other_units(folder: str, name: str, units: list) -> list:
    """Return the units of the agent *name* in *folder* that are clawlite's and none of *units*.
    Raises ``ClawError`` for somebody's own.
    """
    found = [
        unit
        for unit in _units_of(name)
        if unit not in units and os.path.isfile(os.path.join(folder, unit))
    ]
    for unit in found:
        _check_ours(os.path.join(folder, unit))
    return found


def _units_of(name: str) -> list:
    """Return the names that units of the agent *name* may have."""
    return ["clawlite-%s%s" % (name, end) for end in (".socket", "@.service", ".service")]


def plan(name: str, tty, runs_as, writable, root: bool) -> units.Service:
    """Return the service of the image file *name*.  Raises ``ClawError``: no image, nobody to
    run it as.
    """
    if not files.is_image(name):
        raise ClawError(
            "%s is no image" % name if os.path.lexists(name) else "there is no image %s" % name,
            "build one first: clawlite build",
        )
    image = files.open_image(name)
    sources = [kind.ability for number, kind in enumerate(KINDS) if number != CLI]
    lasts = any(ability in image.requires for ability in (*sources, "swarm", "page"))
    user, home = _runs_as(runs_as, root)
    state = os.environ.get("CLAWLITE_STATE")
    # not the real path: a flash over ssh replaces the link in it
    where = os.path.abspath(name)
    starter = os.path.join(os.path.dirname(where), "agent")
    words = (
        [starter, "run"]
        if os.access(starter, os.X_OK)
        else [sys.executable, "-I", "-S", _START, "run", where]
    )
    base = _base_of(state, home)
    if tty is not None and not (tty.startswith("/dev/") and os.path.normpath(tty) == tty):
        raise ClawError(
            "--tty: expected a device, got %s" % tty, "such as /dev/ttyGS0 or /dev/serial0"
        )
    paths = [base] + [os.path.abspath(path) for path in writable]
    _check_words(words + paths + [tty or ""])
    return units.Service(image.agent.name, words, user, paths, tty, state, lasts)


def plan_page(name, tty, runs_as, writable, root: bool, place: dict) -> units.Service:
    """Return the service of the page of the agents of one user.  Raises ``ClawError``."""
    if name or tty or writable:
        raise ClawError(
            "--page: expected no image, no --tty and no --writable beside it: the page is one "
            "service for all agents of its user",
            "clawlite service install --page",
        )
    user, home = _runs_as(runs_as, root)
    state = os.environ.get("CLAWLITE_STATE")
    for key in ("certificate", "key"):
        if place.get(key):
            place = {**place, key: os.path.abspath(place[key])}
    words = [sys.executable, _START, "page", *page_words(place)]
    base = _base_of(state, home)
    _check_words([*words, base])
    return units.PageService(words, user, [base], state)


def _base_of(state, home) -> str:
    """Return the folder of the state of agents: *state*, or the default below *home*."""
    return state or os.path.join(home or files.home_folder(), ".local", "state", "clawlite")


def _refuse_place(place: dict):
    """Raise ``ClawError`` for an option of the page where none is installed."""
    for option, key in OF_PAGE.items():
        if place.get(key):
            raise ClawError("%s: expected --page beside it" % option, "clawlite service --help")


def _check_words(words: list):
    for word in words:
        if any(ord(char) < 32 for char in word):
            raise ClawError(
                "a path with control characters cannot stand in a unit: %r" % word,
                "move the agent to a folder with a plain name",
            )


def _runs_as(name, root: bool) -> tuple:
    """Return (name, home) of the account that a system service runs as, (None, None) for a user's
    own.  Raises ``ClawError``.
    """
    if root:
        return _account(name or os.environ.get("SUDO_USER", ""))
    if name:
        raise ClawError(
            "--as: only root can install a service for others",
            "sudo clawlite service install --as %s" % name,
        )
    return None, None


def _account(name: str) -> tuple:
    """Return (name, home) of the account that a system service runs as.  Raises ``ClawError``
    for none, root or an unknown one.
    """
    import pwd

    if not name:
        raise ClawError(
            "a system service needs a user to run as",
            "name one: clawlite service install --as USER",
        )
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise ClawError("there is no user %s" % name, "name another one with --as") from None
    if found.pw_uid == 0:
        raise ClawError("an agent does not run as root", "name another user with --as")
    return found.pw_name, found.pw_dir


def _make_state(service) -> None:
    """Make the folder of agents' state, which the unit makes writable: it must be there when the
    service starts.
    """
    path = service.writable[0]
    if os.path.isdir(path):
        return
    first = path
    while not os.path.isdir(os.path.dirname(first)):
        first = os.path.dirname(first)
    os.makedirs(path, mode=0o700)
    if service.user:
        import pwd

        owner = pwd.getpwnam(service.user)
        while path.startswith(first):
            os.chown(path, owner.pw_uid, owner.pw_gid)
            path = os.path.dirname(path)


def _write(path: str, body: str) -> None:
    try:
        files.replace_file(path, body.encode(), 0o644)
    except OSError as e:
        raise ClawError(
            "%s: %s" % (path, e.strerror), "check who may write there, or use sudo"
        ) from None


def _check_ours(path: str) -> None:
    try:
        with open(path, opener=open_regular) as file:
            if file.readline().rstrip("\n") != units.MARK:
                raise ClawError(
                    "%s was not made by clawlite and is not overwritten" % path,
                    "give that unit another name",
                )
    except FileNotFoundError:
        pass


# -- remove, status


def remove(name: str, dry_run: bool = False, root=None) -> dict:
    """Remove the service of the agent *name*; its state stays.  Returns what ``install`` does,
    without user and next.  Raises ``ClawError``.
    """
    root = os.getuid() == 0 if root is None else root
    folder = SYSTEM if root else user_folder()
    paths = [
        path
        for path in (os.path.join(folder, unit) for unit in _units_of(name))
        if os.path.isfile(path)
    ]
    if not paths:
        raise _failure(
            "no service of an agent %s is installed in %s" % (name, folder),
            "list them: clawlite service status",
        )
    for path in paths:
        _check_ours(path)
    systemctl = ["systemctl"] if root else ["systemctl", "--user"]
    mains = [os.path.basename(path) for path in paths if not path.endswith("@.service")]
    commands = [systemctl + ["disable", "--now"] + mains, systemctl + ["daemon-reload"]]
    found = {
        "name": name,
        "scope": "system" if root else "user",
        "files": [{"path": path} for path in paths],
        "commands": commands,
        "dry_run": dry_run,
    }
    if not found["dry_run"]:
        _demand_systemd()
        run(commands[:1])
        for path in paths:
            os.remove(path)
        run(commands[1:])
    return found


def status(name) -> list:
    """Return [{name, scope, unit, file, enabled, active}] of the services that are installed, of
    the agent *name* alone if it is not None.

    enabled, active: systemctl's words, or "unknown" where no systemd runs.
    """
    found = []
    for scope, folder in (("system", SYSTEM), ("user", user_folder())):
        for file in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            agent, dot, kind = file.removeprefix("clawlite-").rpartition(".")
            if (
                file.startswith("clawlite-")
                and kind in ("socket", "service")
                and not agent.endswith("@")
                and name in (None, agent)
            ):
                words = ["systemctl"] + (["--user"] if scope == "user" else [])
                found.append(
                    {
                        "name": agent,
                        "scope": scope,
                        "unit": file,
                        "file": os.path.join(folder, file),
                        "enabled": _command_output(words + ["is-enabled", file]),
                        "active": _command_output(words + ["is-active", file]),
                    }
                )
    if name is not None and not found:
        raise _failure(
            "no service of an agent %s is installed" % name, "install it: clawlite service install"
        )
    return found


# -- talk


def socket_paths(name: str) -> list:
    """Return the paths at which the socket of the agent *name* may be: the user's own, then the
    system's.
    """
    own = os.environ.get("XDG_RUNTIME_DIR") or "/run/user/%d" % os.getuid()
    return ["%s/clawlite/%s.sock" % (place, name) for place in (own, "/run")]


def relay_lines(name: str, paths=None) -> int:
    """Pass lines between stdin and the agent's socket, and its words to stdout, until it leaves;
    return the exit code.
    """
    import select
    import socket

    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    error = None
    for path in paths or socket_paths(name):
        try:
            line.connect(path)
            break
        except OSError as e:
            # one that is there says more than one that is not
            error = e if error is None or e.errno != 2 else error
    else:
        if any(
            os.path.isfile(os.path.join(folder, "clawlite-%s.service" % name))
            for folder in (SYSTEM, user_folder())
        ):
            raise _failure(
                "the agent %s has no socket: it runs from boot on" % name,
                "write to it on a channel of its own, or on its terminal",
            )
        raise _failure(
            "the agent %s cannot be reached: %s" % (name, error.strerror),
            "is it installed? clawlite service status %s" % name,
        )
    with line:
        poll = select.poll()
        poll.register(line, select.POLLIN)
        poll.register(0, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                data = os.read(fd, 65536) if fd == 0 else line.recv(65536)
                if fd == 0 and data:
                    line.sendall(data)
                elif fd == 0:
                    poll.unregister(0)
                    line.shutdown(socket.SHUT_WR)
                elif data:
                    os.write(1, data)
                else:
                    return 0


def user_folder() -> str:
    return os.path.join(files.base_folder("XDG_CONFIG_HOME", ".config"), "systemd", "user")


def _demand_systemd() -> None:
    if not os.path.isdir(BOOTED):
        raise _failure(
            "systemd does not run on this machine",
            "have its init system run: clawlite run IMAGE",
        )


def run(commands: list) -> None:
    """Run *commands* one after the other.  Raises ``ClawError`` with what the first that fails
    said.
    """
    for words in commands:
        try:
            done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        except OSError as e:
            raise _failure("%s: %s" % (words[0], e.strerror), "is systemd installed?") from None
        if done.returncode:
            error_lines = done.stderr.strip().splitlines()
            raise _failure(
                "%s: %s"
                % (
                    " ".join(words),
                    error_lines[-1] if error_lines else "exit code %d" % done.returncode,
                ),
                "look at it with: systemctl status",
            )


def _command_output(words: list) -> str:
    try:
        output = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True
        ).stdout.strip()
    except OSError:
        output = ""
    return output if output and "\n" not in output else "unknown"


def _failure(message: str, hint: str) -> ClawError:
    error = ClawError(message, hint)
    error.exit_code = 1
    return error

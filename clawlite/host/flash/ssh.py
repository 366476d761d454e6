"""A machine behind ssh as the target of a flash: a Raspberry Pi, or any Linux with Python 3.11.

    ~/clawlite/NAME/a/, b/      two slots: clawlite/ (its runtime), claw.cbor, tools.py, agent
                                (starts it)
    ~/clawlite/NAME/current     a link to the slot that runs

1. The slot that ``current`` names is never touched.  The other one is filled, read back by hash and
   started once before the link is replaced: whatever breaks off, what ran before is still there,
   whole.
2. The system's own ``ssh`` does the talking, with the user's own settings, keys and known hosts;
   one connection a flash.
3. Every wait has a deadline: when it has passed, ssh is ended, and with it whatever waits for it.
"""

import json
import shlex
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

import msgspec

import clawlite.core
from clawlite.core.base.errors import ClawError
from clawlite.core.base.printable import printable
from clawlite.host.base.problems import disk_hint
from clawlite.host.boards import boards
from clawlite.host.builder import build
from clawlite.host.firmware.board_files import companions
from clawlite.host.flash import ssh_remote
from clawlite.host.flash.plan import DATA, OTHER, SOURCE, Plan, compare, digest
from clawlite.host.image.image_reader import open_image

PYTHON = (3, 11)
FOLDER = "clawlite"
_SUFFIXES = (".py", ".json", ".jsonl")  # of the package's files that run or are read there
_MOST_REPLY = 4 << 20  # bytes: a slot may have 4,096 files
_PIECE = 16384  # bytes between two steps of the progress bar
_NOISE = 65536  # bytes that a login may print before the far end speaks
# seconds: a login of a Pi Zero takes some 10; who types a password is given the time for it
_GREET_S, _GREET_PERSON_S = 25, 300
_ANSWER_S = 120  # on an old card, a sync of its cache may take a minute
_LONG_S = {"start": ssh_remote.START_S, "restart": 2 * ssh_remote.RESTART_S}  # beside _ANSWER_S
# Runs first over there, on any Python 3: what follows would be a syntax error on an old one.
_FIRST = b"""import sys
if sys.version_info < %r:
    sys.stdout.write(%r)
    found = tuple(sys.version_info[:2])
    sys.stdout.write('{"ok": {"python": [%%d, %%d], "model": null}}\\n' %% found)
    sys.stdout.flush()
    sys.stdin.buffer.read()
else:
    exec(sys.stdin.buffer.read(int(sys.stdin.buffer.readline())))
""" % (PYTHON, ssh_remote.GREETING.decode())
_FAR = "python3 -I -S -c " + shlex.quote(
    "import sys;exec(sys.stdin.buffer.read(int(sys.stdin.buffer.readline())))"
)
_OPTIONS = (
    "-T",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ServerAliveInterval=10",
    "-o",
    "ServerAliveCountMax=3",
)
AGENT = b"""#!/bin/sh
# clawlite's own, written by "clawlite flash --ssh": ./agent talks to it, ./agent ask TEXT asks once; also serve, trace, secrets, audit, doctor.
# The real folder, not the link to it: a flash meanwhile must not change what this one loads.
here=$(cd -P "$(dirname "$0")" && pwd) || exit 1
[ $# = 0 ] && set -- run
case $1 in
run | ask | serve | trace | secrets | audit) set -- "$@" "$here/claw.cbor" ;;
service) [ "$2" = install ] && shift 2 && set -- service install "$(dirname "$0")/claw.cbor" "$@" ;;
esac
exec python3 -I -S "$here/clawlite/__main__.py" "$@"
"""  # noqa: E501


_Hashes = dict[str, str]
_Ended = tuple[int | None, str]  # an exit code, and what was said


class _Facts(TypedDict):
    python: tuple[int, int]
    model: NotRequired[str | None]


class _Files(TypedDict):
    a: _Hashes
    b: _Hashes


class _Look(TypedDict):
    current: Literal["a", "b"] | None
    strangers: list[str]
    files: _Files
    free: int


# verb -> what the far end answers; of another verb nothing is read
_REPLIES: dict[str, Any] = {
    "facts": _Facts,
    "look": _Look,
    "digests": _Hashes,
    "start": _Ended,
    "restart": tuple[str | None, str | None] | None,
    "bench": str | _Ended,
}


class NotReached(ClawError):
    """Nobody answers there."""

    exit_code = 3


class NotAllowed(ClawError):
    """ssh does not let us in."""

    exit_code = 4


class Failed(ClawError):
    """The other machine could not do what it was asked to do."""

    exit_code = 1


def runtime() -> dict[str, bytes]:
    """Return {path: bytes} of what a Linux device needs to run images: the package and its data,
    without its host part.
    """
    top = Path(clawlite.core.__file__).parents[1]
    paths = list(top.glob("*.py"))
    for part in ("core", "protocols", "scan", "linux"):
        paths += [path for path in (top / part).rglob("*.*") if path.suffix in _SUFFIXES]
    return {f"clawlite/{path.relative_to(top).as_posix()}": path.read_bytes() for path in paths}


class Remote:
    """The machine *host*, as ssh names it; ``with Remote(host) as there:`` it is connected.

    Raises ``NotReached``, ``NotAllowed``, ``Failed``; ``ClawError`` for a host that ssh would take
    for an option."""

    where = "ssh"

    def __init__(self, host: str):
        if not host or host.startswith("-") or any(char.isspace() for char in host):
            raise ClawError(
                f"--ssh: expected a host as ssh takes it, got {host!r}",
                "such as pi@raspberrypi.local",
            )
        self.name, self.boards, self.next = host, [], ""
        self._ssh = self._errors = None
        self._agent, self._said, self._look = "", None, {}
        self._late = 0  # seconds after which ssh was ended, for want of an answer

    def __enter__(self):
        self._errors = tempfile.TemporaryFile()
        # nobody is there to be asked
        is_person = sys.stdin.isatty() and sys.stderr.isatty()
        batch = () if is_person else ("-o", "BatchMode=yes")
        try:
            self._ssh = subprocess.Popen(
                ["ssh", *_OPTIONS, *batch, "--", self.name, _FAR],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
            )
        except OSError as e:
            self._errors.close()
            raise ClawError(
                f"ssh: {e.strerror}", "install an ssh client: sudo apt install openssh-client"
            ) from None
        try:
            self._greet(_GREET_PERSON_S if is_person else _GREET_S)
            facts = self._ask("facts")
            if tuple(facts["python"]) < PYTHON:
                raise Failed(
                    f"{self.name}: Python {facts['python'][0]}.{facts['python'][1]}, "
                    f"expected {PYTHON[0]}.{PYTHON[1]} or later",
                    "put a system with it there, such as Raspberry Pi OS Bookworm or Ubuntu 24.04",
                )
            self.boards = [board_of(facts["model"])]
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for stream in (self._ssh.stdin, self._ssh.stdout):
            try:
                stream.close()
            except OSError:  # what is still buffered goes nowhere
                pass
        try:
            self._ssh.wait(5)
        except subprocess.TimeoutExpired:
            self._ssh.kill()
            self._ssh.wait()
        self._errors.close()

    # -- the line

    @contextmanager
    def _deadline(self, seconds: float):
        """End ssh when what is inside takes more than *seconds*: a wait for it ends with it."""

        def end():
            self._late = seconds
            self._ssh.kill()

        clock = threading.Timer(seconds, end)
        clock.daemon = True
        clock.start()
        try:
            yield
        finally:
            clock.cancel()

    def _greet(self, seconds: float):
        """Send the far end its program and wait until it says that it runs.  What the login prints
        before that may end without a line end.
        """
        source = Path(ssh_remote.__file__).read_bytes()
        self._send(b"%d\n%s%d\n%s" % (len(_FIRST), _FIRST, len(source), source))
        seen = bytearray()
        with self._deadline(seconds):
            while len(seen) < _NOISE:
                byte = self._ssh.stdout.read(1)  # it is buffered
                if not byte:
                    raise self._make_lost_error()
                seen += byte
                if seen.endswith(ssh_remote.GREETING):
                    return
        raise Failed(
            f"{self.name}: its login prints too much",
            "make its shell quiet for logins without a terminal",
        )

    def _send(self, data: bytes):
        try:
            with self._deadline(_ANSWER_S):
                self._ssh.stdin.write(data)
                self._ssh.stdin.flush()
        except OSError:
            raise self._make_lost_error() from None

    def _make_lost_error(self) -> ClawError:
        """Return the error for a connection that ended, with ssh's message about it."""
        if self._late:
            return NotReached(
                f"{self.name}: no answer for {self._late} s; what ran before is untouched",
                f"does this end at once: ssh {self.name} true - then flash again",
            )
        try:
            code = self._ssh.wait(5)
        except subprocess.TimeoutExpired:
            code = None
        self._errors.seek(0)
        said = self._errors.read(4096).decode("utf-8", "replace").strip().splitlines()
        last = said[-1].strip() if said else "the connection broke"
        if code == 127:
            return Failed(
                f"{self.name}: there is no python3", "install it there: sudo apt install python3"
            )
        if code != 255:
            return Failed(f"{self.name}: {last}; what ran before is untouched", "flash again")
        if any("Permission denied" in line or "verification failed" in line for line in said):
            return NotAllowed(f"{self.name}: {last}", f"make this work first: ssh {self.name}")
        return NotReached(f"{self.name}: {last}", f"is it on, and does this work: ssh {self.name}")

    def _ask(self, *request):
        self._send(json.dumps(request).encode() + b"\n")
        verb = request[0]
        return self._reply(verb, _ANSWER_S + _LONG_S.get(verb, 0))

    def _reply(self, verb: str, seconds: float = _ANSWER_S):
        """Return the value of the next reply, to *verb*."""
        with self._deadline(seconds):
            line = self._ssh.stdout.readline(_MOST_REPLY)
        if not line.endswith(b"\n"):
            raise self._make_lost_error() if len(line) < _MOST_REPLY else self._strange()
        try:
            reply = json.loads(line)
        except (ValueError, RecursionError):
            raise self._strange() from None
        if isinstance(reply, dict) and isinstance(reply.get("error"), str):
            raise Failed(
                f"{self.name}: {_show(reply['error'])}; what ran before is untouched",
                (disk_hint(reply.get("errno")) or "get write permission there")
                + ", and flash again",
            )
        if not isinstance(reply, dict) or "ok" not in reply:
            raise self._strange()
        try:
            msgspec.convert(reply["ok"], _REPLIES.get(verb, Any))
        except msgspec.ValidationError:
            raise self._strange() from None
        return reply["ok"]

    def _strange(self) -> ClawError:
        return Failed(
            f"{self.name}: it answers what clawlite does not understand; what ran before is "
            "untouched",
            f"look at what its logins print: ssh {self.name} true",
        )

    def bench(self, archive: bytes, words: list, said) -> list:
        """Run the clawlite in *archive*, a tar, with *words* there; ``said(line)`` gets each line
        of its stdout as it comes.  Return [exit code or None, stderr].  Raises ``ClawError``.
        """
        self._send(json.dumps(["bench", len(archive), words]).encode() + b"\n" + archive)
        while True:
            reply = self._reply("bench", _ANSWER_S + ssh_remote.BENCH_S)
            if not isinstance(reply, str):
                return reply
            said(reply)

    # -- what flash.py asks of a target

    def prepare(self, name: str, profile) -> Plan:
        """Return the plan that brings *name*, a manifest or an image, there.

        Raises ``ManifestErrors``, ``ClawError``: the agent's folder holds somebody's own files, or
        there is no room."""
        image = build.image_for(name, profile)
        self._agent = open_image(image).agent.name
        want = {
            **runtime(),
            **{place: Path(path).read_bytes() for path, place in companions(image)},
            "claw.cbor": Path(image).read_bytes(),
            "agent": AGENT,
        }
        base = f"{FOLDER}/{self._agent}"
        self.next = f"ssh -t {self.name} {base}/current/agent"
        self._look = look = self._ask("look", base)
        if look["strangers"]:
            raise ClawError(
                f"{self.name}: {base}/{_show(look['strangers'][0])} is not clawlite's, and "
                f"nothing beside it is written",
                "give that folder another name, then flash again",
            )
        made = plan(look, want)
        size = sum(len(data) for data in want.values())
        if made.steps and size > look["free"]:
            raise ClawError(
                f"{self.name}: {size} bytes of room are wanted, {look['free']} are free",
                "remove files that are not needed there",
            )
        return made

    def digests(self, paths: list) -> dict:
        """Return {path: SHA-256} of files that are there."""
        return self._ask("digests", list(paths))

    def do(self, step: tuple, tell) -> None:
        """Carry one step out, all but "verify".  tell: function(bytes that went).  Raises
        ``ClawError``.
        """
        what, path = step[:2]
        if what == "write":
            data = step[DATA]
            self._send(json.dumps(["write", path, len(data)]).encode() + b"\n")
            for at in range(0, len(data), _PIECE):
                self._send(data[at : at + _PIECE])
                tell(len(data[at : at + _PIECE]))
            self._reply("write")
        elif what == "copy":
            self._ask("copy", step[SOURCE], path)
        elif what == "start":
            code, said = self._ask("start", path)
            self._said = said.strip()
            if code != 0 or " is ready. /help lists the commands." not in said:
                raise Failed(
                    f"{self.name}: the new agent did not start; it said: {self._said or 'nothing'}",
                    "what ran before is untouched; mend it and flash again",
                )
        else:
            self._ask(what, path)

    def boot(self) -> str:
        """Restart the agent's service if it has one; return the output of the agent's trial start.
        Raises ``Failed``.
        """
        unit = f"clawlite-{self._agent}.service"
        done = self._ask("restart", unit)
        where, problem = done or (None, None)
        if problem:
            sudo = "sudo systemctl" if where == "--system" else "systemctl --user"
            raise Failed(
                f"{self.name}: the new agent is there, and {unit} still runs the old "
                f"one: {problem}",
                f"ssh -t {self.name} {sudo} restart {unit}",
            )
        return self._said


def _show(text: str) -> str:
    """Return what the other machine said, such that it drives no terminal."""
    return printable(text[:1000].encode("utf-8", "replace")).decode()


def board_of(model) -> str:
    """Return the name of the board profile for a device tree's *model* (or None): "linux" when
    none fits.
    """
    found = [
        profile
        for profile in boards.load_all()
        if profile.runtime == "cpython"
        and model
        and (model + " ").startswith(profile.title.replace("+", " Plus") + " ")
    ]
    return max(found, key=lambda profile: len(profile.title)).name if found else "linux"


def plan(look: dict, want: dict) -> Plan:
    """Return what brings *want*, {path: bytes}, into the slot that does not run; no steps when the
    one that runs has it.

    look  as ``ssh_remote.Remote.look`` returns it
    """
    boots = look["current"] if look["files"].get(look["current"]) else None
    have, slot = look["files"].get(boots, {}), OTHER[boots]
    there = look["files"][slot]
    made = Plan(boots, boots, compare(have, want, "/"))
    if all(change["change"] == "same" for change in made.changes):
        return made
    made.slot = slot
    made.steps = [("remove", f"{slot}/{path}") for path in sorted(set(there) - set(want))]
    for path, data in sorted(want.items()):
        if there.get(path) != digest(data):
            same = have.get(path) == digest(data)
            made.steps.append(
                ("copy", f"{slot}/{path}", data, f"{boots}/{path}")
                if same
                else ("write", f"{slot}/{path}", data)
            )
    made.steps += [
        ("verify", {f"{slot}/{path}": digest(data) for path, data in want.items()}),
        ("start", slot),
        ("switch", slot),
    ]
    return made

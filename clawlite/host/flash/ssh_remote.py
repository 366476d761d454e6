"""The far end of ``clawlite flash --ssh``: sent over the line, run by the other machine's own
Python, kept nowhere.

1. The standard library alone, and nothing of this package: none of it need be there.
2. A request is one line of JSON [verb, arguments...]; a write's bytes follow it.  A reply is one
   line: {"ok": value} or {"error": text, "errno": number or null}.  Before the reply of "bench",
   which is a list, each line that its clawlite prints comes as {"ok": text}.
3. All paths are relative to one folder, an agent's.  ``current`` there is a link to the slot that
   runs, and is replaced whole.
"""

import errno
import hashlib
import io
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading

GREETING = b"clawlite there 1\n"
OURS = ("a", "b", "current", "current.new")
MOST_FILES = 4096  # in one slot
START_S = 60  # a Pi Zero takes some 5 s for a first start
RESTART_S = 120  # systemd itself gives up a stop after 90
BENCH_S = 3600  # a Pi Zero takes minutes for all suites
_SAID = 4000  # characters of an agent's output that are kept


def serve(source, target) -> None:
    """Answer requests from *source* on *target*, two binary files, until *source* ends."""
    target.write(GREETING)
    target.flush()
    there = Remote(source, target)
    while True:
        line = source.readline()
        if not line.endswith(b"\n"):
            return
        verb, *arguments = json.loads(line)
        try:
            reply = {"ok": getattr(there, verb)(*arguments)}
        except (OSError, ValueError) as e:
            reply = {
                "error": "%s: %s" % (e.filename, e.strerror)
                if getattr(e, "filename", None)
                else str(e),
                "errno": getattr(e, "errno", None),
            }
        _tell(target, reply)


def _tell(target, reply: dict) -> None:
    target.write(json.dumps(reply).encode() + b"\n")
    target.flush()


class Remote:
    """The requests of the local side, one method each."""

    def __init__(self, source, target):
        self._source, self._target = source, target
        self._base = ""

    def facts(self) -> dict:
        """Return facts about this machine: python [major, minor], model or None, machine, home,
        root (bool).
        """
        try:
            with open("/proc/device-tree/model", "rb") as file:
                model = file.read(256).rstrip(b"\0").decode("utf-8", "replace")
        except OSError:
            model = None
        return {
            "python": list(sys.version_info[:2]),
            "model": model,
            "machine": platform.machine(),
            "home": os.path.expanduser("~"),
            "root": os.getuid() == 0,
        }

    def look(self, base: str) -> dict:
        """Make *base* the folder of all that follows; return its current slot or None, the
        files' hashes by slot, bytes free, strangers.
        """
        self._base = os.path.join(os.path.expanduser("~"), base)
        names = os.listdir(self._base) if os.path.isdir(self._base) else []
        link = os.path.join(self._base, "current")
        current = os.readlink(link) if os.path.islink(link) else None
        parent = self._base
        while not os.path.isdir(parent):
            parent = os.path.dirname(parent)
        return {
            "current": current if current in ("a", "b") else None,
            "strangers": sorted(name for name in names if name not in OURS),
            "files": {slot: self._files(slot) for slot in ("a", "b")},
            "free": shutil.disk_usage(parent).free,
        }

    def _files(self, slot: str) -> dict:
        found, top = {}, os.path.join(self._base, slot)
        for folder, folders, names in os.walk(top):
            folders[:] = [name for name in folders if name != "__pycache__"]
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path) and len(found) < MOST_FILES:
                    found[os.path.relpath(path, top)] = _digest(path)
        return found

    def write(self, path: str, size: int):
        """Write the *size* bytes that follow the request to *path*; a script may be run then."""
        try:
            with self._open(path) as file:
                while size:
                    data = self._source.read(min(size, 65536))
                    if not data:
                        raise OSError("the connection broke")
                    size -= len(data)
                    file.write(data)
        finally:
            # so that the next request is found
            while size and self._source.read(min(size, 65536)):
                size -= min(size, 65536)

    def _full(self, path: str) -> str:
        """Return where *path* is.  Raises ``OSError`` for a link on its way: behind it are files of
        somebody else.
        """
        full = self._base
        for part in path.split("/"):
            full = os.path.join(full, part)
            if full != os.path.join(self._base, path) and os.path.islink(full):
                raise OSError(errno.ELOOP, "is a link, and nothing is written through one", full)
        return full

    def _open(self, path: str):
        full = self._full(path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        if os.path.lexists(full):
            os.remove(full)
        return os.fdopen(
            os.open(
                full,
                os.O_WRONLY | os.O_CREAT | os.O_EXCL,
                0o755 if path.endswith("/agent") else 0o644,
            ),
            "wb",
        )

    def copy(self, source: str, path: str):
        with open(self._full(source), "rb") as old, self._open(path) as new:
            shutil.copyfileobj(old, new)

    def remove(self, path: str):
        os.remove(self._full(path))

    def digests(self, paths: list) -> dict:
        """Return {path: SHA-256} of files that are there."""
        full = {path: self._full(path) for path in paths}
        return {path: _digest(name) for path, name in full.items() if os.path.isfile(name)}

    def start(self, slot: str) -> list:
        """Start the slot's agent once, without input and with a state folder of its own; return
        [exit code or None, its output].
        """
        with tempfile.TemporaryDirectory(prefix="clawlite-start-") as state:
            agent = subprocess.Popen(
                [os.path.join(self._base, slot, "agent")],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**os.environ, "CLAWLITE_STATE": state},
                start_new_session=True,
            )
            try:
                said = agent.communicate(timeout=START_S)[0]
                code = agent.returncode
            except subprocess.TimeoutExpired:
                code = None
            finally:
                try:
                    os.killpg(agent.pid, signal.SIGKILL)
                except OSError:
                    pass
            if code is None:
                said = agent.communicate()[0]
        return [code, said.decode("utf-8", "replace")[-_SAID:]]

    def bench(self, size: int, words: list) -> list:
        """Unpack the archive of *size* bytes that follows, run its clawlite with *words*, and send
        each line of its stdout at once; return [exit code or None, stderr].

        Nothing of it stays.
        """
        data = self._source.read(size)
        if len(data) < size:
            raise OSError("the connection broke")
        with (
            tempfile.TemporaryDirectory(prefix="clawlite-bench-") as folder,
            tempfile.TemporaryFile() as errors,
        ):
            with tarfile.open(fileobj=io.BytesIO(data)) as archive:
                archive.extractall(
                    folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {})
                )
            main = os.path.join(folder, "clawlite", "__main__.py")
            code = self._lines_of([sys.executable, "-I", "-S", main, *words], errors)
            if code is None:
                return [None, "they took more than %d s" % BENCH_S]
            errors.seek(0)
            return [code, errors.read().decode("utf-8", "replace")[-_SAID:]]

    def _lines_of(self, command: list, errors):
        """Run *command*, its stderr in the file *errors*, and send what it prints; return its exit
        code, None when it took too long.
        """
        running = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True
        )
        clock = threading.Timer(BENCH_S, running.kill)
        clock.start()
        try:
            with running:  # waits for its end
                try:
                    for line in running.stdout:
                        _tell(self._target, {"ok": line})
                except OSError:  # nobody is there any more: it ends, and removes its files
                    running.send_signal(signal.SIGINT)
                    raise
            return running.returncode if clock.is_alive() else None
        finally:
            clock.cancel()

    def switch(self, slot: str):
        """Make *slot* the one that runs: what it holds is on the disk before the link is
        replaced.
        """
        os.sync()
        new = os.path.join(self._base, "current.new")
        if os.path.lexists(new):
            os.remove(new)
        os.symlink(slot, new)
        os.replace(new, os.path.join(self._base, "current"))
        folder = os.open(self._base, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def restart(self, unit: str):
        """Restart *unit* where it runs; return [scope, error text or ""], or None when no such
        service runs.
        """
        for scope in ("--user", "--system"):

            def systemctl(*words):
                return subprocess.run(
                    ["systemctl", scope, "--no-ask-password", *words, unit],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    timeout=RESTART_S,
                )

            try:
                if systemctl("is-active", "--quiet").returncode == 0:
                    done = systemctl("restart")
                    return [
                        scope,
                        ""
                        if done.returncode == 0
                        else (done.stderr.strip().splitlines() or ["systemctl restart failed"])[-1],
                    ]
            except OSError:  # no systemd here
                return None
            except subprocess.TimeoutExpired:
                return [scope, "systemctl did not end within %d s" % RESTART_S]
        return None


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        digest = hashlib.sha256()
        while True:
            data = file.read(65536)
            if not data:
                return digest.hexdigest()
            digest.update(data)


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)

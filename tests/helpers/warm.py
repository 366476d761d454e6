"""Commands of clawlite, forked from a process that has already imported what they need.

A start of ``clawlite build`` takes 0.2 s of processor time, nine tenths of it for imports. So each
process of a run has one helper process, which imports the host's part and forks for every command.

1. The command is a process of its own, with the arguments, environment, folder, umask and stdio
   that it was started with; it ends as any Python program does.
2. What Python reads before the first import cannot be given later. A command with another such
   variable of the environment is started as usual (``run`` returns None); so is one beside
   another that has not ended.
3. Commands of a device, which import little and by themselves, are started as usual, but for those
   of a swarm.

``test_warm.py`` checks that both ways give the same.
"""

import array
import gc
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = (
    "boards build check conformance discover firmware flash gateway inspect new ports swarm tools "
    "wifi"
).split()
MOST_INPUT = 32768  # a pipe takes more at once
MOST_REQUEST = 65536  # so does a socket
# Python and the C library read them at their start, clawlite at its first import.
EARLY = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC", "CLAWLITE_NO_EXT", "CLAWLITE_REQUIRE_EXT", "TZ")
_busy = threading.Lock()
_kept = []  # the process that forks, and the socket to it


def pids() -> set:
    """Return the pid of the process that forks, as text, in a set; an empty one before."""
    return {str(process.pid) for process, _ in _kept}


def end():
    """End the process that forks.  It is not asked to: it would go on for as long as anybody else
    holds the other end of its socket, such as a child that a test has forked.
    """
    while _kept:
        process, channel = _kept.pop()
        channel.close()
        process.kill()
        process.wait()


def _early(env: dict) -> dict:
    return {key: value for key, value in env.items() if key.startswith(EARLY)}


def _channel():
    """Return the socket to the process that forks, which is started when there is none."""
    if not _kept:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            words = [sys.executable, __file__, str(theirs.fileno())]
            env = dict(os.environ, PYTHONPATH=str(ROOT), PYTHONUNBUFFERED="")
            process = subprocess.Popen(
                words, env=env, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], cwd=ROOT
            )
        process.early = _early(env)
        _kept.append((process, ours))
    return _kept[0]


def run(args: list, cwd, stdin: bytes, env: dict, seconds: float):
    """Return (exit code, stdout, stderr) of ``clawlite ARGS``, or None: start it as usual."""
    if not args or args[0] not in COMMANDS or len(stdin) > MOST_INPUT:
        return None
    if not _busy.acquire(blocking=False):
        return None
    try:
        process, channel = _channel()
        if process.early != _early(env):
            return None
        umask = os.umask(0o022)
        os.umask(umask)
        request = json.dumps([args, os.fspath(cwd), env, umask]).encode()
        return _run(channel, request, stdin, seconds) if len(request) <= MOST_REQUEST else None
    except BaseException:  # at the limit of a test, too: what is still to come is nobody's answer
        end()
        raise
    finally:
        _busy.release()


def _run(channel, request: bytes, stdin: bytes, seconds: float):
    pipes = [os.pipe() for _ in range(3)]
    (to_read, to_write), (out, into_out), (err, into_err) = pipes
    fds = array.array("i", (to_read, into_out, into_err))
    channel.sendmsg([request], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
    for fd in fds:
        os.close(fd)
    try:
        os.write(to_write, stdin)
    except BrokenPipeError:  # it has ended already
        pass
    os.close(to_write)
    try:
        pid = int(channel.recv(64))
        said = _read_all((out, err), time.monotonic() + seconds)
        if said is None:
            os.kill(pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired(request.decode(), seconds)
        return int(channel.recv(64)), *said
    finally:
        os.close(out)
        os.close(err)


def _read_all(fds: tuple, until: float):
    """Return what is read from each of *fds* to its end, or None when that takes too long."""
    said = {fd: b"" for fd in fds}
    with selectors.DefaultSelector() as ready:
        for fd in fds:
            ready.register(fd, selectors.EVENT_READ)
        while ready.get_map():
            found = ready.select(max(0, until - time.monotonic()))
            if not found:
                return None
            for key, _ in found:
                data = os.read(key.fd, 65536)
                said[key.fd] += data
                if not data:
                    ready.unregister(key.fd)
    return tuple(said.values())


# -- the process that forks


def _load():
    """Import what the commands import before their work begins."""
    import cbor2  # noqa: F401
    import yaml  # noqa: F401

    import clawlite.command
    import clawlite.command_help
    import clawlite.host.builder.build
    import clawlite.host.builder.check
    import clawlite.host.builder.inspection  # noqa: F401

    for name in ("swarm", "swarm_commands"):
        for module in pkgutil.iter_modules([str(ROOT / "clawlite/linux" / name)]):
            importlib.import_module(f"clawlite.linux.{name}.{module.name}")


def _fork_for_ever(channel):
    """Return the request of a command, with its descriptors, in its own process; None in this
    one, when the tests have ended.
    """
    while True:
        data, fds, _, _ = socket.recv_fds(channel, 1 << 20, 3)
        if not data:
            return None
        pid = os.fork()
        if pid == 0:
            channel.close()
            return json.loads(data), fds
        for fd in fds:
            os.close(fd)
        channel.send(b"%d" % pid)
        channel.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def _become(args: list, cwd: str, env: dict, umask: int, fds: list):
    os.umask(umask)
    os.chdir(cwd)
    for number, fd in enumerate(fds):
        os.dup2(fd, number, inheritable=True)
        os.close(fd)
    for key in set(os.environ) - set(env):
        del os.environ[key]
    os.environ.update(env)
    sys.argv[:] = [str(ROOT / "clawlite/__main__.py"), *args]
    sys.path[0] = os.getcwd()


def main():
    channel = socket.socket(fileno=int(sys.argv[1]))
    _load()
    gc.collect()
    gc.freeze()
    request = _fork_for_ever(channel)
    if request is None:
        return 0
    _become(*request[0], request[1])
    from clawlite.command import main

    return main()


if __name__ == "__main__":
    sys.exit(main())

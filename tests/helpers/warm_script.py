"""Python scripts forked from a process that has imported what they need: for those whose imports
take ten times as long as their work, such as the official SDK of MCP.

``words(python, script, *args)`` is a command line like any other.  Its program, this file, gives
its stdio, folder, environment and umask to a process that forks, and ends as the script ends.

1. Each process of a run starts one process that forks for each interpreter, when it is needed.
2. The script is a process of its own.  It is killed when the program above has been killed.
3. The processes that fork are no leftovers: they end with the run, and when it is killed, too.
"""

import contextlib
import json
import os
import socket
import sys

# What the scripts of tests/mcp_sdk_*.py import, and what the SDK imports when it is used.
IMPORTS = (
    "anyio._backends._asyncio asyncio concurrent.futures.thread httpcore httpcore2 httpx httpx2 "
    "mcp mcp.client.client mcp.client.stdio mcp.client.streamable_http mcp.server "
    "mcp.server.fastmcp mcp.server.mcpserver mcp.server.streamable_http "
    "mcp.server.streamable_http_manager mcp_types pydantic uvicorn uvicorn.lifespan.on "
    "uvicorn.loops.asyncio uvicorn.loops.auto uvicorn.protocols.http.auto "
    "uvicorn.protocols.http.h11_impl uvicorn.protocols.websockets.auto"
).split()
_LENGTH = 10  # digits in front of a request
_started = {}  # interpreter -> (the process that forks, path of its socket)


def words(python: str, script, *args) -> list:
    """Return the command line that runs *script*, a file, by *python*."""
    if not hasattr(os, "pidfd_open"):
        return [python, str(script), *args]
    if python not in _started:
        _started[python] = _start(python)
    return [sys.executable, "-IS", __file__, _started[python][1], str(script), *args]


def pids() -> set:
    """Return the pids of the processes that fork, as texts."""
    return {str(process.pid) for process, _ in _started.values()}


def end():
    """End the processes that fork."""
    while _started:
        process, _ = _started.popitem()[1]
        process.kill()
        process.communicate()


def _start(python: str) -> tuple:
    import subprocess

    import made_folders

    path = os.path.join(made_folders.folder("warm-"), "socket")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        process = subprocess.Popen(
            [python, __file__, str(listener.fileno())],
            env=dict(os.environ, PYTHONUNBUFFERED=""),
            stdin=subprocess.PIPE,  # at its end that process ends, too
            pass_fds=[listener.fileno()],
        )
    return process, path


# -- the program that is started


def _hand_over(path: str, words: list) -> int:
    """Have *words*, a script and its arguments, run; return its exit code."""
    umask = os.umask(0o022)
    os.umask(umask)
    data = json.dumps([words, os.getcwd(), dict(os.environ), umask]).encode()
    with socket.socket(socket.AF_UNIX) as channel:
        channel.connect(path)
        socket.send_fds(channel, [b"%0*d" % (_LENGTH, len(data))], [0, 1, 2])
        channel.sendall(data)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):  # their other ends see what the script does with them
            os.dup2(nowhere, fd)
        code = int(channel.recv(16) or b"1")
    return code if code >= 0 else 128 - code


# -- the process that forks


def _load():
    """Import what the scripts import, of which one version of the SDK has not all."""
    import importlib

    for name in IMPORTS:
        try:
            importlib.import_module(name)
        except ImportError:
            pass


def _request(channel) -> tuple:
    """Return (request, descriptors) of a program that was started; None for one that has gone."""
    length, fds, _, _ = socket.recv_fds(channel, _LENGTH, 3)
    data = b""
    while length and len(data) < int(length):
        part = channel.recv(int(length) - len(data))
        if not part:
            length = b""
        data += part
    if length:
        return json.loads(data), fds
    for fd in fds:
        os.close(fd)
    return None, []


def _fork_for_ever(listener):
    """Return (request, descriptors) in the process of each script; None in this one, at the end."""
    import selectors

    ready = selectors.DefaultSelector()
    ready.register(listener, selectors.EVENT_READ)
    ready.register(0, selectors.EVENT_READ)
    while True:
        for key, _ in ready.select():
            if key.fd == 0:
                return None
            if key.fileobj is listener:
                channel = listener.accept()[0]
                request, fds = _request(channel)
                pid = request and os.fork()
                if pid == 0:
                    ready.close()
                    return request, fds
                for fd in fds:
                    os.close(fd)
                if request:
                    _follow(ready, channel, pid)
            else:
                key.data()  # of _follow


def _follow(ready, channel, pid: int):
    """Tell the program at *channel* how the process *pid* ends, and end that with the program."""
    import selectors
    import signal

    process, is_there = os.pidfd_open(pid), True

    def gone():
        nonlocal is_there
        if is_there:
            is_there = False
            ready.unregister(channel)
            signal.pidfd_send_signal(process, signal.SIGKILL)

    def ended():
        nonlocal is_there
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        ready.unregister(process)
        os.close(process)
        if is_there:
            is_there = False
            ready.unregister(channel)
            with contextlib.suppress(OSError):  # it has just gone
                channel.send(b"%d" % code)
        channel.close()

    ready.register(channel, selectors.EVENT_READ, gone)
    ready.register(process, selectors.EVENT_READ, ended)


def _become(request: list, fds: list):
    """Run the script of *request* in this process."""
    import runpy

    words, cwd, env, umask = request
    os.umask(umask)
    os.chdir(cwd)
    for number, fd in enumerate(fds):
        os.dup2(fd, number, inheritable=True)
        os.close(fd)
    # Those of the process that forks know whether it could seek in what it had there.
    sys.stdin = open(0, closefd=False)
    sys.stdout = open(1, "w", closefd=False)
    sys.stderr = open(2, "w", errors="backslashreplace", buffering=1, closefd=False)
    os.environ.clear()
    os.environ.update(env)
    sys.argv[:] = words
    sys.path[0] = os.path.dirname(words[0])
    runpy.run_path(words[0], run_name="__main__")


def _serve(fd: int) -> int:
    import gc

    _load()
    gc.collect()
    gc.freeze()
    found = _fork_for_ever(socket.socket(fileno=fd))
    if found is not None:
        _become(*found)
    return 0


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit(_hand_over(sys.argv[1], sys.argv[2:]))
    sys.exit(_serve(int(sys.argv[1])))

"""Hosts of engines: as root and as an ordinary user, in profile N and in profile L."""

import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import made_folders
import pytest
from sandboxes import NOBODY, WAIT_S

ROOT = Path(__file__).resolve().parents[2]
HOST = ROOT / "tests" / "helpers" / "sandbox_host.py"
CONTROLLERS = ("cpu", "memory", "pids")  # as cgroups.py names them
LACKS = {"N": [], "L": ["userns"]}


def _reachable_python() -> str:
    """Return a Python >= 3.11 that any user may run."""
    for path in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        if os.path.exists(path):
            done = (
                subprocess.run(
                    [path, "-I", "-c", "import sys, ctypes; print(sys.version_info >= (3, 11))"],
                    capture_output=True,
                    text=True,
                    user=NOBODY,
                    group=NOBODY,
                    extra_groups=[],
                )
                if _may_run(path)
                else None
            )
            if done is not None and done.stdout == "True\n":
                return path
    return ""


def _may_run(path: str) -> bool:
    real = Path(os.path.realpath(path))
    return all(folder.stat().st_mode & 1 for folder in [real, *real.parents])


class Host:
    """A ``sandbox_host.py``.  *folder*: its own, with ``out`` (nobody's business), ``ro``,
    ``ws`` and ``state`` in it.
    """

    def __init__(self, folder: Path, process, profile: str, root: bool):
        self.folder, self._process, self.profile, self.root = folder, process, profile, root

    def ask(self, **asked) -> dict:
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the host has gone"
        return json.loads(line)

    def run(self, job: list, **profile) -> tuple:
        """Return (True, value) or (False, [class, code, message, hint, data])."""
        return tuple(self.ask(profile=profile, job=job)["outcome"])

    def shell(self, text: str, **profile) -> dict:
        good, value = self.run(["command", ["sh", "-c", text]], **profile)
        assert good, value
        return value

    def python(self, body: str, **profile):
        """Return what *body*, the indented lines of a function, returns inside; ``tried(what)``
        there gives the errno's name or "open".
        """
        good, value = self.run(
            ["function", "tools.py", PRELUDE + "def f():\n" + body, "f", {}], **profile
        )
        assert good, value
        return value


PRELUDE = """
import errno, os, sys, ctypes
from clawlite.linux.confinement import syscalls
def tried(function, *arguments):
    try:
        function(*arguments)
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e.errno))
    return "open"
def system_call(name, *arguments):
    return tried(syscalls.call, name, *arguments)
"""


def needs(profile: str):
    """Skip the test where the kernel under test (tests/kernels) lets nobody build *profile*."""
    if profile not in os.environ.get("CLAWLITE_PROFILES", "NL"):
        pytest.skip("the kernel under test is without what profile %s needs" % profile)


@functools.cache
def _packages(controllers: tuple) -> Path:
    """Return a folder with clawlite that any user may read and none of the tests' may change, and
    whose engine looks for *controllers*; it is gone when the tests end.

    What Python compiled comes along: else each of the hosts compiles it anew, for 0.2 s.
    """
    packages = Path(made_folders.folder("sandbox-of-tests-"))
    shutil.copytree(
        ROOT / "clawlite",
        packages / "clawlite",
        ignore=shutil.ignore_patterns("*.so", "host", "*.code*"),
    )
    shutil.copy(HOST, packages)
    shutil.copy(ROOT / "tests" / "helpers" / "sandboxes.py", packages)
    if controllers != CONTROLLERS:
        source = packages / "clawlite" / "linux" / "confinement" / "cgroups.py"
        text, wanted = source.read_text(), "CONTROLLERS = %r" % (CONTROLLERS,)
        assert wanted.replace("'", '"') in text
        source.write_text(
            text.replace(wanted.replace("'", '"'), "CONTROLLERS = %r" % (controllers,))
        )
    for path in [packages, *packages.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    return packages


@contextlib.contextmanager
def host(profile: str, root: bool, faults=None, group=None, workspace="ws", proc="", **more):
    """Run a Host; it and its folder are gone afterwards.

    group  (folder of a control group in which it starts, controllers that it looks for), or None;
           workspace  below its folder
    proc   options of a /proc of its own, for which the tests have to be root's
    """
    if faults is None:
        needs(profile)
    if root and os.geteuid():
        pytest.skip("these tests do not run as root here")
    python = sys.executable if root or os.geteuid() else _reachable_python()
    if not python:
        pytest.skip("no Python >= 3.11 that another user than root may run")
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    try:
        folder.chmod(0o755)
        for name in ("out", "ro", "ws", "state"):
            (folder / name).mkdir()
        (folder / "out" / "secret").write_text("canary-out")
        (folder / "ro" / "config").write_text("ro-config")
        (folder / "ws" / "private").mkdir()
        (folder / "ws" / "private" / "key").write_text("canary-key")
        (folder / "ws" / "hello").write_text("hello-benign")
        packages = _packages(tuple(group[1]) if group else CONTROLLERS)
        drop = {} if root or os.geteuid() else {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        if os.geteuid() == 0:
            for top, names, files in os.walk(folder):
                for name in [top] + [os.path.join(top, n) for n in names + files]:
                    os.chown(name, NOBODY, NOBODY)
        config = {
            "workspace": str(folder / workspace),
            "hidden": [str(folder / "state")],
            "faults": LACKS[profile] if faults is None else faults,
            "more": more,
        }
        env = dict(os.environ, SECRET_KEY="canary-environment", TMPDIR="/tmp")
        command = [python, str(packages / "sandbox_host.py"), str(packages), json.dumps(config)]
        if proc:
            if os.geteuid():
                pytest.skip("these tests do not run as root here")
            command = [
                "unshare",
                "--mount",
                "sh",
                "-c",
                'mount -t proc -o %s proc /proc && exec "$@"' % proc,
                "sh",
                *(
                    ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
                    if drop
                    else []
                ),
                *command,
            ]
            drop = {}
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=env,
            cwd=folder,
            **drop,
        ) as process:
            try:
                # by who may; its engine is not started before it is asked something
                if group:
                    (Path(group[0]) / "cgroup.procs").write_text(str(process.pid))
                yield Host(folder, process, profile, root)
            finally:
                process.stdin.close()
                process.wait(WAIT_S)
    finally:
        shutil.rmtree(folder)

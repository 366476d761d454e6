"""What a virtual machine does: prepare the kernel as the job says, tell what the sandbox finds, run tests as root and as a maker.

    {"sysctl": {name: value}, "runs": [{"user": "root" | "maker", "profiles": "NL", "arguments": [pytest's]}]}

Lines that begin with ``@@`` are for ``run.py``.
"""
import json
import os
import pathlib
import platform
import subprocess
import sys
import time

MAKER = 1000
GROUP = "/sys/fs/cgroup/clawlite.service"


def main():
    job = json.loads(pathlib.Path("/job.json").read_text())
    for name, value in job["sysctl"].items():
        pathlib.Path("/proc/sys", name.replace(".", "/")).write_text(value)
    words = pathlib.Path("/sys/fs/cgroup/cgroup.controllers").read_text().split()
    for name in {"cpu", "memory", "pids"} & set(words):
        pathlib.Path("/sys/fs/cgroup/cgroup.subtree_control").write_text("+" + name)
    say("kernel", {"release": platform.release(), "machine": platform.machine(), "python": platform.python_version(), "bits": 64 if sys.maxsize >> 32 else 32,
                   "controllers": words, "lsm": lsm()})
    for user in ("root", "maker"):
        delegate(user)
        say("doctor", dict(sandbox_of(user), user=user))
        os.rmdir(GROUP)
    for run in job["runs"]:
        start = time.monotonic()
        code = test(run)
        say("run", {"user": run["user"], "code": code, "seconds": round(time.monotonic() - start), "lines": results()})
    say("end", {})


def say(kind: str, what: dict):
    print("\n@@%s %s" % (kind, json.dumps(what)), flush=True)


def lsm() -> str:
    os.makedirs("/run/security", exist_ok=True)
    if subprocess.run(["mount", "-t", "securityfs", "none", "/run/security"], stderr=subprocess.DEVNULL).returncode:
        return ""
    text = pathlib.Path("/run/security/lsm").read_text()
    subprocess.run(["umount", "/run/security"], check=True)
    return text


def delegate(user: str):
    """Make the group that systemd would (``Delegate=yes``)."""
    os.mkdir(GROUP)
    os.setxattr(GROUP, "trusted.delegate", b"1")
    if user == "maker":
        for name in ("", "/cgroup.procs", "/cgroup.subtree_control", "/cgroup.threads"):
            os.chown(GROUP + name, MAKER, MAKER)


def sandbox_of(user: str) -> dict:
    """Return what ``clawlite doctor --json`` says of the sandbox."""
    done = subprocess.run(["sh", "-c", 'echo $$ > %s/cgroup.procs; exec setpriv --no-new-privs %s python3 -m clawlite doctor --json'
                           % (GROUP, "--reuid 1000 --regid 1000 --clear-groups" if user == "maker" else "")],
                          stdout=subprocess.PIPE, env=environment(user), cwd="/checkout")
    return next((row for row in json.loads(done.stdout or "[]") if row["check"] == "sandbox"), {"state": "none"})


def environment(user: str) -> dict:
    return dict(os.environ, HOME="/home/maker" if user == "maker" else "/", PYTHONPATH="/checkout", CLAWLITE_NO_EXT="1", CLAWLITE_RESULTS="/tmp/results",
                CLAWLITE_CACHE="/tmp/cache", CLAWLITE_WAIT_S="300")


def results() -> list:
    path = pathlib.Path("/tmp/results")
    lines = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return lines


def test(run: dict) -> int:
    environ = dict(environment(run["user"]), CLAWLITE_PROFILES=run["profiles"])
    more = {"user": MAKER, "group": MAKER, "extra_groups": []} if run["user"] == "maker" else {}
    os.chown("/home/maker", MAKER, MAKER)
    return subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", "--color=no", "-rfE", *run["arguments"]], env=environ, cwd="/checkout",
                          stderr=subprocess.STDOUT, **more).returncode


if __name__ == "__main__":
    main()

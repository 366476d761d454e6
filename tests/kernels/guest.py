"""What a virtual machine does: prepare the kernel as the job says, tell what the sandbox finds, run
tests as root and as a maker.

    {"sysctl": {name: value}, "runs": [{"user": "root" | "maker", "profiles": "NL", "arguments":
    [pytest's]}],
     "proc": options of /proc, "cgroups": "v2" | "v1" | "hybrid", "apparmor": the rules that maker
     is under, or ""}

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
UNDER = "maker-of-kernels"  # the name of maker's AppArmor profile
BASE = (
    "  file, network, unix, signal, ptrace, mount, remount, umount, pivot_root, "
    "change_profile, mqueue, io_uring,\n"
)


def main():
    job = json.loads(pathlib.Path("/job.json").read_text())
    for name, value in job["sysctl"].items():
        pathlib.Path("/proc/sys", name.replace(".", "/")).write_text(value)
    if job["proc"]:
        subprocess.run(["mount", "-o", "remount," + job["proc"], "/proc"], check=True)
    words = groups(job["cgroups"])
    say(
        "kernel",
        {
            "release": platform.release(),
            "machine": platform.machine(),
            "python": platform.python_version(),
            "bits": 64 if sys.maxsize >> 32 else 32,
            "page": os.sysconf("SC_PAGE_SIZE"),
            "controllers": words,
            "lsm": lsm(),
        },
    )
    if job["apparmor"]:
        confine(job["apparmor"])
    for user in ("root", "maker"):
        if words:
            delegate(user)
        say("doctor", dict(sandbox_of(user, job), user=user))
        if words:
            os.rmdir(GROUP)
    for run in job["runs"]:
        start = time.monotonic()
        code = test(run, job)
        say(
            "run",
            {
                "user": run["user"],
                "code": code,
                "seconds": round(time.monotonic() - start),
                "lines": results(),
            },
        )
    say("end", {})


def say(kind: str, what: dict):
    print("\n@@%s %s" % (kind, json.dumps(what)), flush=True)


def groups(kind: str) -> list:
    """Mount control groups as systemd does for this *kind*; return the controllers that cgroup
    v2 has.
    """
    if kind != "v2":
        top = pathlib.Path("/sys/fs/cgroup")
        subprocess.run(["umount", top], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", top], check=True)
        for name in ("cpu", "memory", "pids"):
            (top / name).mkdir()
            subprocess.run(["mount", "-t", "cgroup", "-o", name, "cgroup", top / name], check=True)
        if kind == "hybrid":
            (top / "unified").mkdir()
            subprocess.run(["mount", "-t", "cgroup2", "cgroup2", top / "unified"], check=True)
        return []
    words = pathlib.Path("/sys/fs/cgroup/cgroup.controllers").read_text().split()
    for name in {"cpu", "memory", "pids"} & set(words):
        pathlib.Path("/sys/fs/cgroup/cgroup.subtree_control").write_text("+" + name)
    return words


def confine(rules: str):
    """Load an AppArmor profile of *rules* and all that is no matter here; maker's programs take
    it themselves, as Ubuntu's get theirs.
    """
    subprocess.run(["mount", "-t", "securityfs", "none", "/sys/kernel/security"], check=True)
    text = (
        "abi <abi/4.0>,\nprofile %s flags=(attach_disconnected,mediate_deleted) {\n%s  /{,**} "
        "ix,\n  %s\n}\n" % (UNDER, BASE, rules)
    )
    subprocess.run(
        ["apparmor_parser", "--replace", "--skip-cache"], input=text, text=True, check=True
    )


def taking(job: dict, user: str) -> str:
    """Return what a shell does before it becomes maker's program."""
    return (
        "echo changeprofile %s > /proc/self/attr/current && " % UNDER
        if job["apparmor"] and user == "maker"
        else ""
    )


def lsm() -> str:
    os.makedirs("/run/security", exist_ok=True)
    if subprocess.run(
        ["mount", "-t", "securityfs", "none", "/run/security"], stderr=subprocess.DEVNULL
    ).returncode:
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


def sandbox_of(user: str, job: dict) -> dict:
    """Return what ``clawlite doctor --json`` says of the sandbox."""
    group = "echo $$ > %s/cgroup.procs; " % GROUP if os.path.isdir(GROUP) else ""
    done = subprocess.run(
        [
            "sh",
            "-c",
            "%sexec setpriv --no-new-privs %s sh -c '%sexec python3 -m "
            "clawlite doctor --json'"
            % (
                group,
                "--reuid 1000 --regid 1000 --clear-groups" if user == "maker" else "",
                taking(job, user),
            ),
        ],
        stdout=subprocess.PIPE,
        env=environment(user),
        cwd="/checkout",
    )
    return next(
        (row for row in json.loads(done.stdout or "[]") if row["check"] == "sandbox"),
        {"state": "none"},
    )


def environment(user: str) -> dict:
    return dict(
        os.environ,
        HOME="/home/maker" if user == "maker" else "/",
        PYTHONPATH="/checkout",
        CLAWLITE_NO_EXT="1",
        CLAWLITE_RESULTS="/tmp/results",
        CLAWLITE_CACHE="/tmp/cache",
        CLAWLITE_WAIT_S="300",
        CLAWLITE_TEST_LIMIT_S="7200",
    )


def results() -> list:
    path = pathlib.Path("/tmp/results")
    lines = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return lines


def test(run: dict, job: dict) -> int:
    environ = dict(environment(run["user"]), CLAWLITE_PROFILES=run["profiles"])
    more = {"user": MAKER, "group": MAKER, "extra_groups": []} if run["user"] == "maker" else {}
    os.chown("/home/maker", MAKER, MAKER)
    return subprocess.run(
        [
            "sh",
            "-c",
            taking(job, run["user"]) + 'exec "$@"',
            "sh",
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--tb=short",
            "--color=no",
            "-rfE",
            *run["arguments"],
        ],
        env=environ,
        cwd="/checkout",
        stderr=subprocess.STDOUT,
        **more,
    ).returncode


if __name__ == "__main__":
    main()

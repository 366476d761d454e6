"""Mounts that are exchanged for links while calls begin: in N and in L, from outside and from
inside of a sandbox.

A helper exchanges ``ws/swap``, a folder with ``benign`` in it, and ``ws/link``, which leads to
``out``, again and again (renameat2(2), RENAME_EXCHANGE).  Calls meanwhile read what both names lead
to.  None may see what is in ``out``.
"""

import contextlib
import itertools
import os
import subprocess
import sys

from sandboxes import NOBODY

# what a helper runs: exchanges at different distances in time, counted in a file
FLIP = r"""
import ctypes, os, select, sys
libc, count = ctypes.CDLL(None), 0
folder, report = sys.argv[1:3]
first, second = (os.fsencode(folder + "/" + name) for name in ("swap", "link"))
libc.prctl(1, 9, 0, 0, 0)  # it ends with the process that started it
while True:
    count += libc.renameat2(-100, first, -100, second, 2) == 0
    if count % 5:
        select.select([], [], [], count % 5 / 1000)
    if count % 10 == 0:
        with open(report, "w") as file:
            file.write(str(count))
"""
# way -> its mounts (below the Host's folder, writable) and what is denied
WAYS = {
    # a link takes the folder's place
    "exchanged": ([("ws", True), ("ws/swap", True)], []),
    # a tool of another call does that
    "inside": ([("ws", True), ("ws/swap", True)], []),
    # what lies beside a denied path is allowed by its name
    "denied": ([("ws", None), ("ws/deep", None)], ["ws/private"]),
    # a folder of its own below one to read, and a folder behind the exchanged one
    "nested": ([("ws", False), ("ws/swap", True), ("ws/swap/inner", True)], []),
    "alone": ([("ws/swap", True)], []),
}


def lay_out(folder):
    """Make the folders of a race below a Host's *folder*."""
    owner = NOBODY if os.geteuid() == 0 else os.geteuid()
    for path in ("ws/swap/inner", "ws/deep"):
        (folder / path).mkdir(parents=True)
    for path in ("ws/swap", "ws/swap/inner"):
        (folder / path / "secret").write_text("benign\n")
    (folder / "out" / "inner").mkdir()
    (folder / "out" / "inner" / "secret").write_text("canary-inner")
    (folder / "ws" / "link").symlink_to("../out")  # also where the root is another one
    (folder / "flip.py").write_text(FLIP)
    (folder / "ws" / "flip.py").write_text(FLIP)
    if os.geteuid() == 0:
        for top, names, files in os.walk(folder):
            for name in [top] + [os.path.join(top, one) for one in names + files]:
                os.chown(name, owner, owner, follow_symlinks=False)


@contextlib.contextmanager
def flipping(place, way: str):
    """Exchange the folder and the link; yield the file that says how often."""
    ws, report = place.folder / "ws", place.folder / "ws" / "report"
    if way == "inside":
        job = ["command", ["/usr/bin/python3", str(ws / "flip.py"), str(ws), str(report)]]
        number = place.ask(start=True, profile={"mounts": [[str(ws), True]]}, job=job)["number"]
        try:
            yield report
        finally:
            place.ask(cancel=number)
        return
    drop = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    python = "/usr/bin/python3" if drop else sys.executable
    with subprocess.Popen([python, place.folder / "flip.py", ws, report], **drop) as process:
        try:
            yield report
        finally:
            process.kill()


def race(place, way: str, calls: int) -> dict:
    """Run *calls* calls while the folder is exchanged *way*; return {outcome: how many}: "benign",
    "nothing", "refused" (-32010), "outside", or the text of another error.
    """
    mounts, denied = WAYS[way]
    profile = {
        "mounts": [
            [str(place.folder / name), place.profile == "N" if writable is None else writable]
            for name, writable in mounts
        ],
        "denied": [str(place.folder / name) for name in denied],
    }
    found: dict = {}
    command = "cat {0}/ws/swap/secret {0}/ws/swap/inner/secret {0}/ws/link/secret {0}/out/secret"
    job = ["command", ["sh", "-c", command.format(place.folder)]]
    assert place.run(job, **profile)[0]
    with flipping(place, way) as report:
        for number in itertools.count():
            good, value = place.run(job, **profile)
            text = value["output"] if good else value[2]
            if "canary" in text:
                kind = "outside"
            elif good:
                kind = "benign" if "benign" in text else "nothing"
            else:
                kind = "refused" if value[1] == -32010 else text
            found[kind] = found.get(kind, 0) + 1
            flips = int(report.read_text() or 0) if report.exists() else 0
            if number + 1 >= calls and flips >= 20:
                break
    return found

"""The audit of a board whose flash fails, for test_board_audit.py: littlefs on a RAM disk, on
MicroPython.

    micropython audit_board.py WHAT OUT        OUT is JSON

power   records are written, segments turned and forgotten; for each moment at which power can go:
        {"states", "wrong": [[state, what], ...], "kept", "segments"}
late    the same with a bug: acknowledged before it was written
cost    bytes and erases that a record costs: {"record", "written", "erased"}
full    what is said while the flash fills, and when there is room again
"""

import json
import os

import auditing
import auditlog
import auditmend
import vfs
from ram_disk import Disk, states

from clawlite.core.base.effect import LOG
from clawlite.core.base.errors import ClawError
from clawlite.scan.auditline import beginning, digest

FOLDER = "/disk/audit-a"
clock = [1800000000]


class Audit:
    """A device and its agent, of which auditing.py wants little."""

    guard = None

    def __init__(self, kept_s=None):
        self.agent = self.lifecycle = self
        self.name, self.sandbox, self.tasks, self.on_start, self.errors, self.effects = (
            "a",
            "none",
            {},
            None,
            [],
            [],
        )
        self.it = auditing.Auditing(self, self, [True, False, True, kept_s], "/disk")
        self.it.start()

    def epoch_s(self):
        return clock[0]

    def now_ms(self):
        return 0

    def fail(self, error, now_ms):
        self.errors.append(error)

    def section(self, number):
        return [None, None, None, None, [], False]

    def write(self, number: int, text: str = ""):
        self.it.take(
            (
                LOG,
                {
                    "event": "tool.call",
                    "tool": "look",
                    "request_id": str(number),
                    "arguments": {"text": text},
                    "status": "ok",
                },
            )
        )
        if self.errors:
            raise self.errors.pop()


def records() -> list:
    """Return the records that are there; raises ValueError when the chain is broken, or its head
    says something else.
    """
    names = sorted([name for name in os.listdir(FOLDER) if name.startswith("audit-")])
    names += ["audit.jsonl"] if "audit.jsonl" in os.listdir(FOLDER) else []
    head = auditlog.head_in(FOLDER)
    found, prev, n = [], None, 0
    if head is None:
        if names:
            raise ValueError("no head")
        return []
    for name in names:
        with open(FOLDER + "/" + name, "rb") as file:
            for data in file:
                if data[-1:] != b"\n":
                    raise ValueError("torn")
                record = json.loads(data)
                if record["n"] < head.first:
                    continue  # a segment that was to go
                if prev is None:
                    prev, n = head.prev, head.first
                if (record["n"], record["prev"]) != (n, prev):
                    raise ValueError("record %d does not follow" % record["n"])
                prev, n = digest(data[:-1]), n + 1
                found.append(record)
    if (
        found
        and (head.last, head.hash) != (n - 1, prev)
        or not found
        and head.hash != beginning("a").hash
    ):
        raise ValueError("the head says %d, here is %d" % (head.last, n - 1))
    return found


def ids() -> list:
    return [int(record["request_id"]) for record in records() if "request_id" in record]


def late():
    """As power, but acknowledged before it is written."""
    return power(True)


def power(is_late=False):
    auditing.drop = lambda names: None  # what is set here stays
    auditlog.SEGMENT = auditmend.SEGMENT = 900
    auditmend._BLOCK, auditmend._LEAST = 512, 20480
    disk = Disk(512, 96)
    vfs.VfsLfs2.mkfs(disk)
    vfs.mount(vfs.VfsLfs2(disk), "/disk")
    disk.log, begin, done = [], bytearray(disk.data), []
    audit = Audit(3 * 86400)
    for number in range(1, 41):
        clock[0] += 21600
        done.append(len(disk.log))
        audit.write(number, "x" * (number % 7 * 20))
        if not is_late:
            done[-1] = len(disk.log)
    kept, segments = ids(), len(os.listdir(FOLDER)) - 1
    if audit.it._waiting or kept[-1] != 40 or kept[0] == 1:
        raise ValueError(kept)
    vfs.umount("/disk")
    found, wrong, at = 0, [], 0
    for count, torn in states(begin, disk.log, 512, 96):
        while at < len(done) and count >= done[at]:
            at += 1
        vfs.mount(vfs.VfsLfs2(torn), "/disk")
        try:
            Audit(3 * 86400).write(99)
            here = ids()
            last = here[-2] if len(here) > 1 else 0
            problems = [
                record["problem"] for record in records() if record["event"] == "audit.problem"
            ]
            if (
                here[-1] != 99
                or last not in (at, at + 1)
                or here[:-1] != list(range(here[0], last + 1))
                and last
                or problems
            ):
                wrong.append([count, here, at, problems])
        except (OSError, ClawError, ValueError) as e:
            wrong.append([count, at, str(e)])
        vfs.umount("/disk")
        found += 1
    return {"states": found, "wrong": wrong[:3], "kept": kept, "segments": segments}


def cost():
    """On blocks of 4096 bytes, as boards have them; over some 16 segments."""
    disk = Disk(4096, 240)
    vfs.VfsLfs2.mkfs(disk, progsize=256)
    vfs.mount(vfs.VfsLfs2(disk, progsize=256), "/disk")
    audit = Audit()
    audit.write(0, "x" * 150)
    written = erased = size = 0
    for number in range(1, 601):
        disk.log = []
        audit.write(number, "x" * 150)
        erases = [data for _, data in disk.log if len(data) == 4096 and data == b"\xff" * 4096]
        erased += len(erases)
        written += sum([len(data) for _, data in disk.log]) - 4096 * len(erases)
    for name in os.listdir(FOLDER):
        size += os.stat(FOLDER + "/" + name)[6]
    return {"record": size // 601, "written": written // 600, "erased": erased * 100 // 600}


def full():
    disk = Disk(4096, 60)
    vfs.VfsLfs2.mkfs(disk, progsize=256)
    vfs.mount(vfs.VfsLfs2(disk, progsize=256), "/disk")
    audit, said, number = Audit(), None, 0
    while said is None and number < 1000:
        number += 1
        try:
            audit.write(number, "x" * 200)
        except (ClawError, OSError) as e:
            said = [str(e), getattr(e, "hint", "")]
    after = [len(audit.it._waiting), ids()[-1] == number - 1, ids()[0]]
    try:
        audit.write(number + 1)
    except ClawError:
        after.append(len(audit.it._waiting))
    names = sorted([name for name in os.listdir(FOLDER) if name.startswith("audit-")])
    head = auditlog.head_in(FOLDER)
    head.first, head.prev, _ = auditlog.first(FOLDER + "/" + names[-1])
    auditlog.put(FOLDER, head)
    for name in names[:-1]:
        os.remove(FOLDER + "/" + name)
    audit.write(number + 2)
    return {
        "records": number,
        "said": said,
        "after": after,
        "again": ids()[-3:] == [number, number + 1, number + 2],
        "waiting": len(audit.it._waiting),
    }


def interrupted():
    """Ctrl-C, or a lack of memory, between a record and its head."""
    found, put = {}, auditlog.put
    auditing.drop = lambda names: None  # else what is put in its place here is dropped, too
    for kind in (KeyboardInterrupt, MemoryError):
        disk = Disk(512, 96)
        vfs.VfsLfs2.mkfs(disk)
        vfs.mount(vfs.VfsLfs2(disk), "/disk")
        audit = Audit()
        audit.write(1)

        def ends(folder, head, kind=kind):
            auditlog.put = put
            raise kind("x")

        auditlog.put = ends
        try:
            audit.write(2)
            raised = False
        except kind:
            raised = True
        audit.write(3)
        found[kind.__name__] = [raised, ids()]  # ids raises where the chain is broken
        vfs.umount("/disk")
    return found


def main(what: str, out: str):
    found = {
        "power": power,
        "late": late,
        "cost": cost,
        "full": full,
        "interrupted": interrupted,
    }[what]()
    with open(out, "w") as file:
        json.dump(found, file)

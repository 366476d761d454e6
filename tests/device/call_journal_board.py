"""The journal of calls of a board whose power goes, for test_call_journal.py: littlefs on a RAM
disk, on MicroPython.

    micropython call_journal_board.py CALLS STEP OUT    OUT is JSON: {"states", "written", "erased",
                                                   "wrong": [[state, number of a call, what], ...]}

So many calls begin and end, STEP seconds apart; every tenth begins before the one before it ends.
For each moment at which power can go: of each call whose record had been written there is a record,
and of one that had ended in the last 5 minutes its answer.  written, erased: bytes and blocks."""

import json
import os

import call_journal as journal
import vfs
from ram_disk import Disk, states

import clawlite.core.idempotency.idempotency  # noqa: F401  a board has loaded it by then
from clawlite.core.idempotency.idempotency import BEGIN, END, KEPT_S

_BLOCK, _BLOCKS, _PIECE = 4096, 16, 256  # of an RP2040's flash
_START = 1795658583


def key(number: int) -> str:
    return "%08x-1111-4000-8000-%012x" % (number * 7919, number)


def payload(number: int) -> list:
    return ["%032x" % (number * 12345678901), "w%d at bed %d" % (number, number), False, 0]


def steps(calls: int, step: int):
    """Yield (kind, number of a call, seconds)."""
    number = 0
    while number < calls:
        now = _START + number * step
        together = 2 if number % 10 == 1 else 1
        for kind in (BEGIN, END):
            for more in range(together):
                yield kind, number + more, now
        number += together


def answers(now: int, numbers) -> dict:
    return {number: journal.find("/disk", now, key(number)) for number in numbers}


def main(calls: str, step: str, out: str):
    disk = Disk(_BLOCK, _BLOCKS)
    vfs.VfsLfs2.mkfs(disk, progsize=_PIECE)
    vfs.mount(vfs.VfsLfs2(disk, progsize=_PIECE), "/disk")
    for name in ("boot.py", "main.py"):
        with open("/disk/" + name, "w") as file:
            file.write("x" * 60)
    disk.log, begin, done = [], bytearray(disk.data), []
    for kind, number, now in steps(int(calls), int(step)):
        text = payload(number)
        kept = journal.keep("/disk", kind, key(number), text if kind == END else text[:1], now)
        assert kept == (True, []), kept
        done.append((len(disk.log), kind, number, now))
    vfs.umount("/disk")
    found, wrong, at, known = 0, [], 0, {}
    for count, torn in states(begin, disk.log, _BLOCK, _BLOCKS):
        while at < len(done) and count >= done[at][0]:
            _, kind, number, now = done[at]
            known[number] = kind, now
            at += 1
        vfs.mount(vfs.VfsLfs2(torn, progsize=_PIECE), "/disk")
        now = done[min(at, len(done) - 1)][3]
        wanted = {n: kind for n, (kind, when) in known.items() if now - when < KEPT_S}
        before = answers(now, wanted)
        journal._mend("/disk")
        if "calls.journal" in os.listdir("/disk"):
            journal._compact("/disk", now, True)
        for n, kind in wanted.items():
            for record in (before[n], journal.find("/disk", now, key(n))):
                has_ended = record == (END, payload(n))
                if not has_ended and (kind == END or record != (BEGIN, payload(n)[:1])):
                    wrong.append([count, n, str(record)])
        vfs.umount("/disk")
        found += 1
    erased = sum(len(data) == _BLOCK and data.count(b"\xff") == _BLOCK for _, data in disk.log)
    written = sum(len(data) for _, data in disk.log) - erased * _BLOCK
    with open(out, "w") as file:
        file.write(
            json.dumps({"states": found, "written": written, "erased": erased, "wrong": wrong})
        )

"""The append-only log of a board whose power fails, for test_appendlog.py: littlefs on a RAM disk,
on MicroPython.

    micropython log_board.py APPENDS OUT       OUT is JSON: {"states", "writes", "erases", "wrong":
                                               [[state, what is on record], ...]}

Records 0, 1, 2 ... are appended, and in the middle the log is written anew with its newer half.
For each moment at which the power can fail: the log then has every record whose append had
returned, and perhaps the next one, and it takes another record."""

import json
import os

import vfs
from appendlog import append, read, rewrite, start, walk
from ram_disk import Disk, states

_BLOCK, _BLOCKS = 512, 64
_PATH = "/disk/a.log"


def payload(number: int) -> bytes:
    return b"%d " % number + b"abcdefg" * (number * 11 % 40)


def numbers() -> list:
    found = []
    for offset, length in walk(_PATH):
        data = read(_PATH, offset, length)
        number = int(data.split(b" ")[0])
        found.append(number if data == payload(number) else "not what was written")
    return found


def main(appends: str, out: str):
    disk = Disk(_BLOCK, _BLOCKS)
    vfs.VfsLfs2.mkfs(disk)
    vfs.mount(vfs.VfsLfs2(disk), "/disk")
    disk.log, begin, end = [], bytearray(disk.data), 0
    done = [(0, [])]  # (changes by then, what is on record)
    for number in range(int(appends)):
        end = append(_PATH, payload(number), end)
        done.append((len(disk.log), numbers()))
        if number == int(appends) // 2:
            places = list(walk(_PATH))
            end = rewrite(_PATH, places[len(places) // 2 :])
            done.append((len(disk.log), numbers()))
    vfs.umount("/disk")
    found, wrong, at = 0, [], 0
    for count, torn in states(begin, disk.log, _BLOCK, _BLOCKS):
        while at < len(done) - 1 and count >= done[at + 1][0]:
            at += 1
        vfs.mount(vfs.VfsLfs2(torn), "/disk")
        end, behind = start(_PATH)
        here = numbers() if "a.log" in os.listdir("/disk") else []
        append(_PATH, payload(99), end)
        may = [done[at][1], done[min(at + 1, len(done) - 1)][1]]
        if here not in may or numbers() != here + [99] or behind:
            wrong.append([count, here, may])
        vfs.umount("/disk")
        found += 1
    erases = sum(data.count(b"\xff") == len(data) for _, data in disk.log)
    with open(out, "w") as file:
        file.write(
            json.dumps(
                {
                    "states": found,
                    "writes": len(disk.log) - erases,
                    "erases": erases,
                    "wrong": wrong,
                }
            )
        )

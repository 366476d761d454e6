"""A board's flash that loses its power, for test_flash_power.py: littlefs on a RAM disk, on
MicroPython.

    micropython disk_board.py JOB OUT      JOB and OUT are JSON

JOB: {"boot": folder of bootwindow.py and slots.py, "script": [[what, ...], ...]}.  Steps of a flash
(bytes as base64), and ["boot"]. All of it happens once, and every write and erase of a block is
kept.  Then it happens again up to each of them, with the last one half and whole done, and the
board boots from what is on the disk: OUT is [[step, what booted], ...], one for each, and the end.
"""

import json
import os
import sys
from binascii import a2b_base64

import vfs
from ram_disk import Disk, states

_BLOCK, _BLOCKS = 512, 256
_ROOT = "/disk"


def do(step):
    what, path = step[0], _ROOT + step[1]
    if what == "mkdir":
        os.mkdir(path)
    elif what == "rename":
        os.rename(path, _ROOT + step[2])
    elif what == "remove":
        os.remove(path)
    else:
        with open(path, "wb") as file:
            file.write(a2b_base64(step[2]))


def boot(is_ready):
    """Return what booted: what the image's stand-in said; None for nothing."""
    import bootwindow
    import slots

    path, modules = list(sys.path), set(sys.modules)
    record = slots.read(_ROOT)
    order = bootwindow._order(_ROOT, *record[:2])
    why = bootwindow._damage(_ROOT + "/claw-" + order[0], lambda: None) if order else ""
    opened = bootwindow._choose_slot(_ROOT, order, why, record, lambda: None)
    if opened and is_ready:
        slots.ready(_ROOT)
    sys.path[:] = path
    for name in list(sys.modules):
        if name not in modules:
            del sys.modules[name]
    return opened[1] if opened else None


def main(job_path: str, out: str):
    with open(job_path) as file:
        job = json.loads(file.read())
    sys.path.append(job["boot"])
    import bootwindow

    bootwindow._say = lambda text: None
    disk = Disk(_BLOCK, _BLOCKS)
    vfs.VfsLfs2.mkfs(disk)
    vfs.mount(vfs.VfsLfs2(disk), _ROOT)
    disk.log, ends = [], []
    begin = bytearray(disk.data)
    for step in job["script"]:
        if step[0] == "boot":
            boot(True)
        else:
            do(step)
        ends.append(len(disk.log))
    vfs.umount(_ROOT)
    found, number = [], 0
    for count, torn in states(begin, disk.log, _BLOCK, _BLOCKS):
        while number < len(ends) - 1 and count >= ends[number]:
            number += 1
        vfs.mount(vfs.VfsLfs2(torn), _ROOT)
        found.append([number, boot(True), boot(False)])
        vfs.umount(_ROOT)
    with open(out, "w") as file:
        file.write(json.dumps(found))

"""A board's flash that loses its power, for test_flash_power.py: littlefs on a RAM disk, on MicroPython.

    micropython disk_board.py JOB OUT      JOB and OUT are JSON

JOB: {"boot": folder of bootwindow.py and slots.py, "script": [[what, ...], ...]}.  Steps of a flash (bytes as base64), and ["boot"].
All of it happens once, and every write and erase of a block is kept.  Then it happens again up to each of them, with the last one
half and whole done, and the board boots from what is on the disk: OUT is [[step, what booted], ...], one for each, and the end.
"""
import json
import sys
import vfs
import os
from binascii import a2b_base64

_BLOCK, _BLOCKS = 512, 256
_ROOT = "/disk"


class Disk:
    def __init__(self, data=None):
        self.data = data or bytearray(b"\xff" * (_BLOCK * _BLOCKS))
        self.log = []

    def readblocks(self, block, buffer, offset=0):
        at = block * _BLOCK + offset
        buffer[:] = self.data[at:at + len(buffer)]

    def writeblocks(self, block, buffer, offset=None):
        if offset is None:
            self.ioctl(6, block)
        at = block * _BLOCK + (offset or 0)
        self.data[at:at + len(buffer)] = buffer
        self.log.append((at, bytes(buffer)))

    def ioctl(self, what, block):
        if what == 4:
            return _BLOCKS
        if what == 5:
            return _BLOCK
        if what == 6:
            at = block * _BLOCK
            self.data[at:at + _BLOCK] = b"\xff" * _BLOCK
            self.log.append((at, b"\xff" * _BLOCK))
        return 0


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
    opened = bootwindow._open(_ROOT, *slots.read(_ROOT))
    if opened and is_ready:
        slots.ready(_ROOT)
    sys.path[:] = path
    for name in list(sys.modules):
        if name not in modules:
            del sys.modules[name]
    return opened[1] if opened else None


def main(job, out):
    sys.path.append(job["boot"])
    import bootwindow
    bootwindow._say = lambda text: None
    disk = Disk()
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
    for count in range(len(disk.log) + 1):
        while number < len(ends) - 1 and count >= ends[number]:
            number += 1
        for part in ((2, 1) if count < len(disk.log) else (0,)):
            torn = Disk(bytearray(begin))
            if part:
                at, data = disk.log[count]
                torn.data[at:at + len(data) // part] = data[:len(data) // part]
            vfs.mount(vfs.VfsLfs2(torn), _ROOT)
            found.append([number, boot(True), boot(False)])
            vfs.umount(_ROOT)
        if count < len(disk.log):
            at, data = disk.log[count]
            begin[at:at + len(data)] = data
    with open(out, "w") as file:
        file.write(json.dumps(found))


with open(sys.argv[1]) as file:
    main(json.loads(file.read()), sys.argv[2])

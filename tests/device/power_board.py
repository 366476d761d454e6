"""A whole board whose flash is littlefs in a file, for test_power.py, on MicroPython's unix port.

    micropython power_board.py write DISK LOG SCRIPT      carry out the steps of a flash (JSON:
                                                          [[what, ...], ...], bytes as base64)
    micropython power_board.py boot DISK LOG              boot what is on it, and talk on stdin and
                                                          stdout to the end of input
    micropython power_board.py locked DISK LOG            the same, and nothing can be written
    micropython power_board.py show DISK LOG FOLDER       print the files in a folder: JSON, bytes
                                                          as base64

DISK has all bytes of the flash; one that is empty is formatted first.  To LOG goes each write and
erase of blocks, as it happens: offset and length, 4 bytes each, big-endian, and the bytes.  Blocks
and pieces have the sizes of the RP2040's flash."""

import builtins
import json
import os
import struct
import sys
from binascii import a2b_base64, b2a_base64

import vfs

BLOCK, BLOCKS, PIECE = 4096, 240, 256


class Disk:
    """In a file, not in memory: MicroPython looks for pointers in all that its heap holds, at
    each collection.
    """

    def __init__(self, path: str, log: str):
        self.file, self.log, self.made = open(path, "r+b"), open(log, "wb"), 0

    def readblocks(self, block, buffer, offset=0):
        self.file.seek(block * BLOCK + offset)
        self.file.readinto(buffer)

    def writeblocks(self, block, buffer, offset=None):
        if offset is None:
            self.ioctl(6, block)
        self.change(block * BLOCK + (offset or 0), buffer)

    def ioctl(self, what, block):
        if what == 4:
            return BLOCKS
        if what == 5:
            return BLOCK
        if what == 6:
            self.change(block * BLOCK, b"\xff" * BLOCK)
        return 0

    def change(self, at, data):
        self.file.seek(at)
        self.file.write(data)
        self.log.write(struct.pack(">II", at, len(data)))
        self.log.write(data)
        self.made += 1


def do(what, path, *more):
    if what == "mkdir":
        os.mkdir(path)
    elif what == "rename":
        os.rename(path, more[0])
    elif what == "remove":
        os.remove(path)
    elif what == "fill":
        os.mkdir(path)
        number = 0
        # block by block: of a file that fails nothing stays; statvfs counts some blocks twice
        while True:
            number += 1
            try:
                with open("%s/%d" % (path, number), "wb") as file:
                    file.write(b"x" * BLOCK)
            except OSError:
                break
    else:
        with open(path, "wb") as file:
            file.write(a2b_base64(more[0]))


def show(disk, folder: str):
    vfs.mount(vfs.VfsLfs2(disk, progsize=PIECE), "/disk")
    found = {}
    for name in os.listdir("/disk" + folder):
        with open("/disk%s/%s" % (folder, name), "rb") as file:
            found[name] = b2a_base64(file.read())
    print(json.dumps(found))


def main(what: str, path: str, log: str, script: str = ""):
    disk, steps = Disk(path, log), []
    if what == "show":
        show(disk, script)
        return
    if script:
        with open(script) as file:
            steps = json.loads(file.read())
    if not disk.file.seek(0, 2):
        disk.file.write(b"\xff" * (BLOCK * BLOCKS))
        vfs.VfsLfs2.mkfs(disk, progsize=PIECE)
    vfs.umount("/")
    vfs.mount(vfs.VfsLfs2(disk, progsize=PIECE), "/", readonly=what == "locked")
    os.chdir("/")
    for step in steps:
        do(*step)
    if what != "write":
        # a tool can tell when it ran
        builtins.power_moment = lambda: "%s %d" % (log.split("/")[-1], disk.made)
        sys.path[:] = ["", ".frozen", "/lib"]
        del sys.argv[:]
        execfile("main.py")  # noqa: F821

"""What a board's calls cost its flash: ``micropython -X heapsize=N wear.py IMAGE LINES COUNT``.

The image, its tools.py and what the agent keeps lie on littlefs, on a disk in memory with the
blocks of an RP2040's flash.  LINES is a file: what an operator sends first, then the call.  COUNT
calls are made, each with a request id of its own.  Prints one JSON line: bytes written and blocks
erased by all calls, the file system's own included."""

import json
import sys

import vfs
from board import Sink, calls
from main import open_device

_BLOCK, _BLOCKS, _PIECE = 4096, 24, 256
_READ = 512


class Disk:
    """A block device that counts."""

    def __init__(self):
        self.data = bytearray(b"\xff" * (_BLOCK * _BLOCKS))
        self.written = self.erased = 0

    def readblocks(self, block, buffer, offset=0):
        at = block * _BLOCK + offset
        buffer[:] = self.data[at : at + len(buffer)]

    def writeblocks(self, block, buffer, offset=0):
        at = block * _BLOCK + offset
        self.data[at : at + len(buffer)] = buffer
        self.written += len(buffer)

    def ioctl(self, what, block):
        if what == 4:
            return _BLOCKS
        if what == 5:
            return _BLOCK
        if what == 6:
            at = block * _BLOCK
            self.data[at : at + _BLOCK] = b"\xff" * _BLOCK
            self.erased += 1
        return 0


def main(image: str, lines: str, count: str):
    disk = Disk()
    vfs.VfsLfs2.mkfs(disk, progsize=_PIECE)
    vfs.mount(vfs.VfsLfs2(disk, progsize=_PIECE), "/disk")
    for name in (image, image.rpartition("/")[0] + "/tools.py"):
        with open(name, "rb") as file, open("/disk/" + name.rpartition("/")[2], "wb") as copy:
            data = file.read(_READ)
            while data:
                copy.write(data)
                data = file.read(_READ)
    device = open_device("/disk/" + image.rpartition("/")[2], "/disk", True)
    device.stdio.output = Sink()
    device.agent.start(device.now_ms())
    device.settle()
    with open(lines, "rb") as file:
        call = calls(device, file.read().split(b"\n")[:-1])
    disk.written = disk.erased = 0
    for _ in range(int(count)):
        call()
    device.handlers.close()
    print(json.dumps({"written": disk.written, "erased": disk.erased}))


if __name__ == "__main__":
    main(*sys.argv[1:])

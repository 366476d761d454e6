"""littlefs in memory that keeps every write and erase, on MicroPython: for boards whose power goes
at any moment.

    disk = Disk(BLOCK, BLOCKS)              vfs.VfsLfs2.mkfs(disk); mount; write; ...
    for number, torn in states(begin, disk.log): mount it, look
"""


class Disk:
    """Blocks that are 0xff where they are erased.

    data  bytearray, or None for an empty one
    Public: ``log``, [(offset, bytes)] of writes and erases in their order.
    """

    def __init__(self, block: int, blocks: int, data=None):
        self.block, self.blocks = block, blocks
        self.data = data or bytearray(b"\xff" * (block * blocks))
        self.log = []

    def readblocks(self, block, buffer, offset=0):
        at = block * self.block + offset
        buffer[:] = self.data[at : at + len(buffer)]

    def writeblocks(self, block, buffer, offset=None):
        if offset is None:
            self.ioctl(6, block)
        self._change(block * self.block + (offset or 0), bytes(buffer))

    def ioctl(self, what, block):
        if what == 4:
            return self.blocks
        if what == 5:
            return self.block
        if what == 6:
            self._change(block * self.block, b"\xff" * self.block)
        return 0

    def _change(self, at, data):
        self.data[at : at + len(data)] = data
        self.log.append((at, data))


def states(begin, log, block, blocks):
    """Yield (how many changes were made, the disk) for each moment at which power can go: the next
    change half made, made, and the end.

    begin  bytearray, the disk before the first change; it becomes the disk after the last one
    """
    for count in range(len(log) + 1):
        for part in (2, 1) if count < len(log) else (0,):
            torn = Disk(block, blocks, bytearray(begin))
            if part:
                at, data = log[count]
                torn.data[at : at + len(data) // part] = data[: len(data) // part]
            yield count, torn
        if count < len(log):
            at, data = log[count]
            begin[at : at + len(data)] = data

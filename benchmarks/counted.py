"""One piece of work, so many times, for a count of instructions: ``python benchmarks/counted.py
WORK IMAGE TIMES`` (benchmarks/gate.py).

    load      an image file to the tables that a call needs
    constant  the decision of a known tool whose entry is constant
    path      the decision of a known tool with a condition on a path
    call      a line with a claw.tool.call until the bytes of its answer, log written

Whoever counts runs it with two TIMES and divides the difference by theirs: the start of the
interpreter, the imports and the first calls fall out.
"""

import sys

import inprocess

from clawlite.linux.files import files

PATH = {"path": "/workspace/notes/2026/november.md", "count": 1, "loud": False}


def decide(path: str, name: str, arguments: dict):
    image = files.open_image(path)
    assert image.tool(name).entry is not None
    return inprocess.whole(image, [(image.tool(name), arguments, None)])


def call(path: str):
    made, sink, lines = inprocess.opened(path)

    def one():
        made.fast_path.feed(next(lines))
        made.log.flush()

    one()
    assert b'"isError":false' in sink.last, sink.last
    return one


WORK = {
    "load": lambda path: lambda: files.open_image(path),
    "constant": lambda path: decide(path, "echo", {"text": "x", "count": 1, "loud": False}),
    "path": lambda path: decide(path, "files-0", PATH),
    "call": call,
}


def main(work: str, image: str, times: str) -> None:
    one = WORK[work](image)
    for _ in range(int(times)):
        one()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A wire whose noise goes on, and that knows which frames it hit: what the reader made of the
others can be told one by one.

1. A frame that was written is whole when all of its bytes arrived, with nothing between them; 0x03
   counts for nothing where the reader takes it out (core/line/linestop.py).
2. What a reader believes must be frames that were written, in their order, and each whole one must
   be among them.
"""

import json

from line_wire import Bench, Dice, End, Way

from clawlite.core.line.line import Line
from clawlite.core.line.lineframe import decode

SIZES = (1, 20, 59, 60, 61, 200, 1000, 8000)
LIMIT, BACKLOG = 8192, 32768
WINDOWS = (260, 4096)  # of the board and of the host
# What befalls one byte: it is flipped, dropped, doubled; another, 0x03, 0x1E, LF or CR comes before
# it, or a burst; the frame before its own comes once more; what nobody wrote comes; it and 19 more
# are lost.
KINDS = (
    "flip",
    "drop",
    "double",
    "insert",
    "stop",
    "mark",
    "end",
    "return",
    "burst",
    "again",
    "forged",
    "gap",
)
_BEFORE = {"stop": b"\x03", "mark": b"\x1e", "end": b"\n", "return": b"\r"}
# Heads, acknowledgements, resets and hellos, of which the next to last is whole: it asks for a
# hello; a plain record, a line.
_FORGED = (
    b"\x1eaAAAAAAAA\n",
    b"\x1emAAAA",
    b'\x1edAAAAAAAA{"forged":1}\n',
    b"\x1e~0000h",
    b"\x1e~0000r00000000\n",
    b"\x1e~0000rd20e7449\n",
    b'\x1e{"forged":2}\n',
    b"yes\n",
)
_GAP = 20
# until both ends of a cut wire know it: two patiences, and a pause of a sender
_DEAD_MS = 70000
_KEPT = 100  # frames: more than come between the first going of one and its last


class Watched(Line):
    """A line that tells *way*, from which it reads, of the frames that it believes."""

    def watch(self, way):
        self.way = way
        return self

    def _take_frame(self, seq, ack, kind, payload):
        self.way.believed((seq, ack, kind, payload), self._seed)
        return Line._take_frame(self, seq, ack, kind, payload)


class Hurt(Way):
    """One direction.

    kind  one of KINDS, or "mixed"
    Public, to be read: ``hurt``, frames that did not arrive whole; ``missed``, whole ones that were
    not believed; ``old``, believed ones that had come before; ``forged``, believed ones that nobody
    wrote.  The first two count what has left, after ``count``."""

    def __init__(self, dice, odds, ring, baud, kind: str):
        Way.__init__(self, dice, odds, ring, baud)
        self.kind, self.has_stop = kind, True  # has_stop: the reader takes 0x03 out
        # of frames that were written: [bytes, whether it arrived whole, how often it was believed]
        self.items = []
        self.first = self.place = 0  # the one that is on the wire, and how much of it has left
        self.left = 0  # bytes that a gap still takes
        # of each byte in the ring: the item before whose end it came
        self.came = []
        self.hurt = self.missed = self.old = self.forged = 0

    def write(self, data: bytes) -> None:
        Way.write(self, data)
        self.items.append([data, True, 0])
        if self.first > 2 * _KEPT:
            self.count(_KEPT)

    def count(self, number: int) -> None:
        """Judge the oldest *number* frames, and forget them."""
        for data, is_whole, believed in self.items[:number]:
            if data[1:2] != b"~":
                self.hurt += not is_whole
                self.missed += is_whole and not believed
        self.items, self.first = self.items[number:], self.first - number
        self.came = [at - number for at in self.came]

    def read(self, count: int) -> bytes:
        """As Way's, but of one item at most."""
        same = 0
        while same < min(count, len(self.came)) and self.came[same] == self.came[0]:
            same += 1
        if same:
            self.reading = self.came[0]
            self.came = self.came[same:]
        return Way.read(self, same)

    def believed(self, frame: tuple, seed: int) -> None:
        # the one before, if the mark of this one has ended it
        for at in (self.reading, self.reading - 1):
            if at >= 0 and decode(self.items[at][0][:-1], seed) == frame:
                self.items[at][2] += 1
                return
        if [None for item in self.items[: self.reading] if decode(item[0][:-1], seed) == frame]:
            self.old += 1
        else:
            self.forged += 1

    def noise(self, byte: int) -> tuple:
        self.hit += 1
        kind = self.kind if self.kind != "mixed" else KINDS[self.dice.below(len(KINDS))]
        one = self.dice.below(256)
        if kind == "flip":
            return (byte ^ (1 << one % 8),)
        if kind == "drop":
            return ()
        if kind == "gap":
            self.left = _GAP
            return ()
        if kind == "double":
            before = (byte,)
        elif kind == "insert":
            before = (one,)
        elif kind == "burst":
            before = [self.dice.below(256) for _ in range(2 + one % 80)]
        elif kind == "again":
            before = self.items[max(0, self.first - 1)][0]
        elif kind == "forged":
            before = _FORGED[one % len(_FORGED)]
        else:
            before = _BEFORE[kind]
        return tuple(before) + (byte,)

    def carry(self, found: tuple) -> None:
        item = self.items[self.first]
        if self.left:
            self.left -= 1
            found = ()
        before = self.dropped
        Way.carry(self, found)
        self.came += [self.first] * (len(self.ring) - len(self.came))
        read = [one for one in found if one != 3] if self.has_stop else found
        if (
            self.dropped > before
            or not read
            or read[-1] != item[0][self.place]
            or self.place
            and len(read) > 1
        ):
            item[1] = False
        self.place += 1
        if self.place == len(item[0]):
            self.first, self.place = self.first + 1, 0


class Damage(Bench):
    """A host and a board on a wire that hits one byte of *odds* with *kind*, both ways, from the
    first record to the last.
    """

    def __init__(
        self,
        seed: int,
        odds: int,
        kind: str = "mixed",
        windows: tuple = WINDOWS,
        fragment: int = 205,
    ):
        self.options = {
            "plain": False,
            "limit": LIMIT,
            "backlog": BACKLOG,
            "baud": 115200,
            "fragment": fragment,
        }
        self.dice, self.now, self.ring = Dice(seed), 0, windows[0]
        self.down, self.up = [Hurt(self.dice, 0, ring, 115200, kind) for ring in windows]
        self.host, self.board = [
            End(
                Watched(1 + self.dice.below(1 << 20), ring, **self.options).watch(there),
                there,
                back,
            )
            for ring, there, back in (
                (windows[1], self.up, self.down),
                (windows[0], self.down, self.up),
            )
        ]
        self.open()
        self.set_noise(odds)

    def settle(self, ms: int = 600000) -> None:
        """Let the noise go on until all is delivered, and end it."""
        lines = (self.host.line, self.board.line)
        assert self.run(ms, lambda: not lines[0].waiting and not lines[1].waiting), (
            "not delivered: %d, %d bytes" % (lines[0].waiting, lines[1].waiting)
        )
        self.set_noise(0)
        ways = (self.down, self.up)
        assert self.run(
            ms,
            lambda: (
                not [way for way in ways if way.queue or way.ring]
                and lines[0].deadline() is None
                and lines[1].deadline() is None
            ),
        )

    def judged(self) -> tuple:
        """Return (frames hit, whole frames that were not believed, frames that were believed and
        nobody wrote), of both ways.
        """
        for way in (self.down, self.up):
            way.count(way.first)
        return tuple(
            [
                getattr(self.down, name) + getattr(self.up, name)
                for name in ("hurt", "missed", "forged")
            ]
        )


def talk(bench: Damage, sizes: tuple, rounds: int) -> tuple:
    """Send records of *sizes* both ways while the noise goes on; return what each sent: (the
    host, the board).
    """
    sent = ([], [])
    for number in range(rounds):
        for size in sizes:
            for end, records in ((bench.host, sent[0]), (bench.board, sent[1])):
                text = b"%d " % len(records) + bytes(
                    [33 + (number * 7 + i * 11) % 90 for i in range(size)]
                )
                text = text[-size:] if size < 8 else text[:size]
                bench.run(600000, lambda end=end, size=size: end.line.waiting + size <= BACKLOG)
                end.line.send(text, bench.now)
                records.append(text)
    bench.settle()
    return sent


def request(number: int, size: int) -> bytes:
    """Return a request of about *size* bytes; its answer has as many."""
    return b'{"id":%d,"ask":"%s"}' % (number, b"x" * max(0, size - 18))


class Served(Damage):
    """A board that answers each request with the bytes that came.  ``answered``: the ids, in their
    order.

    cuts   of the wire, each: whether it is the way to the board; where, in bytes that went it; for
           how long, ms; what comes instead
    odds   of noise beside that
    """

    def __init__(self, cuts: list, odds: int = 0):
        Damage.__init__(self, 11, odds)
        self.answered = []
        for way in (self.down, self.up):
            way.passed, way.until, way.plan = 0, 0, []
        for is_down, at, ms, instead in sorted(cuts):
            (self.down if is_down else self.up).plan.append((at, ms, instead))
        for way in (self.down, self.up):
            way.carry = self.hurting(way, way.carry)

    def hurting(self, way, carry):
        def one(found):
            way.passed += 1
            if way.plan and way.passed > way.plan[0][0]:
                _, ms, instead = way.plan.pop(0)
                way.until = max(way.until, self.now + ms)
                carry(tuple(instead) + (() if ms else found))
            else:
                carry(() if self.now < way.until else found)

        return one

    def serve(self, ms: int, until) -> bool:
        def step():
            while self.board.records:
                record = self.board.records.pop(0)
                self.answered.append(json.loads(record)["id"])
                self.board.line.send(record.replace(b"ask", b"say"), self.now)
            return until()

        return self.run(ms, step)


def left_open(at: int, is_down: bool, is_up: bool, sizes: tuple, odds: int = 0) -> tuple:
    """Cut the wire for good after *at* bytes of requests and answers; return (requests that ended
    in neither an answer nor an error, whether a new session answers at once).

    is_down, is_up  which ways are cut
    sizes           of the requests
    """
    bench = Served([], odds)
    host, board = bench.host, bench.board
    for number, size in enumerate(sizes):
        host.line.send(request(number, size), bench.now)
    start = bench.down.sent + bench.up.sent

    def is_over():
        if bench.down.sent + bench.up.sent >= start + at:
            bench.down.is_cut, bench.up.is_cut = is_down, is_up
        return (
            not host.line.waiting
            and not board.line.waiting
            and (host.downs or len(host.records) == len(sizes))
        )

    bench.serve(_DEAD_MS, is_over)
    # who waits for an answer sends something: a dead line is told
    if not host.downs and len(host.records) < len(sizes):
        host.line.send(request(99, 20), bench.now)
        bench.serve(_DEAD_MS, lambda: host.downs)
    answers = [json.loads(one)["id"] for one in host.records]
    assert answers == list(range(len(answers))) and bench.answered == list(
        range(len(bench.answered))
    ), "out of order, or twice"
    left = 0 if host.downs else len(sizes) - len(answers)
    bench.down.is_cut = bench.up.is_cut = False
    bench.set_noise(0)
    bench.open()
    host.records.clear()
    host.line.send(request(100, 60), bench.now)
    return left, bench.serve(200, lambda: host.records)

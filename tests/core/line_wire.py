"""Two ends of core/line/line.py on a simulated UART: bytes at a baud rate, noise, a ring that drops
what does not fit.

Everything is a function of the seed, on every runtime.
"""

from clawlite.core.line.frame import RECORD
from clawlite.core.line.line import DOWN, UNSURE, UP, Line
from clawlite.core.line.linestop import Stop


class Dice:
    """Numbers by chance, the same on every runtime."""

    def __init__(self, seed: int):
        self.state = seed & 0x3FFFFFFF
        self.below(2)

    def below(self, n: int) -> int:
        self.state = (self.state * 1103515245 + 12345) & 0x7FFFFFFF
        return (self.state >> 8) % n


class Way:
    """One direction of the wire.

    dice  of the noise; odds: one byte of so many is hit, 0 for none
    ring  bytes that the reader's side holds
    """

    def __init__(self, dice: Dice, odds: int, ring: int, baud: int):
        self.dice, self.odds, self.size, self.baud = dice, odds, ring, baud
        self.queue = bytearray()  # written, and not yet on the wire
        self.ring = bytearray()
        self.is_cut = False
        self.sent = self.hit = self.dropped = 0
        self.fraction = 0

    def write(self, data: bytes) -> None:
        self.queue.extend(data)
        self.sent += len(data)

    def step(self) -> None:
        """One millisecond."""
        bits = self.baud + self.fraction
        count, self.fraction = bits // 10000, bits % 10000
        for byte in self.queue[:count]:
            self.carry(
                ()
                if self.is_cut
                else self.noise(byte)
                if self.odds and not self.dice.below(self.odds)
                else (byte,)
            )
        self.queue = self.queue[count:]

    def carry(self, found: tuple) -> None:
        """Let the bytes arrive that one has become."""
        for byte in found:
            if len(self.ring) < self.size:
                self.ring.append(byte)
            else:
                self.dropped += 1

    def noise(self, byte: int) -> tuple:
        self.hit += 1
        kind = self.dice.below(6)
        other = self.dice.below(256)
        return (
            (byte ^ (1 << self.dice.below(8)),),
            (),
            (byte, byte),
            (byte, other),
            (3, byte),
            (3,),
        )[kind]

    def read(self, count: int) -> bytes:
        data = bytes(self.ring[:count])
        self.ring = self.ring[count:]
        return data


class End:
    """One end: what a shell does around a line."""

    def __init__(self, line: Line, way_in: Way, way_out: Way):
        self.line, self.way_in, self.way_out = line, way_in, way_out
        self.records, self.others, self.ups, self.downs = [], [], 0, []
        self.busy_until = 0
        self.stop = Stop()
        self.held = 0  # the most that its buffers ever held

    def step(self, now: int) -> None:
        if now >= self.busy_until:
            data = self.way_in.read(128)
            if data:
                data, left = self.stop.feed(data, now)
                assert not left, "noise has left the program"
                self.line.feed(data, now)
                self.take(now)
            at = self.line.deadline()
            if at is not None and now >= at:
                self.line.tick(now)
                self.take(now)
            data = self.line.output()
            while data:
                self.way_out.write(data)
                data = self.line.output()
        line = self.line
        self.held = max(self.held, len(line._splitter._open), len(line._receiver._record))
        assert line.waiting <= line._backlog and len(line._events) < 4 and not line._splitter._chunk
        assert (
            sum([len(record) for record in line._sender.records + line._unframed]) == line.waiting
        )

    def take(self, now: int) -> None:
        event = self.line.next_event()
        while event:
            kind, data = event
            if kind == RECORD:
                self.records.append(data)
            elif kind == UP:
                self.ups += 1
            elif kind == DOWN:
                self.downs.append(data)
            else:
                self.others.append(event)
            event = self.line.next_event()


class Bench:
    """A host and a board.

    seed  int; odds: one byte of so many is hit by noise, 0 for none
    ring  bytes of the board's ring, which is its window
    """

    def __init__(
        self,
        seed: int,
        odds: int = 0,
        ring: int = 260,
        host_window: int = 4096,
        baud: int = 115200,
        **options,
    ):
        self.dice = Dice(seed)
        self.now = 0
        self.options = dict(options, baud=baud)
        self.down = Way(self.dice, odds, ring, baud)  # host to board
        self.up = Way(self.dice, odds, host_window, baud)
        self.ring = ring
        self.host = End(
            Line(1 + self.dice.below(1 << 20), host_window, **self.options), self.up, self.down
        )
        self.board = None
        self.restart_board()

    def restart_board(self) -> None:
        self.down.ring = bytearray()
        self.board = End(
            Line(1 + self.dice.below(1 << 20), self.ring, **self.options), self.down, self.up
        )

    def set_noise(self, odds: int) -> None:
        self.down.odds = self.up.odds = odds

    def run(self, ms: int, until=None) -> bool:
        """Let time pass, at most *ms*, until the function says so."""
        end = self.now + ms
        while self.now < end:
            if until is not None and until():
                return True
            self.now += 1
            self.down.step()
            self.up.step()
            self.host.step(self.now)
            self.board.step(self.now)
        return until is not None and until()

    def open(self) -> None:
        """Open a session; raises AssertionError when there is none within 30 s."""
        ups = self.host.ups
        self.host.line.hello(self.now)
        assert self.run(30000, lambda: self.host.ups > ups)


def record(dice: Dice, number: int, most: int) -> bytes:
    """Return a record of 8..most bytes whose content says which it is and whether it is whole."""
    size = dice.below(60) if dice.below(2) else dice.below(most - 10)
    text = bytes([32 + (number * 7 + i * 11) % 90 for i in range(size)])
    return b"[%d,%d,%s]" % (number, size, text)


def converse(bench: Bench, count: int, most: int = 1500, slow_ms: int = 0) -> tuple:
    """Let both ends send *count* records in all, as chance has it; return what each sent: (the
    host, the board).

    slow_ms  the board does not read for as long as this, now and then
    Raises AssertionError when a record is damaged, lost, doubled or out of order, or a session
    ends."""
    dice, sent = bench.dice, ([], [])
    end = bench.now + 900000
    while count or bench.host.line.waiting or bench.board.line.waiting:
        for one, records in ((bench.host, sent[0]), (bench.board, sent[1])):
            data = record(dice, len(records), most)
            if (
                count
                and not dice.below(3)
                and len(data) <= bench.options["backlog"] - one.line.waiting
            ):
                one.line.send(data, bench.now)
                records.append(data)
                count -= 1
        if slow_ms and bench.now >= bench.board.busy_until and not dice.below(5):
            bench.board.busy_until = bench.now + dice.below(slow_ms)
        bench.run(1 + dice.below(40))
        assert bench.now < end and not bench.host.downs and not bench.board.downs, (
            bench.now,
            bench.host.downs,
            bench.board.downs,
        )
    assert bench.board.records == sent[0] and bench.host.records == sent[1]
    assert bench.host.held <= bench.options["limit"] and bench.board.held <= bench.options["limit"]
    for kind, text in bench.host.others + bench.board.others:
        assert kind == UNSURE
    return sent


def break_and_mend(bench: Bench, count: int) -> int:
    """Cut the wire, or restart an end, while records go both ways, and open a session again; return
    how many were lost.

    Raises AssertionError when what arrived is not the beginning of what was sent, or a lost record
    was not told to its sender."""
    dice, board, host = bench.dice, bench.board, bench.host
    first = len(board.records), len(host.records), len(board.downs), len(host.downs)
    sent = ([], [])
    for number in range(count):
        for one, records in ((host, sent[0]), (board, sent[1])):
            data = record(dice, number, 600)
            if len(data) <= bench.options["backlog"] - one.line.waiting:
                one.line.send(data, bench.now)
                records.append(data)
        bench.run(dice.below(60))
    is_restart = not dice.below(3)
    if is_restart:
        bench.restart_board()
    else:
        bench.down.is_cut = bench.up.is_cut = True
        bench.run(dice.below(30))
        if dice.below(2):  # the host does not wait for the end of its patience
            host.line.hello(bench.now)
        else:
            assert bench.run(80000, lambda: not host.line.waiting), "the host has not noticed"
        bench.down.is_cut = bench.up.is_cut = False
    bench.open()
    lost = 0
    got = board.records[first[0] :], host.records[first[1] :]
    for records, sent_records in zip(got, sent):
        assert records == sent_records[: len(records)]
        lost += len(sent_records) - len(records)
    told = [
        int(str(down, "utf-8").split(" ")[1])
        for down in (board.downs[first[2] :], host.downs[first[3] :])
        for down in down
    ]
    assert is_restart or len(sent[1]) - len(got[1]) <= sum(told)
    return lost

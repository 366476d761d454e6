"""core/line on a noisy wire: no damaged record is acted on, each arrives once and in order;
tests/soak has the long version.
"""

from line_wire import Bench, Dice, break_and_mend, converse, record
from test_line import pair, told, written

from clawlite.core.line.frame import RECORD
from clawlite.core.line.lineframe import COST

OPTIONS = {"plain": False, "limit": 2048, "backlog": 4096}


def bench(seed: int, odds: int, ring: int = 260) -> Bench:
    made = Bench(seed, odds, ring, **OPTIONS)
    made.open()
    return made


def test_noise_a_slow_reader_and_a_ring_that_drops():
    hit = 0
    for seed in range(4):
        for ring in (260, 512):
            made = bench(seed, 1000, ring)
            converse(made, 12, slow_ms=400)
            hit += made.down.hit + made.up.hit
    assert hit > 40


def test_a_clean_line_resends_nothing_and_fills_no_ring():
    for seed in range(3):
        made = bench(seed, 0)
        sent = converse(made, 20, slow_ms=200)
        assert len(sent[0]) and made.down.dropped == 0
        assert made.host.line._sender.resent == made.board.line._sender.resent == 0
        assert made.host.line.damaged == made.board.line.damaged == 0


def test_in_step_within_one_record_after_the_noise():
    for seed in range(6):
        made = bench(seed, 0)
        made.set_noise(40)
        for number in range(6):
            for end in (made.host, made.board):
                end.line.send(record(made.dice, number, 500), made.now)
        made.run(300 + made.dice.below(300))
        made.set_noise(0)
        made.run(2)  # what was hit is read now
        before = made.host.line.damaged, made.board.line.damaged
        made.host.line.send(b'["the one after"]', made.now)
        assert made.run(60000, lambda: made.board.records[-1:] == [b'["the one after"]'])
        assert made.run(60000, lambda: not made.board.line.waiting)
        assert len(made.board.records) == 7 and len(made.host.records) == 6, seed
        assert (
            made.host.line.damaged - before[0] <= 1 and made.board.line.damaged - before[1] <= 1
        ), seed
        assert not made.host.downs and not made.board.downs


def test_a_wire_that_is_cut_at_every_offset():
    records = [b'{"a":"' + b"x" * 150 + b'"}', b'{"b":2}']
    host, board = pair(512)
    for text in records:
        host.send(text, 0)
    whole = written(host)
    for cut in range(0, len(whole) + 1):
        host, board = pair(512)
        for text in records:
            host.send(text, 0)
        got = told(board, written(host)[:cut])
        now = 0
        while host.waiting:
            there, back = written(host), written(board)
            got += told(board, there, now)
            told(host, back, now)
            if not there and not back and host.waiting:
                now = min([at for at in (host.deadline(), board.deadline()) if at is not None])
                host.tick(now)
                board.tick(now)
        assert [data for kind, data in got if kind == RECORD] == records, cut
        assert now < 1000


def test_cut_lines_and_restarts_are_told_to_the_sender():
    for seed in range(3):
        made = bench(seed, 1000)
        for _ in range(2):
            break_and_mend(made, 5)
            made.host.line.send(b'["again"]', made.now)
            assert made.run(60000, lambda: made.board.records[-1:] == [b'["again"]'])


def test_a_dead_line_is_told_within_the_patience():
    made = bench(1, 0)
    made.down.is_cut = made.up.is_cut = True
    made.host.line.send(b"[1]", made.now)
    made.board.line.send(b"[2]", made.now)
    began = made.now
    assert made.run(60000, lambda: made.host.downs and made.board.downs)
    assert (
        made.host.downs == made.board.downs == [b"silent 1"] and 30000 <= made.now - began <= 34100
    )


def test_garbage_alone_says_nothing_and_stays_bounded():
    dice = Dice(7)
    host, board = pair(260, limit=300)
    for _ in range(300):
        data = bytes(
            [
                b"\x1e~\n\r\x0301dmahr{"[dice.below(13)] if dice.below(2) else dice.below(256)
                for _ in range(dice.below(200))
            ]
        )
        for kind, _ in told(board, data):
            assert kind == 3  # UNSURE
        assert len(board._splitter._open) <= 300 + COST
        assert len(written(board)) <= 260
    assert board.damaged > 100 and board.waiting == 0

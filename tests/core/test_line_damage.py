"""core/line while the noise goes on: what is whole is read, whatever came before it; nothing
else is; and every record arrives.
"""

from line_damage import KINDS, LIMIT, SIZES, Damage, talk

ODDS = 200  # one byte in so many: five times what a wire is held to


def told(kind: str, sizes: tuple, rounds: int, seed: int) -> int:
    """Talk over a wire that is hit by *kind*; return how many frames were."""
    bench = Damage(seed, ODDS, kind)
    sent = talk(bench, sizes, rounds)
    hit, missed, forged = bench.judged()
    assert missed == 0 and forged == 0, (kind, sizes, missed, forged)
    assert bench.board.records == sent[0] and bench.host.records == sent[1], (kind, sizes)
    assert bench.host.downs == bench.board.downs == [] and bench.host.ups == bench.board.ups == 1
    assert bench.host.held <= LIMIT and bench.board.held <= LIMIT
    return hit


def test_each_kind_of_damage_and_records_of_every_size():
    for kind in KINDS:
        hit = told(kind, SIZES[:-1], 3, 1)
        assert hit >= 5 or kind == "stop", (kind, hit)


def test_all_kinds_and_each_size():
    for seed, size in enumerate(SIZES):
        assert told("mixed", (size,), 60 if size < 60 else 20 if size < 1000 else 2, seed) >= 5, (
            size
        )


def test_the_longest_records_of_both_sides_at_once():
    assert told("mixed", (LIMIT,), 2, 3) >= 20


def test_0x03_alone_costs_nothing_where_it_is_taken_out():
    bench = Damage(5, ODDS, "stop")
    sent = talk(bench, (1, 59, 200), 10)
    assert bench.board.records == sent[0] and bench.host.records == sent[1]
    assert (
        bench.board.stop.pressed >= 5 and bench.board.line.damaged == bench.host.line.damaged == 0
    )


def test_0x03_that_stays_is_damage_like_any_other():
    bench = Damage(6, ODDS, "stop")
    for end in (bench.host, bench.board):
        end.stop.feed = lambda data, now: (data, False)
        end.way_in.has_stop = False
    sent = talk(bench, (1, 59, 200), 10)
    hit, missed, forged = bench.judged()
    assert (
        hit > 10
        and missed == forged == 0
        and bench.board.records == sent[0]
        and bench.host.records == sent[1]
    )


def test_the_judge_sees_what_is_missed_and_what_is_forged():
    bench = Damage(7, 0, "mixed")
    talk(bench, (20,), 3)
    assert bench.judged() == (0, 0, 0)
    talk(bench, (20,), 3)
    bench.down.items[-1][2] = 0
    bench.down.believed((9, 9, 100, b"nobody wrote this"), bench.board.line._seed)
    assert bench.judged() == (0, 1, 1)

"""core/line over a wire that is cut at any offset, for good or for a while: each record arrives,
or its sender is told.
"""

import sys
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "core"))

from line_damage import LIMIT, SIZES, Served, left_open, request  # noqa: E402

# Which way; where, in bytes that went it since the beginning; for how long, ms; what comes then.
CUTS = st.lists(
    st.tuples(st.booleans(), st.integers(0, 3000), st.integers(0, 1500), st.binary(max_size=40)),
    max_size=6,
)
WANTED = st.lists(st.sampled_from(SIZES[:-1]), min_size=1, max_size=6)


@settings(deadline=None, max_examples=60)
@given(CUTS, WANTED)
def test_a_wire_that_is_cut_for_a_while_loses_and_doubles_nothing(cuts, wanted):
    bench = Served(cuts)
    asked = [request(number, size) for number, size in enumerate(wanted)]
    for one in asked:
        bench.host.line.send(one, bench.now)
    assert bench.serve(
        120000,
        lambda: (
            len(bench.host.records) >= len(asked)
            and not bench.host.line.waiting
            and not bench.board.line.waiting
        ),
    )
    assert bench.host.records == [
        one.replace(b"ask", b"say") for one in asked
    ] and bench.answered == list(range(len(asked)))
    assert (
        bench.host.downs == bench.board.downs == []
        and bench.host.held <= LIMIT
        and bench.board.held <= LIMIT
    )
    hit, missed, forged = bench.judged()
    assert missed == forged == 0
    for way in (bench.down, bench.up):
        way.plan, way.until = [], 0
    # in step: it is answered as soon as on a wire that was never cut
    bench.host.line.send(request(99, 60), bench.now)
    assert bench.serve(200, lambda: len(bench.host.records) > len(asked)), (
        "the record after the last was not answered at once"
    )


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 3000), st.booleans(), st.booleans(), WANTED)
def test_a_wire_that_is_cut_for_good_ends_each_request_in_an_answer_or_an_error(
    at, is_down, is_up, wanted
):
    open_, is_in_step = left_open(at, is_down or not is_up, is_up, wanted)
    assert open_ == 0, "a request has neither an answer nor an error"
    assert is_in_step, "a new session is not in step"

"""What a channel hears of a turn."""

from clawlite.core.base.effect import CLOSE, LOG, OPEN, RECEIVE, SAY, VOID, WRITE
from clawlite.core.turns.turn_output import MAX_ANSWER, TurnOutput, keep_output


def said(*effects) -> str:
    """Return what is heard of a turn that comes to *effects*."""
    into = TurnOutput()
    for _ in keep_output((effect for effect in effects), "team/ada", into):
        pass
    return into.text()


def test_pieces_of_an_answer_are_one_line_whatever_comes_between_them():
    """A turn waits for its connection between two pieces."""
    pieces = (WRITE, "It is d"), (RECEIVE, 100), (WRITE, "ry."), (RECEIVE, 100), (WRITE, " Yes.")
    assert said(*pieces) == "It is dry. Yes."


def test_what_follows_a_tool_call_begins_a_line():
    call = (LOG, {"event": "tool.call"})
    assert said((WRITE, "I look."), call, (WRITE, "Dry."), (SAY, "Done.")) == "I look.\nDry.\nDone."


def test_an_answer_that_broke_off_is_taken_back():
    assert said((WRITE, "It is w"), (VOID, 7), (SAY, "It is dry.")) == "It is dry."


def test_of_an_answer_that_broke_off_no_character_stays():
    """As core/providers/provider.py has it: the connection is closed before the answer is void."""
    half = (WRITE, "Half "), (RECEIVE, 1), (WRITE, "of it"), (CLOSE,), (WRITE, "\n"), (VOID, 11)
    whole = (OPEN,), (WRITE, "It is dry."), (CLOSE,), (WRITE, "\n")
    assert said(*half, *whole) == "It is dry."
    assert said((SAY, "Look."), *half, (LOG, {}), *whole, (SAY, "Done.")) == (
        "Look.\nIt is dry.\nDone."
    )


def test_an_answer_that_is_cut_says_so():
    most = "x" * MAX_ANSWER
    assert said((WRITE, most), (LOG, {"event": "tool.call"})) == most
    mark = "\n[truncated: true, original_characters: %d]"
    assert said((WRITE, most), (SAY, "yz")) == most + mark % (MAX_ANSWER + 2)
    assert said((WRITE, most + "yz"), (VOID, 2)) == most
    assert said((WRITE, most + "yz"), (VOID, 3)) == most[1:]

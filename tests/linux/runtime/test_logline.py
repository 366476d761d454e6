"""A line of the log is what ``dumps`` gives, whatever made it."""

from clawlite.linux.io import logline
from clawlite.linux.io.jsontext import dumps

EVENT = {
    "event": "tool.call",
    "tool": "echo",
    "caller": "operator",
    "arguments": {"text": 'a "b"\n', "n": 1.5},
    "image": "0a1b2c3d",
    "request_id": "123e4567-e89b-42d3-a456-00000000063f",
    "action": "allow",
    "rule_id": 'r"1',
    "trace": [[4, True]],
    "status": "ok",
    "duration_ms": 12,
    "timestamp": "2026-11-22T02:28:43Z",
}


def test_it_is_what_dumps_gives():
    changes = [
        {},
        {"arguments": {}},
        {"tool": "other\u00e9"},
        {"rule_id": None, "action": "deny"},
        {"trace": []},
        {"trace": [[1, False], [2, True]]},
        {"trace": [[1, True]]},
        {"trace": [[4, False]]},
        {"status": "error"},
        {"image": "ffffffff"},
        {"duration_ms": 0},
        {"caller": "console"},
        {"request_id": "123e4567-e89b-42d3-a456-000000000640"},
        {"timestamp": "2026-11-22T02:28:44Z"},
    ]
    for _ in range(2):  # as it is made, and as it is kept
        for change in changes:
            event = dict(EVENT, **change)
            assert logline.line(event) == dumps(event), change
            assert list(event) == list(EVENT)
    for other in (
        {"event": "notice", "text": "x"},
        {},
        dict(EVENT, again=True),
        {name: EVENT[name] for name in reversed(list(EVENT))},
    ):
        assert logline.line(other) == dumps(other)


def test_what_is_kept_is_bounded():
    for number in range(3 * logline._MOST):
        event = dict(EVENT, rule_id="rule-%d" % number)
        assert logline.line(event) == dumps(event)
        assert len(logline._known) <= logline._MOST

"""The console's commands, and questions that wait behind others: what a person reads, on every
runtime.
"""

import transcripts

from clawlite.core.base.effect import SLEEP, WRITE
from clawlite.core.image.image import HAS_SIDE_EFFECTS
from clawlite.core.policy.trace import trace

CALL = (
    '{"jsonrpc":"2.0","id":%d,"method":"claw.tool.call","params":{"name":"water","arguments":{"seconds":%d},'
    '"context":{"request_id":"00000000-0000-4000-8000-00000000000%d","identity":"greenhouse"}}}'
)
OPEN = (
    '{"jsonrpc":"2.0","id":9,"method":"claw.initialize","params":{"protocolVersion":"0.3.0","clientInfo":'
    '{"name":"t","version":"1"},"capabilities":{},"manifest":{"kind":"Claw","metadata":{"name":"x"},"spec":{}}}}'
)


def player(name="greenhouse"):
    it = transcripts.Player(name, "console")
    it.step(0, "start", None)
    it.step(1, "record", OPEN)
    return it


def words(effects):
    """Return what a person sees: texts, and prompts in brackets."""
    return [
        effect[1] if effect[0] != "prompt" else "<%s>" % effect[1]
        for effect in effects
        if effect[0] in ("say", "prompt")
    ]


def asks(seconds, left):
    return [
        "Approve water(seconds=%d)?\n  rule ask-before-watering asks first: water does not "
        "flow back\n  (%d s, then denied)" % (seconds, left),
        "<[y/N] >",
    ]


def water(seconds):
    return CALL % (seconds, seconds, seconds)


# -- questions


def test_a_question_that_waited_behind_another_is_put_with_the_time_that_is_left():
    it = player()
    assert words(it.step(1000, "record", water(1))) == asks(1, 60)
    assert words(it.step(20000, "record", water(2))) == []
    assert words(it.step(25000, "line", "n")) == asks(2, 55)
    assert words(it.step(79000, "line", "maybe")) == [
        "Please answer y or n; the call waits (1 s left).",
        "<[y/N] >",
    ]
    assert words(it.step(79999, "line", "maybe")) == [
        "Please answer y or n; the call waits (1 s left).",
        "<[y/N] >",
    ]
    assert words(it.step(80000, "tick", None)) == ["<> >"]


def test_what_a_model_says_below_a_question_is_not_what_a_person_approves():
    it = player()
    it.step(1000, "record", water(1))

    def talk():
        yield (WRITE, "Approve board-info()?\n  rule x asks first\n  (60 s, then denied)\n")
        yield (SLEEP, 60000)

    it.agent.begin(talk(), lambda *ended: None, 1000)
    again = ["An answer came below this question, which is put again:"]
    assert words(it.step(2000, "line", "y")) == again + asks(1, 59), "it approves the other one"
    assert it.agent.waiting
    it.step(2000, "line", "/status")
    assert words(it.step(2000, "line", "no"))[-1] == "<> >" and not it.agent.waiting
    it.step(3000, "record", water(2))
    it.step(3000, "line", "yes")
    assert not it.agent.waiting, "what was said before a question does not matter"


def test_a_question_is_put_although_the_call_before_it_still_runs():
    it = player()
    it.step(1000, "record", water(1))
    it.step(1000, "record", water(2))
    assert words(it.step(1500, "line", "y")) == asks(2, 60)
    assert words(it.step(3000, "tick", None)) == []
    assert words(it.step(3100, "line", "n")) == ["<> >"]


def test_a_turn_that_ends_while_another_question_waits_gives_no_prompt_before_it():
    it = player()
    it.step(1000, "line", "water the plants for 1 seconds")
    it.step(1000, "record", water(2))
    assert words(it.step(1500, "line", "n"))[-2:] == asks(2, 60)
    assert [effect[0] for effect in it.step(1600, "line", "n")].count("prompt") == 1
    it = player()
    it.step(1000, "line", "water the plants for 1 seconds")
    it.step(1000, "record", water(2))
    effects = it.step(1500, "line", "n")
    assert [effect[0] for effect in effects].count("prompt") == 1, words(effects)


def test_a_question_whose_first_ran_out_is_put():
    it = player()
    it.step(1000, "record", water(1))
    it.step(2500, "record", water(2))
    assert words(it.step(61000, "tick", None)) == asks(2, 2)
    assert words(it.step(61100, "line", "n")) == ["<> >"]


def test_a_question_stands_below_the_text_of_a_turn_that_ended_meanwhile():
    """A model's text may look like a question, and the answer would be that to another."""
    it = player()
    it.step(1000, "line", "water the plants for 1 seconds")
    it.step(1500, "line", "y")
    assert words(it.step(1600, "record", water(2))) == asks(2, 60)
    said = words(it.step(2600, "tick", None))
    assert len(said) > 2 and said[-2:] == asks(2, 59), said
    assert words(it.step(2700, "line", "n")) == ["<> >"]


def test_a_person_may_look_before_they_answer():
    it = player()
    assert words(it.step(1000, "line", "water the plants for 1 seconds")) == asks(1, 60)
    assert words(it.step(1100, "line", "/show")) == ["water, with:", "  seconds=1", "<[y/N] >"]
    for at, line in enumerate(("/trace", "/trace 1", "/show 1")):
        assert words(it.step(1200 + at, "line", line))[0] == "No tool has been called yet.", line
    assert words(it.step(1300, "line", "/help"))[0].startswith("Type a message")
    assert words(it.step(1400, "line", "/quit")) == [
        "Please answer y or n; the call waits (60 s left).",
        "<[y/N] >",
    ]
    assert words(it.step(1500, "line", "n"))[-1] == "<> >"
    assert words(it.step(1600, "line", "/show 1")) == ["water, with:", "  seconds=1", "<> >"]
    assert (
        words(it.step(1700, "line", "/show 2"))[0]
        == 'Expected /show with a number from 1 (the last call) to 1, got "2".'
    )


def test_a_misspelt_command_has_its_did_you_mean():
    it = player()
    for at, (typed, meant) in enumerate(
        (
            ("/trcae", "/trace"),
            ("/tool", "/tools"),
            ("/statuss", "/status"),
            ("/hepl", "/help"),
            ("/memorx", "/memory"),
            ("/stat", "/status"),
            ("/mem", "/memory"),
        )
    ):
        assert words(it.step(1000 + at, "line", typed))[
            0
        ] == 'No command "%s". Did you mean %s? /help lists them.' % (typed, meant)
    assert words(it.step(1900, "line", "/s"))[0] == 'No command "/s". /help lists them.'
    assert words(it.step(2000, "line", "/nope"))[0] == 'No command "/nope". /help lists them.'


def test_a_question_that_the_operator_answered_is_taken_back():
    it = player()
    it.step(1000, "record", water(1))
    it.step(1100, "record", water(2))
    deny = '{"jsonrpc":"2.0","id":5,"method":"claw.tool.deny","params":{"request_id":"00000000-0000-4000-8000-00000000000%d"}}'  # noqa: E501
    assert words(it.step(1200, "record", deny % 2)) == []
    assert words(it.step(1300, "record", deny % 1)) == ["<> >"]
    assert words(it.step(1400, "line", "/trace"))[0].startswith(
        "water(seconds=1)  refused (-32013), called by the operator\n"
    )


def test_lines_that_waited_for_a_question_of_the_operator_are_taken_after_it():
    it = player()
    it.step(1000, "record", water(1))
    it.console.line("/memory", 1100, True)
    assert words(it.step(1200, "line", "n"))[1].startswith("This agent declares no memory")


def test_a_turn_whose_question_was_answered_gets_one_prompt():
    it = player()
    assert words(it.step(1000, "line", "water the plants for 1 seconds")) == asks(1, 60)
    assert words(it.step(1100, "line", "y")) == []
    assert words(it.step(3000, "tick", None)) == ["Watered for 1 s.", "<> >"]


# -- /trace


class Image:
    """What ``trace`` asks of an image; rule n is [id, action, reason, timeout_s, allow, root,
    policy, rate].
    """

    class agent:
        autonomy = 2

    class tool_:
        flags = HAS_SIDE_EFFECTS
        paths = ["path"]

    rules = [
        ["ws", 3, "", 0, 0, "/workspace", "p", None],
        ["rest", 0, "not there", 0, 0, None, "p", None],
        ["ask", 1, "", 9, 1, None, "p", None],
        ["spend", 0, "", 0, 0, None, "q", [1000, 2500000000]],
        ["some", 3, "", 0, 0, "/a", "q", [None, 5000000]],
        ["etc", 0, "", 0, 0, "/etc", "q", None],
    ]

    def rule(self, number):
        return self.rules[number]

    def tool(self, name):
        return self.tool_ if name == "t" else None


class Agent:
    def __init__(self, event, answer=None, autonomy=2):
        whole = {
            "event": "tool.call",
            "tool": "t",
            "caller": "provider",
            "arguments": {},
            "status": "ok",
        }
        for key in event:
            whole[key] = event[key]
        self.image = Image()
        self.image.agent = Image.agent()
        self.image.agent.autonomy = autonomy
        self.calls = [(whole, answer)]


def told(event, answer=None, autonomy=2):
    return trace(Agent(event, answer, autonomy), []).split("\n  ")


def test_rules_are_told_in_the_order_in_which_they_were_looked_at():
    assert told(
        {
            "arguments": {"b": 1, "a": "x"},
            "status": "refused",
            "code": -32011,
            "action": "deny",
            "rule_id": "rest",
            "trace": [[0, False], [1, True]],
        }
    ) == [
        't(a="x", b=1)  refused (-32011), called by the provider',
        "- rule ws (policy p, within /workspace): does not match, its paths do not all lie there",
        "* rule rest (policy p): matches, so it is denied: not there",
    ]


def test_why_a_rule_did_not_match_is_told():
    event = {
        "action": "allow",
        "rule_id": None,
        "arguments": {"path": "/a/x"},
        "trace": [[3, False], [4, False], [5, False]],
    }
    assert told(event)[1:4] == [
        "- rule spend (policy q, once 1000 tokens or 2.5 dollars of the day are used): does not "
        "match, the day is not used up",
        "- rule some (policy q, within /a and until 0.005 dollars of the day are used): does not "
        "match, the day is used up",
        "- rule etc (policy q, within /etc): does not match, none of its paths lies there",
    ]
    event["arguments"] = {"path": "/b"}
    assert told(event)[2].endswith("does not match, its paths do not all lie there")


def test_limits_and_retries_are_told():
    event = {
        "action": "require-approval",
        "rule_id": "ask",
        "trace": [[2, True]],
        "status": "refused",
        "code": -32011,
        "limit": "tool_calls_per_minute",
    }
    assert told(event)[1:] == [
        "* rule ask (policy p): matches, so it asks first",
        "* limit: tool_calls_per_minute, and this call would exceed it: it is denied",
    ]
    event = {"action": "allow", "rule_id": "rest", "trace": [[1, True]], "attempts": 3}
    assert told(event)[-1] == "* retry: it was tried 3 times"


def test_an_event_that_names_its_approval_needs_no_other_answer():
    event = {
        "action": "require-approval",
        "rule_id": "ask",
        "trace": [[2, True]],
        "approval": "approved",
    }
    assert told(event)[-1] == "* approval: the person approved"
    for code, last in ((-32012, "nobody answered in time"), (-32013, "it was not approved")):
        event = {"action": "require-approval", "rule_id": "ask", "trace": [[2, True]], "code": code}
        assert told(event)[-1] == "* approval: " + last


def test_no_rule_is_told():
    event = {"status": "refused", "code": -32011, "action": "deny", "rule_id": None, "trace": []}
    assert told(event)[1:] == ["* no rule can match this tool: it is denied"]
    event["trace"] = [[0, False]]
    assert told(event)[1:] == [
        "- rule ws (policy p, within /workspace): does not match, its paths do not all lie there",
        "* no rule matches: it is denied",
    ]


def test_approvals_are_told():
    event = {"action": "require-approval", "rule_id": "ask", "trace": [[2, True]]}
    for answer, code, last in (
        ("approved", None, "the person approved"),
        ("denied", -32013, "it was not approved"),
        ("expired", -32012, "nobody answered in time"),
        ("approved", -32014, "the person approved"),
        ("expired", None, "nobody answered in time, and the rule allows it then"),
        ("expired", -32014, "nobody answered in time, and the rule allows it then"),
    ):
        if code:
            event["code"] = code
        else:
            event.pop("code", None)
        assert told(event, answer)[1:] == [
            "* rule ask (policy p): matches, so it asks first",
            "* approval: " + last,
        ], (answer, code)


def test_autonomy_is_told_where_it_decided():
    event = {"action": "allow", "rule_id": "ws", "trace": [[0, True]]}
    rule = "* rule ws (policy p, within /workspace): matches, so it is allowed"
    asked = "* autonomy: this agent is supervised and the tool has side effects, so it asks first"
    assert told(event) == ["t()  ok, called by the provider", rule]
    assert told(event, "approved", 1)[1:] == [rule, asked, "* approval: the person approved"]
    assert told({"status": "refused", "code": -32011}, None, 0)[1:] == [
        "* autonomy: this agent only observes, it runs no tools; no rule was looked at"
    ]


def test_calls_that_no_rule_saw_say_why():
    refused = {"status": "refused", "code": -32602}
    assert told(refused)[1:] == [
        "* the call does not fit what the tool takes; no rule was looked at"
    ]
    refused["tool"] = "x"
    assert told(refused)[1:] == ["* this agent has no such tool; no rule was looked at"]
    for odd in (None, 5, [], {}):
        refused["tool"] = refused["arguments"] = odd
        assert told(refused)[1:] == ["* this agent has no such tool; no rule was looked at"]
    assert told({"status": "refused", "code": -32010})[1:] == [
        "* where its path leads could not be found out, so no rule decided"
    ]


def test_trace_takes_a_number_of_a_call_that_is_kept():
    agent = Agent({})
    agent.calls = [
        (
            {
                "event": "tool.call",
                "tool": "x",
                "caller": "provider",
                "arguments": {"n": n},
                "status": "refused",
                "code": -32602,
            },
            None,
        )
        for n in range(3)
    ]
    for text, n in (("", 2), ("1", 2), ("2", 1), ("3", 0), ("03", 0)):
        assert trace(agent, text.split()).startswith("x(n=%d)  " % n), text
    for wrong in ("0", "4", "-1", "+1", "1.0", "x", "1 2", "9" * 9, "9" * 4000, "\xb2"):
        assert trace(agent, wrong.split()).startswith(
            "Expected /trace with a number from 1 (the last call) to 3, got "
        ), wrong
        assert len(trace(agent, wrong.split())) < 120


def test_the_last_eight_calls_are_kept_where_a_console_is():
    it = player()
    for n in range(20):
        it.step(100 + n, "line", "water the plants for %d seconds" % (70 + n))
        assert len(it.agent.calls) == min(8, n + 1)
    assert [event["arguments"]["seconds"] for event, _ in it.agent.calls] == list(range(82, 90))


def test_nobody_keeps_calls_without_a_console():
    it = transcripts.Player("greenhouse", "operator")
    it.step(0, "start", None)
    it.step(1, "record", OPEN)
    it.step(2, "record", water(99))
    assert it.agent.calls is None


# -- /memory


def test_memory_says_what_is_kept():
    none = "This agent declares no memory: nothing that it is told survives the session."
    it = player()
    it.step(10, "line", "hello")
    assert words(it.step(20, "line", "/memory")) == [
        none,
        "Its providers answer each message by itself: no earlier turn is kept.",
        "<> >",
    ]
    it = player()
    it.agent.setup.keep_bytes = 1000
    kept = (
        "Its providers see this conversation again: %s, %d bytes of text; above 1000 bytes the "
        "oldest are forgotten."
    )
    assert words(it.step(20, "line", "/memory"))[1] == kept % ("0 turns", 0)
    said = words(it.step(30, "line", "hello \xfc"))[0]
    assert words(it.step(40, "line", "/memory"))[1] == kept % ("1 turn", 8 + len(said.encode()))
    it.step(50, "line", "hello \xfc")
    assert words(it.step(60, "line", "/memory"))[1] == kept % (
        "2 turns",
        2 * (8 + len(said.encode())),
    )


def test_several_lines_that_were_pasted_are_a_message():
    """Not even a command that begins them is one; a line end behind a command changes nothing."""
    for text in ("/quit\nand more", "/status\n/quit", "/etc/hosts\n/etc/passwd"):
        effects = player().step(2, "line", text)
        assert "There is no command" not in str(effects)
        assert not [effect for effect in effects if effect[0] == "exit"]
        assert "I have no rule for that" in str(words(effects)), effects
    assert [e for e in player().step(2, "line", "/quit\n") if e[0] == "exit"]

"""``clawlite serve --stdio``: hostile records, slow tools, the end, and a second session on the
same process.
"""

import json
import signal

import pytest
from agents import INITIALIZE, ODD, UUID, eventually, tool_call

STATUS = b'{"jsonrpc":"2.0","id":7,"method":"claw.status"}'
PARSE, REQUEST, METHOD, PARAMS = -32700, -32600, -32601, -32602
# One line in, exactly one error out; then the agent still serves.
HOSTILE = [
    (b"garbage", PARSE),
    (b"{", PARSE),
    (b"{]", PARSE),
    (b"[" * 50000 + b"]" * 50000, PARSE),
    (b"[" * 50000, PARSE),
    (b'{"a":' * 50000 + b"1" + b"}" * 50000, PARSE),
    (b"\xff\xfe", PARSE),
    (b'{"id":"\xed\xa0\x80"}', PARSE),
    (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"claw.status"}', PARSE),
    (b'{"id":"\\ud800"}', PARSE),
    (b"NaN", PARSE),
    (b'{"id":1e999}', PARSE),
    (b'{"id":' + b"9" * 5000 + b"}", PARSE),
    (b"01", PARSE),
    (b'{"a":1,}', PARSE),
    (b"{'a':1}", PARSE),
    (b'{"a":"\x01"}', PARSE),
    (b"\x00", PARSE),
    (b"\xef\xbb\xbf" + STATUS, PARSE),
    (STATUS + b"x", PARSE),
    (STATUS * 2, PARSE),
    (b'"' + b"x" * 2000000 + b'"', REQUEST),
    (b"x" * 2000000, REQUEST),
    (b"null", REQUEST),
    (b"true", REQUEST),
    (b"1", REQUEST),
    (b'"claw.status"', REQUEST),
    (b"[]", REQUEST),
    (b"{}", REQUEST),
    (b"[" + b",".join([STATUS] * 65) + b"]", REQUEST),
    (b'{"jsonrpc":"1.0","id":1,"method":"claw.status"}', REQUEST),
    (b'{"jsonrpc":"2.0","id":1}', REQUEST),
    (b'{"jsonrpc":"2.0","id":true,"method":"claw.status"}', REQUEST),
    (b'{"jsonrpc":"2.0","id":{},"method":"claw.status"}', REQUEST),
    (b'{"jsonrpc":"2.0","id":1,"method":5}', REQUEST),
    (b'{"jsonrpc":"2.0","id":1,"method":"claw.status","params":5}', REQUEST),
    (b'{"jsonrpc":"2.0","id":1,"method":"nope"}', METHOD),
    (b'{"jsonrpc":"2.0","id":1,"method":"claw.memory.query"}', METHOD),
    (b'{"jsonrpc":"2.0","id":1,"method":"' + b"m" * 10000 + b'"}', METHOD),
    (b'{"jsonrpc":"2.0","id":1,"method":"claw.tool.call","params":[]}', PARAMS),
    (b'{"jsonrpc":"2.0","id":1,"method":"claw.tool.call","params":{}}', PARAMS),
]


def test_every_hostile_line_gets_one_error_and_the_agent_serves_on(bench):
    with bench("serve", "--stdio") as agent:
        agent.initialize()
        for line, code in HOSTILE:
            agent.send(line + b"\n")
            answer = agent.message()
            assert answer["error"]["code"] == code, (line[:60], answer)
            assert answer["error"]["message"] and len(json.dumps(answer)) < 1000, (
                line[:60],
                answer,
            )
            assert agent.is_serving(), line[:60]
        agent.end()
        assert agent.wait() == 0 and agent.errors() == ""


@pytest.mark.parametrize(
    "arguments, said",
    [
        ({"ms": "5"}, "pump: at arguments.ms: expected an integer"),
        ({}, "ms"),
        ({"ms": 5, "mss": 1}, "mss"),
        ({"ms": 1.5}, "arguments.ms"),
        ({"ms": True}, "arguments.ms"),
        ([], "object"),
    ],
)
def test_bad_arguments_are_told_by_path(bench, marks, arguments, said):
    with bench("serve", "--stdio") as agent:
        agent.initialize()
        request = tool_call("pump")
        request["params"]["arguments"] = arguments
        agent.line(json.dumps(request))
        error = agent.message()["error"]
        assert error["code"] == PARAMS and said in error["message"], error
        assert agent.is_serving() and not (marks / "pump-on").exists()


def test_half_of_a_surrogate_pair_in_params_is_answered_to_who_asked(bench):
    with bench("serve", "--stdio") as agent:
        agent.initialize()
        for id, shown, code in (
            ('"a"', "a", PARAMS),
            ('""', "", PARAMS),
            ("7", 7, PARAMS),
            ('"\\ud800"', None, -32700),
            ("null", None, -32700),
            ("{}", None, -32700),
        ):
            agent.line(
                '{"jsonrpc":"2.0","id":%s,"method":"claw.tool.call","params":{"name":"pump","arguments":{"ms":"x\\udfff"}}}'
                % id
            )
            answer = agent.message()
            assert (
                answer["error"]["code"] == code
                and answer["id"] == shown
                and "surrogate" in answer["error"]["message"]
            ), answer
        agent.line('{"jsonrpc":"2.0","id":1,"method":"\\ud800"}')
        assert agent.message()["error"]["code"] == -32700 and agent.is_serving()


def test_notifications_and_responses_and_empty_lines_are_not_answered(bench):
    with bench("serve", "--stdio") as agent:
        agent.initialize()
        agent.send(
            b'{"jsonrpc":"2.0","method":"claw.status"}\n{"jsonrpc":"2.0","method":"nope"}\n'
            b"\n\r\n\x1e\n"
            b'{"jsonrpc":"2.0","id":1,"result":{}}\n'
            b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}\n'
        )
        assert agent.is_serving()


def test_batches_are_answered_as_batches(bench):
    with bench("serve", "--stdio") as agent:
        agent.initialize()
        call = json.dumps(tool_call("quick", number=9)).encode()
        agent.send(b"[" + STATUS + b',{"jsonrpc":"2.0","method":"claw.status"},5,' + call + b"]\n")
        answers = agent.message()
        assert sorted(str(answer["id"]) for answer in answers) == ["7", "9", "None"]
        assert agent.is_serving()


def test_ids_come_back_as_they_were(bench):
    with bench("serve", "--stdio") as agent:
        agent.initialize()
        for id in ("", "ü🌱", 0, -1, 2**53, 1.5, None):
            assert agent.call("claw.status", id=id)["id"] == id


def test_everything_before_initialize_is_refused_but_initialize(bench):
    with bench("serve", "--stdio") as agent:
        assert agent.call("claw.status")["error"]["code"] == REQUEST
        agent.line(json.dumps(tool_call("quick")))
        assert agent.message()["error"]["code"] == REQUEST
        bad = dict(INITIALIZE, protocolVersion="9.0.0")
        assert agent.call("claw.initialize", bad)["error"]["code"] == -32001
        agent.initialize()
        assert agent.call("claw.initialize", INITIALIZE)["error"]["code"] == REQUEST
        assert agent.is_serving()


def test_end_of_input_ends_it_with_0(bench):
    with bench("serve", "--stdio") as agent:
        agent.initialize().end()
        assert agent.wait() == 0 and agent.errors() == ""


def test_end_of_input_without_a_session(bench):
    with bench("serve", "--stdio") as agent:
        agent.end()
        assert agent.wait() == 0 and agent.text() == ""


def test_end_of_input_with_a_call_under_way_ends_it_and_the_call_is_answered(bench, marks):
    with bench("serve", "--stdio") as agent:
        agent.initialize()
        agent.line(json.dumps(tool_call("pump", {"ms": 3600000}, 5)))
        eventually((marks / "pump-on").exists)
        agent.end()
        assert agent.wait() == 0
        assert (marks / "pump-off").exists()
        answer = json.loads(agent.unread)
        assert answer["id"] == 5 and "error" in answer


def test_a_short_call_ends_well_after_the_end_of_input(bench, marks):
    with bench("serve", "--stdio") as agent:
        agent.initialize()
        agent.line(json.dumps(tool_call("pump", {"ms": 300}, 5)))
        agent.end()
        assert agent.wait() == 0
        assert json.loads(agent.unread)["result"]["content"][0]["text"] == "Pumped."


def test_the_last_record_without_an_end_is_answered(bench):
    """``printf '{...}' | clawlite serve --stdio``"""
    with bench("serve", "--stdio") as agent:
        agent.initialize()
        agent.send(STATUS)
        agent.end()
        assert agent.wait() == 0
        assert json.loads(agent.unread)["id"] == 7


def test_a_cut_last_record_is_an_error(bench):
    with bench("serve", "--stdio") as agent:
        agent.initialize()
        agent.send(STATUS[:20])
        agent.end()
        assert agent.wait() == 0
        assert json.loads(agent.unread)["error"]["code"] == PARSE


# docs/errors.md, exit codes
SIGNALS = [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]


@pytest.mark.parametrize("number, code", SIGNALS)
def test_a_signal_ends_it_with_the_pump_off_and_its_call_is_answered(bench, marks, number, code):
    with bench("serve", "--stdio") as agent:
        agent.initialize()
        agent.line(json.dumps(tool_call("pump", {"ms": 60000})))
        eventually((marks / "pump-on").exists)
        agent.signal(number)
        assert agent.wait() == code
        assert (marks / "pump-off").exists() and agent.errors() == ""
        assert json.loads(agent.unread)["error"] == {
            "code": REQUEST,
            "message": "the agent stopped before this call ended",
            "data": {"hint": "start the agent, and call again with a new id"},
        }


@pytest.mark.parametrize("number, code", SIGNALS)
def test_calls_that_end_soon_after_a_signal_have_their_results(
    bench, marks, tmp_path, number, code
):
    with bench("serve", "--stdio") as agent:
        agent.initialize()
        for at in range(3):
            agent.line(json.dumps(dict(tool_call("pump", {"ms": 300}, 10 + at), id=10 + at)))
        eventually(
            lambda: (marks / "pump-on").exists() and len((marks / "pump-on").read_text()) == 3
        )
        agent.signal(number)
        assert agent.wait() == code
        answers = [json.loads(line) for line in agent.unread.splitlines()]
        assert sorted(answer["id"] for answer in answers) == [10, 11, 12]
        assert all(answer["result"]["isError"] is False for answer in answers)
        ways = [
            (event["from"], event["to"])
            for path in (tmp_path / "home").rglob("log.jsonl")
            for event in map(json.loads, path.read_text().splitlines())
            if event["event"] == "lifecycle.transition"
        ]
        assert ways[-2:] == [("READY", "STOPPING"), ("STOPPING", "STOPPED")]


@pytest.mark.parametrize("number, code", SIGNALS)
def test_a_signal_ends_a_shutdown_that_would_drain_for_a_day(bench, marks, number, code):
    with bench("serve", "--stdio") as agent:
        agent.initialize()
        agent.line(json.dumps(tool_call("pump", {"ms": 60000})))
        eventually((marks / "pump-on").exists)
        agent.line(
            json.dumps(
                {
                    "jsonrpc": "2.0",
                    "id": 9,
                    "method": "claw.shutdown",
                    "params": {"timeout_ms": 86400000},
                }
            )
        )
        assert agent.call("claw.status")["result"]["state"] == "STOPPING"
        agent.signal(number)
        assert agent.wait() == code
        assert [json.loads(line).get("result") for line in agent.unread.splitlines()][-1] == {
            "drained": False
        }


@pytest.mark.parametrize("number, code", SIGNALS)
def test_a_signal_ends_it_while_a_handler_hangs(bench, marks, number, code):
    with bench("serve", "--stdio") as agent:
        agent.initialize()
        agent.line(json.dumps(tool_call("hang")))
        eventually((marks / "hang-on").exists)
        agent.signal_at_rest(number)
        assert agent.wait() == code
        assert (marks / "hang-off").exists() and agent.errors() == ""
        assert json.loads(agent.unread)["result"]["isError"], (
            "it was ended by the signal, and says so"
        )


@pytest.mark.parametrize("number, code", SIGNALS)
def test_what_was_sent_before_a_signal_is_answered_and_begins_nothing(
    bench, marks, tmp_path, number, code
):
    with bench("serve", "--stdio") as agent:
        agent.initialize()
        agent.line(json.dumps(tool_call("hang")))
        eventually((marks / "hang-on").exists)
        for at in range(300):  # more than one read takes
            agent.line(json.dumps(dict(tool_call("pump", {"ms": 1}, 10 + at), id=10 + at)))
        agent.signal_at_rest(number)
        assert agent.wait() == code and not (marks / "pump-on").exists()
        answers = [json.loads(line) for line in agent.unread.splitlines()]
        assert [answer["id"] for answer in answers[1:]] == [10 + at for at in range(300)]
        for answer in answers[1:]:
            error = answer["error"]
            assert (error["code"], error["message"]) == (REQUEST, "the agent is ending")
            assert error["data"]["ran"] is False
        for path in (tmp_path / "home").rglob("log.jsonl"):
            for event in map(json.loads, path.read_text().splitlines()):
                assert event.get("duration_ms", 0) >= 0, event


def test_a_second_ctrl_c_leaves_at_once(bench, marks):
    with bench("serve", "--stdio") as agent:
        agent.initialize()
        agent.line(json.dumps(tool_call("pump", {"ms": 60000})))
        eventually((marks / "pump-on").exists)
        agent.signal(signal.SIGINT)
        agent.signal(signal.SIGINT)
        assert agent.wait() == 130 and (marks / "pump-off").exists()


def test_a_slow_generator_never_delays_a_status(bench, marks):
    with bench("serve", "--stdio") as agent:
        agent.initialize()
        for number in range(20):
            agent.line(json.dumps(tool_call("pump", {"ms": 600000}, 100 + number)))
        eventually(
            lambda: (marks / "pump-on").exists() and len((marks / "pump-on").read_text()) == 20
        )
        for _ in range(50):
            assert agent.is_serving()  # before its deadline: the pumps run ten minutes


def test_one_request_id_twice_waits_for_the_first_and_gets_the_same(bench, marks):
    with bench("serve", "--stdio") as agent:
        agent.initialize()
        for id in (3, 4):
            agent.line(json.dumps(dict(tool_call("careful", number=3), id=id)))
        assert agent.call("claw.tool.approve", {"request_id": UUID % 3})["result"] == {
            "acknowledged": True
        }
        for id in (3, 4):
            answer = agent.message()
            assert answer["id"] == id and answer["result"]["content"][0]["text"] == "careful ran"
        assert (marks / "careful").read_text() == "x"
        # a request_id asks once, so a late answer meets no newer question
        again = agent.call("claw.tool.call", tool_call("careful", number=3)["params"], id=5)
        assert again["result"]["content"][0]["text"] == "careful ran"
        assert (marks / "careful").read_text() == "x"
        for method in ("claw.tool.approve", "claw.tool.deny"):
            said = agent.call(method, {"request_id": UUID % 3})["result"]
            assert said == {"acknowledged": False}


def test_too_many_calls_are_refused_by_number(bench):
    with bench("serve", "--stdio") as agent:
        agent.initialize()
        agent.send(
            "".join(
                json.dumps(tool_call("careful", number=number)) + "\n" for number in range(1, 1026)
            )
        )
        answer = agent.message()
        assert (
            answer["id"] == 1025
            and answer["error"]["code"] == REQUEST
            and "1024" in answer["error"]["message"]
        )
        assert agent.is_serving()


def test_shutdown_drains_and_a_new_session_opens_on_the_same_process(bench, marks):
    with bench("serve", "--stdio") as agent:
        for number in (5, 15):
            agent.initialize()
            agent.line(json.dumps(dict(tool_call("pump", {"ms": 200}, number), id=5)))
            agent.line(
                '{"jsonrpc":"2.0","id":6,"method":"claw.shutdown","params":{"timeout_ms":60000}}'
            )
            assert agent.call("claw.status", id=8)["result"]["state"] == "STOPPING"
            assert agent.message()["result"]["content"][0]["text"] == "Pumped."
            assert agent.message() == {"jsonrpc": "2.0", "id": 6, "result": {"drained": True}}
            assert agent.call("claw.status")["result"]["state"] == "STOPPED"
        agent.end()
        assert agent.wait() == 0 and agent.errors() == ""


def test_shutdown_that_does_not_wait_ends_the_call(bench, marks):
    with bench("serve", "--stdio") as agent:
        agent.initialize()
        agent.line(json.dumps(tool_call("pump", {"ms": 60000}, 5)))
        eventually((marks / "pump-on").exists)
        agent.line('{"jsonrpc":"2.0","id":6,"method":"claw.shutdown","params":{"timeout_ms":0}}')
        answers = {answer["id"]: answer for answer in (agent.message(), agent.message())}
        assert "error" in answers[5] and answers[6]["result"] == {"drained": False}
        eventually((marks / "pump-off").exists)
        agent.end()
        assert agent.wait() == 0


def test_what_a_tool_prints_does_not_mix_with_the_records(bench):
    """stdout is data: a maker's forgotten print must not break the operator's line."""
    with bench("serve", "--stdio") as agent:
        agent.initialize()
        agent.line(json.dumps(tool_call("noisy", number=2)))
        assert agent.message()["result"]["content"][0]["text"] == "said"
        agent.end()
        assert agent.wait() == 0
        for line in agent.text().splitlines():
            json.loads(line)
        assert agent.errors() == ""
        assert '"text":"debug noise"' in (agent.home / "state/bench/log.jsonl").read_text()


def test_a_tool_does_not_read_the_operators_records(tmp_path):
    """Many a program that a tool starts reads its stdin to the end."""
    from agents import BENCH, Agent, linux

    from clawlite.host.builder.build import build_beside

    for name, text in BENCH.items():
        (tmp_path / name).write_text(
            text.replace('return "quick ran"', "return repr(os.read(0, 99))")
        )
    with Agent(linux("serve", build_beside(str(tmp_path)), "--stdio"), tmp_path / "home") as agent:
        agent.initialize()
        agent.send(json.dumps(tool_call("quick", number=2)).encode() + b"\n" + STATUS + b"\n")
        answers = {answer["id"]: answer["result"] for answer in (agent.message(), agent.message())}
        assert answers[2]["content"][0]["text"] == "b''" and answers[7]["state"] == "READY"


def test_a_handler_that_leaves_the_interpreter_is_a_result(bench):
    with bench("serve", "--stdio") as agent:
        agent.initialize()
        agent.line(json.dumps(tool_call("leave", number=2)))
        assert agent.message()["result"]["isError"] is True
        assert agent.is_serving()


@pytest.mark.parametrize("kind", ODD)
def test_whatever_a_handler_returns_is_answered_in_json(bench, kind):
    with bench("serve", "--stdio") as agent:
        agent.initialize()
        agent.line(json.dumps(tool_call("odd", {"kind": kind}, 2)))
        answer = agent.message()
        assert answer["id"] == 2 and ("result" in answer or "error" in answer)
        assert agent.is_serving()
        agent.end()
        assert agent.wait() == 0 and agent.errors() == ""


def test_stderr_is_quiet_and_stdout_only_json(bench):
    with bench("serve", "--stdio") as agent:
        agent.initialize()
        agent.line(json.dumps(tool_call("pins", number=2)))
        agent.message()
        agent.end()
        assert agent.wait() == 0 and agent.errors() == ""
        assert all(isinstance(json.loads(line), dict) for line in agent.text().splitlines())


def test_an_operator_that_goes_away_ends_it(bench, marks):
    with bench("serve", "--stdio") as agent:
        agent.initialize()
        agent.line(json.dumps(tool_call("pump", {"ms": 60000})))
        eventually((marks / "pump-on").exists)
        agent.stop_reading()
        agent.send(STATUS + b"\n", drain=False)
        assert agent.wait() in (0, 1)
        assert (marks / "pump-off").exists() and "Traceback" not in agent.errors()

"""Turns of real agents with real servers of both APIs: what goes out, what is shown, what runs,
and how often.
"""

import json
import signal
import threading

import pytest
from agents import INITIALIZE, eventually
from llm_server import FAULTS, Server, calls, say, when_away
from providers.project import AT_ONCE, KEY, WAYS, Listener, World, answer, held, provider, texts


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


both = pytest.mark.parametrize("api, streaming", WAYS)


@both
@pytest.mark.parametrize("tls", [False, True])
def test_an_answer_is_shown_and_the_request_is_what_the_api_wants(world, api, streaming, tls):
    with Server([say("The café is öpen. 🌱")], tls, api) as server:
        world.build(provider(server, streaming=streaming))
        assert world.ask("Is it open?", **({"SSL_CERT_FILE": server.ca_file} if tls else {})) == (
            0,
            "The café is öpen. 🌱\n",
            "",
        )
        (request,) = server.requests
    assert (
        request.body["model"] == "test-model"
        and request.body["stream"] is streaming
        and 0 < request.body["max_tokens"] <= 4096
    )
    assert texts(request, api) == [("user", "Is it open?")]
    tools = request.body["tools"]
    if api == "openai":
        assert request.headers["authorization"] == "Bearer " + KEY
        assert request.body["messages"][0] == {"role": "system", "content": "You are under test."}
        names = {tool["function"]["name"]: tool["function"]["parameters"] for tool in tools}
    else:
        assert request.headers["x-api-key"] == KEY and [
            block["text"] for block in request.body["system"]
        ] == ["You are under test."]
        names = {tool["name"]: tool["input_schema"] for tool in tools}
    assert "forbidden" not in names and names["note"]["properties"]["text"]["type"] == "string"


@both
def test_tools_run_and_their_results_go_back(world, api, streaming):
    script = [
        calls(("note", {"text": "one é"}), text="I note it."),
        calls(("note", {"text": "two"}), ("read_file", {"path": "a/b"})),
        calls(("fail", {})),
        say("All done."),
    ]
    with Server(script, api=api) as server:
        world.build(provider(server, streaming=streaming))
        assert world.ask("Note things.") == (1, "I note it.\nAll done.\n", "")
        last = server.requests[3]
    assert (
        world.ran("note") == ["one é", "two"]
        and world.ran("read_file") == ["a/b"]
        and world.ran("fail") == [""]
    )
    said = texts(last, api)
    assert said[:3] == [
        ("user", "Note things."),
        ("assistant", "I note it."),
        ("tool", "noted one é"),
    ]
    assert (
        said[3:5] == [("tool", "noted two"), ("tool", "contents of a/b")]
        and "the sensor is unplugged" in said[5][1]
    )
    if api == "openai":
        wire = last.body["messages"]
        assert [message["role"] for message in wire[1:]] == [
            "user",
            "assistant",
            "tool",
            "assistant",
            "tool",
            "tool",
            "assistant",
            "tool",
        ]
        for at, results in ((2, wire[3:4]), (4, wire[5:7]), (7, wire[8:])):
            assert [call["id"] for call in wire[at]["tool_calls"]] == [
                result["tool_call_id"] for result in results
            ]
        assert [
            (call["function"]["name"], json.loads(call["function"]["arguments"]))
            for call in wire[4]["tool_calls"]
        ] == [("note", {"text": "two"}), ("read_file", {"path": "a/b"})]
    else:
        wire = last.body["messages"]
        assert [message["role"] for message in wire] == ["user", "assistant"] * 3 + ["user"]
        assert [block["type"] for block in wire[4]["content"]] == ["tool_result", "tool_result"]
        assert wire[3]["content"][1] == {
            "type": "tool_use",
            "id": wire[4]["content"][1]["tool_use_id"],
            "name": "read_file",
            "input": {"path": "a/b"},
        }
        assert wire[6]["content"][0]["is_error"] is True and "is_error" not in wire[4]["content"][0]


@both
def test_what_a_model_gets_wrong_is_told_to_it_and_runs_nothing(world, api, streaming):
    wrong = [
        ("note", '{"text": "x'),
        ("no_such_tool", {"x": 1}),
        ("note", {"text": 5}),
        ("note", '["x"]'),
        ("forbidden", {}),
    ]
    if not streaming and api == "anthropic":
        # a whole answer of this API holds objects, or is refused
        wrong = [call for call in wrong if not isinstance(call[1], str)]
    with Server([calls(*wrong), say("I see.")], api=api) as server:
        world.build(provider(server, streaming=streaming))
        assert world.ask("Try.") == (5, "I see.\n", "")
        results = [text for role, text in texts(server.requests[1], api) if role == "tool"]
    assert len(results) == len(wrong) and world.ran("note") == world.ran("forbidden") == []
    assert any("unknown tool" in text for text in results) and any(
        "Policy denied" in text for text in results
    )
    assert sum("not a JSON object" in text for text in results) == sum(
        isinstance(call[1], str) for call in wrong
    )


@both
def test_a_name_that_no_tool_can_have_comes_back_as_one_that_it_could(world, api, streaming):
    """Both APIs refuse a conversation with other characters in a name, and so all that follows."""
    with Server([calls(("functions.nöte " + "x" * 100, {})), say("I see.")], api=api) as server:
        world.build(provider(server, streaming=streaming))
        assert world.ask("Try.") == (0, "I see.\n", "")
        message = [
            message
            for message in server.requests[1].body["messages"]
            if message["role"] == "assistant"
        ][0]
    name = (
        message["tool_calls"][0]["function"]["name"]
        if api == "openai"
        else message["content"][0]["name"]
    )
    assert name == "functions__n_te_" + "x" * 48  # a dot, as in the aliases of services


@both
@pytest.mark.parametrize(
    "text, stop, line",
    [
        (
            "Cut",
            ("length", "max_tokens"),
            "Cut\nThe answer ends here: it reached its greatest length.\n",
        ),
        ("", ("content_filter", "refusal"), "The provider declined to answer.\n"),
        ("", ("stop", "end_turn"), "The provider said nothing.\n"),
    ],
)
def test_an_answer_that_is_none_says_so(world, api, streaming, text, stop, line):
    with Server([say(text, stop=stop[api == "anthropic"])], api=api) as server:
        world.build(provider(server, streaming=streaming))
        assert world.ask("Go.") == (0, line, "")


@both
def test_a_turn_has_twenty_rounds(world, api, streaming):
    with Server(lambda request: calls(("note", {"text": "again"})), api=api) as server:
        world.build(provider(server, streaming=streaming))
        assert world.ask("Never stop.") == (
            1,
            "",
            "the turn ended after 20 rounds without an answer. Next: ask for less at once.\n",
        )
        assert len(server.requests) == 20 == len(world.ran("note"))


@both
def test_a_conversation_goes_on(world, api, streaming):
    with Server(
        [
            say("First answer."),
            calls(("note", {"text": "n"})),
            say("Second answer."),
            say("Third answer."),
        ],
        api=api,
    ) as server:
        world.build(provider(server, streaming=streaming))
        with world.start("run") as agent:
            for number in ("First", "Second", "Third"):
                agent.line("%s question" % number)
                agent.expect("%s answer.\n" % number)
            agent.end()
            assert agent.wait() == 0 and agent.errors() == ""
        assert texts(server.requests[3], api) == [
            ("user", "First question"),
            ("assistant", "First answer."),
            ("user", "Second question"),
            ("tool", "noted n"),
            ("assistant", "Second answer."),
            ("user", "Third question"),
        ]


@pytest.mark.parametrize("api", ["openai", "anthropic"])
@pytest.mark.parametrize("terminal", [False, True])
def test_text_is_shown_before_the_answer_is_whole(world, api, terminal):
    event = threading.Event()
    with Server(
        [held(api, "Once upon a time there was a fern.", "Once up", event)], api=api
    ) as server:
        world.build(provider(server))
        with world.start("run", terminal=terminal) as agent:
            agent.line("Tell me.")
            agent.expect("Once up")  # the rest is not sent before this has been seen
            assert "fern" not in agent.text()
            event.set()
            agent.expect("on a time there was a fern.\n")
            agent.line("/quit")
            assert agent.wait() == 0


@both
@pytest.mark.parametrize("reply, ran", [("y", ["x"]), ("n", [])])
def test_a_person_is_asked_in_the_middle_of_a_turn(world, api, streaming, reply, ran):
    with Server(
        [
            calls(
                ("note", {"text": "before"}),
                ("careful", {"what": "x"}),
                ("note", {"text": "after"}),
            ),
            say("Done."),
        ],
        api=api,
    ) as server:
        world.build(provider(server, streaming=streaming))
        with world.start("run", terminal=True) as agent:
            agent.line("Be careful.")
            agent.expect('Approve careful(what="x")?')
            agent.expect("[y/N] ")
            assert (
                len(server.requests) == 1
                and world.ran("note") == ["before"]
                and world.ran("careful") == []
            )
            agent.line(reply)
            agent.expect("Done.\n")
        results = [text for role, text in texts(server.requests[1], api) if role == "tool"]
    assert (
        world.ran("careful") == ran
        and world.ran("note") == ["before", "after"]
        and len(results) == 3
    )
    assert results[1] == ("careful did x" if ran else "careful: not approved: the person said no")


def test_ask_without_a_terminal_denies_what_asks_first(world):
    with Server([calls(("careful", {"what": "x"})), say("I may not.")] * 2) as server:
        world.build(provider(server))
        assert world.ask("Go.") == (5, "I may not.\n", "") and world.ran("careful") == []
        assert world.ask("Go.", "--approve") == (0, "I may not.\n", "") and world.ran(
            "careful"
        ) == ["x"]


# -- broken connections and what ran


@both
@pytest.mark.parametrize("end", ["close", "reset"])
def test_a_tool_runs_once_when_the_connection_breaks_after_it(world, api, streaming, end):
    broken = {"text": "It is noted now.", "end": end}
    with Server(
        [calls(("note", {"text": "once"})), broken, broken, say("Recovered.")], api=api
    ) as server:
        world.build(provider(server, streaming=streaming, retry=AT_ONCE))
        code, said, told = world.ask("Note it.")
        assert code == 0 and said.endswith("Recovered.\n")
        assert len(server.requests) == 4 and server.requests[1].body == server.requests[3].body
    assert world.ran("note") == ["once"]
    assert [line for line in told.splitlines() if line.startswith("provider first: ")][1].find(
        "(tried 2 of 3, again in "
    ) > 0


@both
def test_a_call_in_an_answer_that_breaks_off_does_not_run(world, api, streaming):
    wanted = calls(
        ("note", {"text": "once"}),
        ("read_file", {"path": "a long path, so that half of the answer holds the first call"}),
    )
    with Server(
        [dict(wanted, end="close"), calls(("note", {"text": "once"})), say("Done.")], api=api
    ) as server:
        world.build(provider(server, streaming=streaming, retry=AT_ONCE))
        assert world.ask("Note it.")[0] == 0
    assert world.ran("note") == ["once"] and world.ran("read_file") == []


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_a_turn_that_fails_after_a_tool_does_not_run_it_again_in_the_next(world, api):
    with Server(
        [calls(("note", {"text": "once"})), {"end": "close", "stream": []}, say("Fine.")], api=api
    ) as server:
        world.build(provider(server))
        with world.start("run") as agent:
            agent.line("Note it.")
            agent.expect("(tried 1 of 1)." + when_away(server))
            agent.line("And now?")
            agent.expect("Fine.\n")
        assert texts(server.requests[2], api) == [
            ("user", "Note it."),
            ("tool", "noted once"),
            ("assistant", "(No answer was given.)"),
            ("user", "And now?"),
        ]
    assert world.ran("note") == ["once"]


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_a_stream_without_its_last_event_is_tried_again(world, api):
    """The body ends as HTTP wants it, in the middle of what the API promised."""
    cut = {"stream": answer(api, True, "A long answer that is cut")["stream"][:4]}
    with Server([cut, say("Whole.")], api=api) as server:
        world.build(provider(server, retry=AT_ONCE))
        code, said, told = world.ask("Go.")
        assert (code, said) == (
            0,
            "Whole.\n",
        ) and "broke off before its end (tried 1 of 3, again in" in told


# -- Ctrl-C and the end

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
PIECE = b'data: {"choices":[{"index":0,"delta":{"content":"Hmm"}}]}\n\n'


@pytest.mark.parametrize(
    "came", [b"", HEAD, HEAD + PIECE], ids=["no head", "no text", "in the stream"]
)
@pytest.mark.parametrize("terminal", [False, True])
def test_ctrl_c_ends_a_request_and_its_socket(world, came, terminal):
    with Listener() as server:
        world.build(provider(server, retry=AT_ONCE))
        with world.start("run", terminal=terminal) as agent:
            agent.line("Think.")
            connection = server.accept(came)
            if PIECE in came:
                agent.expect("Hmm")
            agent.send("\x03") if terminal else agent.signal(signal.SIGINT)
            assert server.let_go(connection)
            agent.expect("Interrupted.\n")
            agent.line("Again.")  # it goes on with the next turn
            server.accept(HEAD + PIECE + b"data: [DONE]\n\n").close()
            agent.expect("Hmm\n")
            assert "Interrupted" not in agent.unread


def test_ctrl_c_while_asking_is_130(world):
    with Listener() as server:
        world.build(provider(server))
        with world.start("ask", "Think.") as agent:
            connection = server.accept(HEAD + PIECE)
            agent.signal(signal.SIGINT)
            assert (
                server.let_go(connection)
                and agent.wait() == 130
                and agent.errors() == "Interrupted.\n"
            )
            assert "Hmm" not in agent.text(), "half an answer is none"


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_ctrl_c_ends_a_request_over_tls(world, api):
    with Server([FAULTS["stall in stream"], say("Fine.")], True, api) as server:
        world.build(provider(server))
        with world.start("run", SSL_CERT_FILE=server.ca_file) as agent:
            agent.line("Think.")
            agent.expect("Let me ")
            agent.signal(signal.SIGINT)
            agent.expect("\nInterrupted.\n")
            agent.line("Again.")
            agent.expect("Fine.\n")


def test_a_server_that_keeps_the_connection_open_is_let_go(world):
    with Listener() as server:
        world.build(provider(server))
        with world.start("run") as agent:
            body = b'{"choices":[{"message":{"content":"Hmm"}}]}'
            for reply in (
                HEAD + PIECE + b"data: [DONE]\n\n",
                b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body,
            ):
                agent.line("Think.")
                connection = server.accept(reply)
                agent.expect("Hmm\n")
                assert server.let_go(connection)


def test_a_reader_that_is_gone_is_no_success(world):
    with Listener() as server:
        world.build(provider(server))
        with world.start("ask", "Think.") as agent:
            connection = server.accept(HEAD + PIECE)
            agent.stop_reading()
            connection.sendall(b"data: [DONE]\n\n")
            connection.close()
            assert agent.wait() == 1 and agent.errors() == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_request_and_its_socket(world, number):
    with Listener() as server:
        world.build(provider(server))
        with world.start("ask", "Think.") as agent:
            connection = server.accept()
            agent.signal(number)
            assert (
                server.let_go(connection)
                and agent.wait() == 128 + number
                and "Traceback" not in agent.errors()
            )


def test_shutdown_ends_a_request_and_its_socket(world):
    with Listener() as server:
        world.build(provider(server))
        with world.start("run") as agent:
            agent.expect("ready.")
            agent.expect("\n")
            agent.record(
                {"jsonrpc": "2.0", "id": 1, "method": "claw.initialize", "params": INITIALIZE}
            )
            agent.message()
            agent.line("Think.")
            connection = server.accept()
            agent.record({"jsonrpc": "2.0", "id": 2, "method": "claw.status"})
            assert agent.message() == {
                "jsonrpc": "2.0",
                "id": 2,
                "result": {"state": "READY", "uptime_ms": pytest.approx(5000, abs=5000)},
            }
            agent.record(
                {"jsonrpc": "2.0", "id": 3, "method": "claw.shutdown", "params": {"timeout_ms": 0}}
            )
            agent.expect('"drained":false')
            assert server.let_go(connection)


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_a_turn_that_ctrl_c_ended_in_a_tool_leaves_a_conversation_that_goes_on(world, api):
    """Both APIs refuse a history in which a tool call has no result."""
    with Server(
        [
            calls(("note", {"text": "a"}), ("hang", {}), ("note", {"text": "b"})),
            say("Fine."),
            say("Good."),
        ],
        api=api,
    ) as server:
        world.build(provider(server))
        with world.start("run") as agent:
            agent.line("Hang.")
            eventually(lambda: world.ran("hang"))
            agent.signal(signal.SIGINT)
            agent.expect("Interrupted.\n")
            agent.line("Go on.")
            agent.expect("Fine.\n")
            agent.line("More.")
            agent.expect("Good.\n")
        results = [text for role, text in texts(server.requests[1], api) if role == "tool"]
        assert results[0] == "noted a" and len(results) == 3
    assert world.ran("hang") == ["on", "off"] and world.ran("note") == ["a"]

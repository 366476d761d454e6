"""Real agents with providers that fail, refuse, lie or cost too much: one clear line each, and
the agent goes on.
"""

import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from agents import INITIALIZE, environment, eventually, tool_call
from llm_server import (
    FAULTS,
    MODEL,
    WHEN_SPENT,
    Server,
    calls,
    error,
    say,
    url_of,
    when_away,
    when_silent,
    when_wrong,
)
from providers.project import AT_ONCE, KEY, WAYS, Listener, World, answer, nobody, provider, texts

REFLEX = (
    '[[rule]]\nwhen = "{words:text}"\nsay = "By the rules."\n\n[[rule]]\nwhen = "x"\ncall = '
    '"note"\narguments = { text = "x" }\n'
)


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


both = pytest.mark.parametrize("api, streaming", WAYS)


def said_of(text: str) -> list:
    """Return the lines that speak of providers."""
    return [line for line in text.splitlines() if "provider" in line]


# -- bad input

BAD = {  # fault -> what its line says
    "unauthorized": "HTTP 401: Incorrect API key provided.",
    "forbidden": "HTTP 403: Your key may not use this.",
    "no model": "HTTP 404: The model `nope` does not exist.",
    "busy": "HTTP 429: Rate limit reached.",
    "busy until": "HTTP 429: Rate limit reached.",
    "failed": "HTTP 500: Internal server error.",
    "overloaded": "HTTP 503: Overloaded.",
    "html": "the provider sent a page of HTML, expected JSON",
    "html 502": "HTTP 502: a page of HTML 502 Bad Gateway",
    "empty": "the provider sent nothing",
    "cut json": "broken JSON",
    "huge": "the answer is longer than 1048576 bytes",
    "broken stream": "broken JSON",
    "close before head": "closed before an answer came",
    "close early": "closed in the middle of the answer",
    "too many calls": "more than 16 tool calls at once",
}
MORE = {
    "redirect": (
        {"status": 302, "headers": [("Location", "http://127.0.0.1:1/")]},
        "HTTP 302: it redirects to http://127.0.0.1:1/",
    ),
    "no json": ({"body": b"certainly! here is"}, "broken JSON"),
    "a list": ({"body": []}, "sent list, expected a JSON object"),
    "another api": ({"body": {"object": "list", "data": []}}, "no message of the expected API"),
    "an error in 200": (
        {"body": {"error": {"message": "Out of\ncredits.\x1b[31m"}}},
        "the provider reported: Out of credits.\\x1b[31m",
    ),
    "an empty stream": ({"stream": []}, "sent nothing"),
    "endless arguments": (
        {
            "stream": [
                b"data: "
                b'{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":'
                b'{"name":"note","arguments":"' + b"x" * 60000 + b'"}}]}}]}\n'
                b"\n"
            ]
            * 2
        },
        "more than 65536 bytes of arguments",
    ),
    "a line without end": (
        {"stream": [b"data: " + b"x" * 200000] * 2},
        "an event of more than 262144 bytes",
    ),
    "a text without end": (
        {
            "stream": [
                b'data: {"choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n'
                % b"".join(b"\\u00e9%d" % n for n in range(first, first + 4000))
                for first in range(0, 40000, 4000)
            ]
        },
        "more than 262144 bytes of text",
    ),
    "a long head": (
        {"headers": [("X-Pad%d" % n, "x" * 4000) for n in range(5)], "body": {}},
        "head, or a chunk's, is longer than 16384",
    ),
}


@both
def test_each_fault_is_one_clear_line_and_the_agent_goes_on(world, api, streaming):
    script = [step for fault in BAD for step in (FAULTS[fault], say("Fine."))]
    with Server(script, api=api) as server:
        world.build(provider(server, streaming=streaming))
        with world.start("run") as agent:
            for number, fault in enumerate(BAD):
                agent.line("%d: %s" % (number, fault))
                said = agent.expect("(tried 1 of 1).") + agent.expect("\n")
                lines = [
                    line
                    for line in said.splitlines()
                    if "ready." not in line and not line.startswith("Let me ")
                ]
                assert (
                    len(lines) == 1
                    and lines[0].startswith("provider first: ")
                    and len(lines[0]) < 340
                ), (fault, said)
                assert BAD[fault] in lines[0], (fault, lines)
                agent.line("again")
                assert agent.expect("Fine.\n") == "", fault
            assert agent.errors() == "" and len(server.requests) == len(script)
            peak_kib = int(
                Path("/proc/%d/status" % agent.process.pid)
                .read_text()
                .partition("VmHWM:")[2]
                .split()[0]
            )
            assert peak_kib < 40000, "50 MB of an answer were kept"
    assert not list(world.marks.iterdir())


def test_more_faults_are_one_clear_line_each(world):
    script = [step for fault, _ in MORE.values() for step in (fault, say("Fine."))]
    with Server(script) as server:
        world.build(provider(server))
        with world.start("run") as agent:
            for fault, (_, wanted) in MORE.items():
                agent.line(fault)
                said = agent.expect("(tried 1 of 1).")
                next_step = agent.expect("\n")
                assert (
                    next_step
                    in (
                        when_away(server)[:-1],
                        when_wrong(server)[:-1],
                        " Next: check protocol and endpoint.",
                    )
                    or url_of(server) in next_step
                    or fault == "redirect"
                    and "endpoint" in next_step
                ), fault
                assert wanted in said.splitlines()[-1] and "\x1b" not in said, fault
                agent.line("again")
                assert agent.expect("Fine.\n") == "", fault
            assert agent.errors() == "" and len(server.requests) == len(script)
    assert not list(world.marks.iterdir())


@both
def test_what_a_model_says_does_not_drive_the_terminal(world, api, streaming):
    """Nor can it forge a record of the operator's: those begin with U+001E (RFC 7464)."""
    with Server([say('\x1e{"jsonrpc":"2.0"}\n\x1b[2J\u009b2J \u202eok')], api=api) as server:
        world.build(provider(server, streaming=streaming))
        assert world.ask("hello") == (0, '\\x1e{"jsonrpc":"2.0"}\n\\x1b[2J\\x9b2J \\u202eok\n', "")


@both
@pytest.mark.parametrize("fault", ["broken arguments", "unknown tool"])
def test_a_wrong_call_is_the_models_to_mend(world, api, streaming, fault):
    with Server([FAULTS[fault], say("I am sorry.")], api=api) as server:
        world.build(provider(server, streaming=streaming))
        assert world.ask("Go.") == (0, "I am sorry.\n", "")
    assert not list(world.marks.iterdir())


def test_a_provider_that_is_not_there(world):
    away = nobody()
    world.build(provider(away, retry=AT_ONCE))
    code, said, told = world.ask("hello")
    lines = told.splitlines()
    assert code == 1 and said == "" and len(lines) == 3
    assert lines == [
        "provider first: connection refused (tried %d of 3%s"
        % (n, ", again in 0.0 s)" if n < 3 else ")." + when_away(away)[:-1])
        for n in (1, 2, 3)
    ]


def test_a_host_that_does_not_exist(world):
    world.build(provider(("openai", "http://nowhere.invalid/v1")))
    code, said, told = world.ask("hello")
    assert (
        (code, said) == (1, "")
        and len(told.splitlines()) == 1
        and "nowhere.invalid" in told
        and "tried 1 of 1" in told
    )


# -- TLS


@pytest.mark.parametrize(
    "kind, line",
    [
        ("expired", "certificate of 127.0.0.1 has expired"),
        ("wrong host", "certificate is not for 127.0.0.1"),
        (
            "self-signed",
            "certificate of 127.0.0.1 is signed by nobody this machine knows (self-signed?)",
        ),
    ],
)
def test_a_bad_certificate_is_one_line_and_not_tried_again(world, kind, line):
    with Server([say("You must not see this.")], kind) as server:
        world.build(provider(server, retry=AT_ONCE), reflex=REFLEX)
        assert world.ask("hello", SSL_CERT_FILE=server.ca_file) == (
            0,
            "By the rules.\n",
            "provider first: %s (tried 1 of 3) - check the certificate of %s and the clock; [tls] "
            "names authorities; next: reflex\n" % (line, url_of(server)),
        )
        assert server.requests == []


def test_an_authority_that_nobody_trusts(world):
    with Server([say("No.")], True) as server:
        world.build(provider(server))
        code, said, told = world.ask("hello")
        assert (
            (code, said) == (1, "")
            and "signed by nobody this machine knows" in told
            and len(told.splitlines()) == 1
        )
        assert server.requests == []


def test_tls_asked_of_a_plain_server_and_the_other_way_round(world):
    with Server([say("No.")] * 2) as plain, Server([say("No.")] * 2, True) as tls:
        world.build(provider(("openai", plain.endpoint.replace("http:", "https:"))))
        assert "does not speak TLS on this port" in world.ask("hello")[2]
        world.build(provider(("openai", tls.endpoint.replace("https:", "http:"))))
        code, said, told = world.ask("hello")
        assert (
            (code, said) == (1, "")
            and len(told.splitlines()) == 1
            and told.startswith("provider first: ")
        )
        assert plain.requests == tls.requests == []


LATE = (
    "use a faster model, a lower tokens_per_request or a higher [answer] total_ms in clawlite.toml"
)


# -- fallback and retry


@pytest.mark.parametrize("auth", [True, False], ids=["key", "no key"])
def test_the_next_provider_is_asked_in_order(world, auth):
    with (
        Server([FAULTS["unauthorized"]]) as one,
        Server([FAULTS["failed"]] * 2, api="anthropic") as two,
        Server([say("Third.")]) as three,
    ):
        more = {} if auth else {"auth": {"type": "none"}}
        world.build(
            provider(one, "one", **more),
            provider(two, "two", **more, retry=dict(AT_ONCE, max_attempts=2)),
            provider(three, "three", **more),
        )
        code, said, told = world.ask("hello")
        assert (code, said) == (1, "Third.\n") and [
            len(server.requests) for server in (one, two, three)
        ] == [1, 2, 1]
    mend = (
        "set a key that %s takes: clawlite secrets set TEST_KEY"
        if auth
        else "name the key for %s in the manifest: auth.secret_ref"
    ) % url_of(one)
    assert told == (
        "provider one: HTTP 401: Incorrect API key provided. (tried 1 of 1) - " + mend + "; "
        "next: "
        "two\n"
        "provider two: HTTP 500: Internal server error. (tried 1 of 2, again in 0.0 "
        "s)\n"
        "provider two: HTTP 500: Internal server error. (tried 2 of 2); next: three\n"
    )


def test_a_refused_key_is_told_with_what_to_do_and_ask_fails(world):
    with Server([FAULTS["unauthorized"]] * 2) as server:
        world.build(provider(server), reflex=REFLEX)
        code, said, told = world.ask("hello")
        assert (code, said) == (
            1,
            "By the rules.\n",
        ) and "takes: clawlite secrets set TEST_KEY; next: reflex\n" in told
        world.build(provider(server))
        code, said, told = world.ask("hello")
        assert (code, said) == (1, "") and told.endswith(
            "(tried 1 of 1). Next: set a key that %s takes: clawlite secrets set TEST_KEY.\n"
            % url_of(server)
        )


def test_a_key_that_is_refused_with_400_is_told_with_what_to_do(world):
    """As Google's API does it, in a list."""
    refusal = {"error": {"code": 400, "message": "API key not valid. Please pass a valid API key."}}
    with Server([{"status": 400, "body": [refusal]}]) as server:
        world.build(provider(server), reflex=REFLEX)
        code, said, told = world.ask("hello")
        assert (code, said) == (1, "By the rules.\n")
        assert "takes: clawlite secrets set TEST_KEY; next: reflex\n" in told


def test_a_missing_key_is_told_and_ask_fails_though_the_rules_answer(world):
    with Server([]) as server:
        world.build(provider(server), reflex=REFLEX)
        code, said, told = world.ask("hello", key=None)
        assert (code, said) == (1, "By the rules.\n") and server.requests == []
        assert "secret TEST_KEY: not found" in told and "next: reflex\n" in told


@both
def test_an_unknown_model_is_told_with_those_that_the_server_lists(world, api, streaming):
    with Server([FAULTS["no model"]] * 2, api=api) as server:
        world.build(provider(server, streaming=streaming), reflex=REFLEX)
        code, said, told = world.ask("hello")
        assert (code, said) == (
            1,
            "By the rules.\n",
        )
        assert "check the endpoint, %s, and the model, %s; next" % (server.endpoint, MODEL) in told
        server.models = ["small"] + ["model-%d" % n for n in range(9)]
        code, said, told = world.ask("hello")
        assert (
            code == 1
            and "change the model, %s; %s lists small, model-0, " % (MODEL, url_of(server)) in told
            and "model-6 and 2 more; next" in told
        )


@pytest.mark.parametrize("status, code", [(301, 1), (308, 1), (302, 0), (307, 0)])
def test_an_endpoint_that_moved_for_ever_is_told_and_ask_fails(world, status, code):
    moved = {"status": status, "headers": [("Location", "https://new.example.com/v1")]}
    with Server([moved]) as server:
        world.build(provider(server), reflex=REFLEX)
        found, said, told = world.ask("hello")
        assert (found, said) == (code, "By the rules.\n")
        assert "it redirects to https://new.example.com/v1 (tried 1 of 1) - if that is" in told


def test_an_outage_falls_back_and_is_no_failure(world):
    with Server([FAULTS["failed"]]) as server:
        world.build(provider(server), reflex=REFLEX)
        assert world.ask("hello") == (
            0,
            "By the rules.\n",
            "provider first: HTTP 500: Internal server error. (tried 1 of 1); next: reflex\n",
        )


@pytest.mark.parametrize("then", ["again", "rules"])
def test_of_an_answer_that_broke_off_nothing_is_on_stdout(world, then):
    broken = dict(say("Half an answer that nobody wants."), end="close")
    with Server([broken, say("Whole.")]) as server:
        world.build(
            provider(server, retry=dict(AT_ONCE, max_attempts=2 if then == "again" else 1)),
            reflex=REFLEX,
        )
        code, said, told = world.ask("hello")
        assert (code, said) == (
            0,
            "Whole.\n" if then == "again" else "By the rules.\n",
        ) and "closed in the middle" in told


def test_an_answer_that_broke_off_for_good_is_not_on_stdout(world):
    with Server([dict(say("Half an answer."), end="close")]) as server:
        world.build(provider(server))
        code, said, told = world.ask("hello")
        assert (code, said) == (1, "") and "closed in the middle" in told


def test_a_compressed_answer_is_told_as_what_it_is(world):
    gzip = [("Content-Encoding", "gzip")]
    with Server(
        [
            {"headers": gzip, "body": b"\x1f\x8b\x08"},
            {"status": 500, "headers": gzip, "body": b"\x1f\x8b\x08"},
        ]
    ) as server:
        world.build(provider(server))
        assert "the answer is compressed (gzip), which nobody asked for" in world.ask("hello")[2]
        assert "HTTP 500, with a compressed reason (gzip)" in world.ask("hello")[2]


def test_every_turn_begins_with_the_first_provider(world):
    with Server([FAULTS["failed"], say("Back.")]) as one, Server([say("Instead.")]) as two:
        world.build(provider(one, "one"), provider(two, "two"))
        with world.start("run") as agent:
            agent.line("hello")
            agent.expect("; next: two\nInstead.\n")
            agent.line("hello")
            agent.expect("Back.\n")
            assert texts(one.requests[1], "openai") == [
                ("user", "hello"),
                ("assistant", "Instead."),
                ("user", "hello"),
            ]


def test_what_one_provider_began_another_goes_on_with(world):
    """Ids and results of the first API's calls fit the second, and nothing runs again."""
    with (
        Server(
            [calls(("note", {"text": "a"}), ("note", {"text": "b"})), FAULTS["failed"]],
            api="anthropic",
        ) as one,
        Server([say("Done.")]) as two,
    ):
        world.build(provider(one, "one"), provider(two, "two"))
        code, said, told = world.ask("Note.")
        assert (
            (code, said) == (0, "Done.\n")
            and told.endswith("; next: two\n")
            and len(two.requests) == 1
        )
        assert texts(two.requests[0], "openai") == [
            ("user", "Note."),
            ("tool", "noted a"),
            ("tool", "noted b"),
        ]
    assert world.ran("note") == ["a", "b"]


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_what_rules_began_a_provider_goes_on_with(world, api):
    """The rules answer a turn while the provider is away; of their calls it gets what both APIs
    take.
    """
    rules = '[[rule]]\nwhen = "note"\ncall = "note"\narguments = { text = "by rule" }\n'
    with Server([FAULTS["failed"], FAULTS["failed"], say("I am back.")], api=api) as server:
        world.build(provider(server), reflex=rules)
        with world.start("run") as agent:
            for _ in range(2):
                agent.line("note")
                agent.expect("; next: reflex\nnoted by rule\n")
            agent.line("hello")
            agent.expect("I am back.\n")
        last = server.requests[2]
        assert [text for role, text in texts(last, api) if role == "tool"] == ["noted by rule"] * 2
        blocks = [
            call
            for message in last.body["messages"]
            if message["role"] == "assistant"
            for call in message.get("tool_calls") or message["content"]
            if not isinstance(call, str)
        ]
        asked = [
            (
                block["id"],
                json.loads(block["function"]["arguments"]) if api == "openai" else block["input"],
            )
            for block in blocks
            if block["type"] != "text"
        ]
        assert [arguments for _, arguments in asked] == [{"text": "by rule"}] * 2
        assert len({key for key, _ in asked}) == 2 and all(
            key.replace("-", "").replace("_", "").isalnum() for key, _ in asked
        )
    assert world.ran("note") == ["by rule"] * 2


def test_when_none_is_left_the_line_says_all(world):
    with Server([FAULTS["forbidden"]]) as one:
        away = nobody()
        world.build(provider(one, "one"), provider(away, "two"))
        code, said, told = world.ask("hello")
    assert (code, said) == (1, "") and told.splitlines()[-1] == (
        "no provider left: provider one: "
        "HTTP 403: Your key may not use "
        "this. (tried 1 of 1); "
        "provider two: connection refused (tried 1 of "
        "1)." + when_away(away)[:-1]
    )


@pytest.mark.parametrize("backoff", ["exponential", "linear", "constant"])
def test_a_pause_is_told_and_kept(world, backoff):
    with Server(
        [FAULTS["failed"], FAULTS["overloaded"], FAULTS["busy"], say("At last.")]
    ) as server:
        world.build(
            provider(server, retry={"max_attempts": 4, "backoff": backoff, "initial_delay_ms": 100})
        )
        code, _, told = world.ask("hello")
        assert (
            code == 0
            and len(server.requests) == 4
            and len({repr(request.body) for request in server.requests}) == 1
        )
    waits = [line.rpartition("again in ")[2].removesuffix(" s)") for line in said_of(told)]
    declared = {
        "exponential": [0.1, 0.2, 0.4],
        "linear": [0.1, 0.2, 0.3],
        "constant": [0.1, 0.1, 0.1],
    }[backoff]
    # a pause is longer than declared by a quarter at most, by chance
    assert all(
        least <= float(wait) <= least * 1.25 for wait, least in zip(waits, declared, strict=True)
    ), waits


def test_retry_after_is_obeyed(world):
    """A second, or none: what lasts longer than a minute goes to the next provider at once."""
    soon, never = (
        error(429, "Slow down.", "rate_limit_error", [("Retry-After", value)])
        for value in ("1", "86400000")
    )
    with Server([soon, say("Now."), never]) as server:
        world.build(
            provider(server, retry={"max_attempts": 3, "initial_delay_ms": 60000}), reflex=REFLEX
        )
        assert world.ask("hello") == (
            0,
            "Now.\n",
            "provider first: HTTP 429: Slow down. (tried 1 of 3, again in 1.0 s)\n",
        )
        assert world.ask("hello")[2].startswith(
            "provider first: HTTP 429: Slow down; it asks to wait 86400000 s, and 60 s are the "
            "most (tried 1 of 3); next: "
        )


def test_ctrl_c_ends_a_pause(world):
    with Server([FAULTS["busy until"], say("Fine.")]) as server:
        world.build(provider(server, retry={"max_attempts": 2}))
        with world.start("run") as agent:
            agent.line("hello")
            agent.expect("again in 7.0 s)\n")
            agent.signal(signal.SIGINT)
            agent.expect("Interrupted.\n")
            agent.line("hello")
            agent.expect("Fine.\n")
            assert len(server.requests) == 2


# -- limits


@both
def test_tokens_of_a_day_last_over_a_restart(world, api, streaming):
    with Server([answer(api, streaming, "Dear.", tokens=9990), say("No.")], api=api) as server:
        world.build(provider(server, streaming=streaming, limits={"tokens_per_day": 10000}))
        assert world.ask("hello") == (0, "Dear.\n", "")
        ((day, used),) = world.meters().values()
        assert used == 9990 and day > 20000
        code, said, told = world.ask("hello")
        assert (code, said) == (1, "") and len(server.requests) == 1
        assert told.startswith(
            "provider first: tokens_per_day is 10000, and this request of some "
        ) and told.endswith("(9990 are used)." + WHEN_SPENT)
        assert len(told.splitlines()) == 1 and world.meters() == {"first": [day, 9990]}


def test_a_used_up_day_goes_to_the_rules(world):
    with Server([answer("openai", False, "Dear.", tokens=9990)]) as server:
        world.build(
            provider(server, streaming=False, limits={"tokens_per_day": 10000}), reflex=REFLEX
        )
        with world.start("run") as agent:
            agent.line("hello")
            agent.expect("Dear.\n")
            agent.line("hello")
            assert "tokens_per_day is 10000" in agent.expect("By the rules.\n")
            assert len(server.requests) == 1


def test_damaged_meters_are_told_and_kept(world):
    with Server([answer("openai", False, "Dear.", tokens=50)] * 3) as server:
        world.build(provider(server, streaming=False, limits={"tokens_per_day": 10000}))
        world.ask("hello")
        path = world.folder / "home/state/remote/meters.json"
        path.write_text('{"first": [')
        code, said, errors = world.ask("hello")
        # that it is shorter than it was, and that it is damaged
        assert (code, said) == (0, "Dear.\n") and errors.count("meters.json") == 2, errors
        assert len(errors.splitlines()) == 2
        assert (
            path.with_name("meters.json.damaged").read_text() == '{"first": ['
            and world.meters()["first"][1] == 50
        )
        path.write_text("{")  # again: what was set aside first stays
        world.ask("hello")
        assert path.with_name("meters.json.damaged").read_text() == '{"first": ['
        assert path.with_name("meters.json.damaged.2").read_text() == "{"


# dollars for a million tokens: a dollar for a thousand
PRICES = '[prices."test-model"]\ninput = 1000\noutput = 1000\n'


def test_money_of_a_day_is_spent_by_the_price_table_and_lasts_over_a_restart(world):
    """5.8 cost_per_day_usd: -32021 before the request that would exceed it; the rules, which
    cost nothing, go on.
    """
    with Server([answer("openai", False, "Dear.", tokens=9000), say("No.")]) as server:
        world.build(
            provider(server, streaming=False),
            rate_limits={"cost_per_day_usd": 9.5},
            settings=PRICES,
            reflex=REFLEX,
        )
        assert world.ask("hello") == (0, "Dear.\n", "")
        ((day, spent),) = world.meters().values()
        assert spent == 9000 * 10**6 and day > 20000
        code, said, told = world.ask("hello, " + "x" * 4000)
        assert (code, said) == (0, "By the rules.\n") and len(server.requests) == 1
        assert (
            told.startswith("provider first: cost_per_day_usd is 9.50, and this request of some ")
            and "(9.00 are spent); next: reflex" in told
        )


def test_an_answer_that_was_ended_is_counted_too(world):
    """It only repeated itself, so nobody waited for its end; its tokens are paid for."""
    with Server([{"text": "x" * 4000}]) as server:
        world.build(provider(server), rate_limits={"tokens_per_hour": 10**6})
        code, _, said = world.ask("hello")
        assert code == 1 and "the answer repeated itself and was cut" in said
        ((_, used),) = world.meters().values()
        assert used > 0  # as the server says, or by what had come


def test_what_broke_off_is_counted_too(world):
    text = " ".join(str(number) for number in range(1000))
    with Server([{"text": text, "end": "close"}, say("No.")]) as server:
        world.build(provider(server), rate_limits={"tokens_per_hour": 10**6})
        assert world.ask("hello")[0] == 1
        ((hour, used),) = world.meters().values()
        assert used > 400 and hour > 400000
        world.build(provider(nobody()), rate_limits={"tokens_per_hour": 10**6})
        assert world.ask("hello")[0] == 1 and world.meters() == {".tokens": [hour, used]}, (
            "who did not answer cost nothing"
        )


def test_two_processes_of_an_agent_share_what_they_have_spent(world):
    with Server(lambda request: answer("openai", False, "Dear.", tokens=4000)) as server:
        world.build(provider(server, streaming=False, limits={"tokens_per_day": 10000}))
        with world.start("run") as one, world.start("run") as two:
            for agent in (one, two):
                agent.line("hello")
                agent.expect("Dear.\n")
            assert world.meters()["first"][1] == 8000
            one.line("hello, " + "x" * 4000)
            one.expect("Dear.\n")
            two.line("hello")
            assert "tokens_per_day is 10000" in two.expect("(12000 are used)." + WHEN_SPENT)


def test_meters_that_cannot_be_written_are_said_once_and_hold(world):
    with Server(lambda request: answer("openai", False, "Dear.", tokens=6000)) as server:
        world.build(provider(server, streaming=False, limits={"tokens_per_day": 10000}))
        (world.folder / "home/state/remote/meters.json.new").mkdir(parents=True)
        with world.start("run") as agent:
            for _ in range(2):
                agent.line("hello" + " " * 10)
                agent.expect("Dear.\n")
            agent.line("hello")
            assert "tokens_per_day is 10000" in agent.expect("(12000 are used)." + WHEN_SPENT)
            assert (
                agent.errors().count("cannot be written") == 1
                and len(agent.errors().splitlines()) == 1
            )


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_an_error_inside_a_stream_is_tried_again_when_it_may_pass(world, api):
    passing = {
        "openai": b'data: {"error":{"message":"Overloaded","type":"server_error"}}\n\n',
        "anthropic": b"event: error\ndata: "
        b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n'
        b"\n",
    }[api]
    lasting = b'data: {"type":"error","error":{"type":"invalid_request_error","message":"No."}}\n\n'
    with Server([{"stream": [passing]}, say("Fine."), {"stream": [lasting]}], api=api) as server:
        world.build(provider(server, retry=AT_ONCE))
        assert world.ask("hello") == (
            0,
            "Fine.\n",
            "provider first: the provider reported: Overloaded (tried 1 of 3, again in 0.0 s)\n",
        )
        assert world.ask("hello") == (
            1,
            "",
            "provider first: the provider reported: No. (tried 1 of 3)." + when_wrong(server),
        )


def test_another_model_that_answers_is_said_once(world):
    other = {
        "body": {
            "model": "gpt-other",
            "choices": [{"message": {"content": "Hi."}, "finish_reason": "stop"}],
        }
    }
    with Server([other, other]) as server:
        world.build(provider(server, streaming=False))
        with world.start("run") as agent:
            agent.line("hello")
            assert agent.expect("gpt-other answers\n").endswith(
                "provider first: asked for the model test-model, "
            )
            agent.line("hello")
            assert agent.expect("Hi.\n") == ""


def test_a_request_that_is_too_large_is_not_sent(world):
    with Server([]) as server:
        world.build(provider(server, limits={"tokens_per_request": 100}))
        code, said, told = world.ask("hello")
        assert (
            (code, said) == (1, "")
            and "tokens_per_request is 100" in told
            and len(told.splitlines()) == 1
            and server.requests == []
        )


def test_requests_of_a_minute_wait_and_ctrl_c_ends_that(world):
    with Server([say("One."), say("Two.")]) as server:
        world.build(provider(server, limits={"requests_per_minute": 1}))
        with world.start("run") as agent:
            agent.line("hello")
            agent.expect("One.\n")
            agent.line("hello")
            agent.expect("provider first: 1 requests a minute are its limit, waiting ")
            agent.signal(signal.SIGINT)
            agent.expect("Interrupted.\n")
            assert len(server.requests) == 1


def test_requests_of_a_minute_are_counted_for_each_provider(world):
    with Server([FAULTS["failed"]] * 2) as one, Server([say("Two."), say("Two again.")]) as two:
        world.build(provider(one, "one"), provider(two, "two", limits={"requests_per_minute": 2}))
        with world.start("run") as agent:
            for said in ("Two.\n", "Two again.\n"):
                agent.line("hello")
                assert "waiting" not in agent.expect(said)


@both
def test_a_conversation_is_trimmed_to_the_window(world, api, streaming):
    """Whole turns are forgotten, the oldest first; a call and its result go together, and
    letters that take bytes count as bytes.
    """
    rounds = 12
    script = [
        step
        for n in range(rounds)
        for step in (
            calls(("note", {"text": "n%d " % n + "🌱" * 100})),
            say("Answer %d. " % n + 'é\n"' * 100),
        )
    ]
    with Server(script, api=api) as server:
        world.build(provider(server, streaming=streaming, limits={"max_context_window": 2000}))
        with world.start("run") as agent:
            for n in range(rounds):
                agent.line("Question %d" % n)
                assert "provider" not in agent.expect("Answer %d. " % n)
        assert len(server.requests) == 2 * rounds
        last = server.requests[-1]
        asked = [text for role, text in texts(last, api) if text.startswith("Question")]
        assert 2 <= len(asked) < rounds and asked == [
            "Question %d" % n for n in range(rounds - len(asked), rounds)
        ]
        for request in server.requests:
            assert (
                request.body["max_tokens"] >= 400
                and int(request.headers["content-length"]) / 4 + request.body["max_tokens"] <= 2010
            )


@both
def test_a_long_conversation_sends_12_kb_and_mostly_what_was_sent_before(world, api, streaming):
    """Providers cache a request as far as it begins like an earlier one."""
    rounds = 60
    with Server([say("Answer %d. " % n + "é\n" * 100) for n in range(rounds)], api=api) as server:
        world.build(provider(server, streaming=streaming))
        with world.start("run") as agent:
            for n in range(rounds):
                agent.line("Question %d " % n + "?" * 200)
                agent.expect("Answer %d. " % n)
        sent = [request.raw for request in server.requests]
        asked = [text for role, text in texts(server.requests[-1], api) if role == "user"]
    assert 10000 < max(map(len, sent)) <= 12000
    assert asked[-1].startswith("Question 59") and asked[0].startswith("Question ")
    stable = sent[0].index(b'"messages":[') + len(b'"messages":[')
    anew = 0
    for before, after in itertools.pairwise(sent):
        assert after[:stable] == before[:stable]
        anew += not after.startswith(before[: before.rindex(b"]")])
    assert 1 <= anew <= rounds / 6
    if api == "anthropic":
        marked = {"type": "ephemeral"}
        body = server.requests[-1].body
        assert body["cache_control"] == body["system"][0]["cache_control"] == marked


# -- keys

PLACES = {"store": "home/state/remote/secrets/TEST_KEY", "mounted": "mounted/TEST_KEY"}


@pytest.mark.parametrize("place", ["store", "mounted", "environment"])
@both
def test_a_key_comes_from_three_places(world, place, api, streaming):
    with Server([say("Fine.")], api=api) as server:
        world.build(provider(server, streaming=streaming))
        if place in PLACES:
            path = world.folder / PLACES[place]
            path.parent.mkdir(parents=True)
            path.write_text(KEY + "\n")
            path.chmod(0o600)
        assert world.ask(
            "hello",
            key=KEY if place == "environment" else None,
            CLAW_SECRETS_DIR=world.folder / "mounted",
        ) == (0, "Fine.\n", "")
        assert (
            KEY in server.requests[0].headers["authorization" if api == "openai" else "x-api-key"]
        )


def test_a_key_that_is_missing_is_one_line_and_sends_nothing(world):
    with Server([say("Fine.")]) as server:
        world.build(provider(server, retry=AT_ONCE))
        with world.start("run", key=None) as agent:
            agent.line("hello")
            said = agent.expect("(tried 1 of 3).").splitlines()[-1]
            assert agent.expect("\n").startswith(" Next: export TEST_KEY=... ")
            assert (
                said.startswith("provider first: secret TEST_KEY: not found in ")
                and "CLAW_SECRETS_DIR" in said
                and server.requests == []
            )
            # it is looked for when it is needed, not at the start
            path = world.folder / PLACES["store"]
            path.parent.mkdir(parents=True)
            path.touch(0o600)
            path.write_text(KEY)
            agent.line("hello")
            agent.expect("Fine.\n")


def test_a_key_that_others_may_read_is_refused(world):
    with Server([]) as server:
        world.build(provider(server))
        path = world.folder / PLACES["store"]
        path.parent.mkdir(parents=True)
        path.write_text(KEY)
        path.chmod(0o644)
        code, said, told = world.ask("hello")
        assert (code, said) == (1, "") and "others may read it" in told and server.requests == []


@both
def test_a_server_that_repeats_the_key_does_not_show_it(world, api, streaming):
    echoes = [
        error(401, "Incorrect API key provided: %s." % KEY),
        error(500, "x" * 170 + KEY),
        {"status": 403, "body": b"<title>%s</title>" % KEY.encode()},
        {"body": {"error": {"message": "no credits for " + KEY}}},
        {"body": KEY.encode()},
        {"stream": [b'data: {"error":{"message":"%s"}}\n\n' % KEY.encode()]},
    ]
    with Server(echoes, api=api) as server:
        world.build(provider(server, streaming=streaming))
        with world.start("run") as agent:
            for _ in echoes:
                agent.line("hello")
                said = agent.expect("(tried 1 of 1).") + agent.expect("\n")
                assert KEY[:12] not in said, said
            assert len(server.requests) == len(echoes)


def test_the_key_is_in_no_argument_list_environment_log_or_image(world):
    tools_log = world.folder / "home/state/remote"
    with Listener() as server:
        world.build(provider(server))
        path = world.folder / PLACES["store"]
        path.parent.mkdir(parents=True)
        path.touch(0o600)
        path.write_text(KEY)
        with world.start("run", key=None) as agent:
            agent.line("Think.")
            server.accept()
            pid = str(agent.process.pid)
            family = [pid] + [
                child
                for task in os.listdir("/proc/%s/task" % pid)
                for child in Path("/proc", pid, "task", task, "children").read_text().split()
            ]
            for one in family:
                for name in ("cmdline", "environ"):
                    assert KEY.encode() not in Path("/proc", one, name).read_bytes()
            agent.signal(signal.SIGTERM)
            agent.wait()
        assert tools_log.is_dir()
    for file in world.image.parent.iterdir():
        assert KEY.encode() not in file.read_bytes()


def test_a_manifest_with_a_key_in_its_url_is_refused(world):
    """What is built beside the agent would carry it."""
    from clawlite.host.base.problems import ManifestErrors

    with pytest.raises(ManifestErrors) as caught:
        world.build(provider(("openai", "https://user:%s@127.0.0.1/v1" % KEY)))
    assert "secret_ref" in str(caught.value) and KEY not in str(caught.value)


# -- others


def test_status_is_answered_while_a_turn_waits(world):
    with Listener() as server:
        world.build(provider(server))
        with world.start("run") as agent:
            agent.expect("ready. /help lists the commands.\n")
            agent.record(
                {"jsonrpc": "2.0", "id": 0, "method": "claw.initialize", "params": INITIALIZE}
            )
            agent.message()
            agent.line("Think.")
            connection = server.accept()
            for number in range(1, 4):
                agent.record({"jsonrpc": "2.0", "id": number, "method": "claw.status"})
                answered = agent.message()
                assert answered["id"] == number and answered["result"]["state"] == "READY"
            # and the operator's own call runs meanwhile
            agent.record(tool_call("note", {"text": "operator's"}, 9))
            assert agent.message()["result"]["content"][0]["text"] == "noted operator's"
            connection.sendall(
                b"HTTP/1.0 200 OK\r\n\r\n"
                b'{"choices":[{"message":{"content":"Thought."},"finish_reason":"stop"}]}'
            )
            connection.close()
            agent.expect("Thought.\n")


def test_serve_starts_without_asking_or_needing_a_key(world):
    with Server([]) as server:
        world.build(provider(server))
        with world.start("serve", "--stdio", key=None) as agent:
            agent.initialize()
            assert agent.is_serving()
            agent.end()
            assert agent.wait() == 0 and agent.errors() == "" and server.requests == []


def test_ask_over_a_manifest_builds_and_asks(world):
    with Server([say("Fine.")]) as server:
        world.build(provider(server))
        world.image.unlink()
        done = subprocess.run(
            [sys.executable, "-m", "clawlite", "ask", "hello", world.image.parent],
            capture_output=True,
            text=True,
            timeout=300,
            stdin=subprocess.DEVNULL,
            env=environment(world.folder / "home", TEST_KEY=KEY, MARKS=world.marks),
        )
        assert (done.returncode, done.stdout, done.stderr) == (
            0,
            "Fine.\n",
            "",
        ) and server.requests[0].body["model"] == MODEL
        assert KEY.encode() not in world.image.read_bytes()


def test_nothing_of_a_turn_stays_open(world):
    """Fifty turns, half of them broken: no descriptor more than after the first, and no thread."""
    with Server(
        lambda request: say("Fine.") if len(server.requests) % 2 else FAULTS["close early"]
    ) as server:
        world.build(provider(server))
        with world.start("run") as agent:

            def held():
                return len(os.listdir("/proc/%d/fd" % agent.process.pid)), len(
                    os.listdir("/proc/%d/task" % agent.process.pid)
                )

            agent.line("hello")
            agent.expect("Fine.\n")
            before = eventually(lambda: held() if held()[1] == 1 else None)
            for n in range(1, 50):
                agent.line("hello")
                agent.expect("(tried 1 of 1)." + when_away(server) if n % 2 else "Fine.\n")
            eventually(lambda: held() == before)


# -- rules first

FIRST = (
    '[[rule]]\nwhen = "note {words:text}"\ncall = "note"\narguments = { text = "{words}" }\n'
    '  [[rule.then]]\n  say = "By the rules: {result}."\n'
)


def first(world, server, **more):
    (world.folder / "project").mkdir(exist_ok=True)
    (world.folder / "project/rules.toml").write_text(FIRST)
    return world.build(
        provider(server, **more), settings='[reflex]\nfile = "rules.toml"\nfirst = true\n'
    )


def test_a_rule_that_fits_answers_before_the_model(world):
    with Server([say("A story.")]) as server:
        first(world, server)
        assert (
            world.ask("note soil") == (0, "By the rules: noted soil.\n", "")
            and server.requests == []
        )
        assert world.ask("tell me a story") == (0, "A story.\n", "") and len(server.requests) == 1
    assert world.ran("note") == ["soil"]


def test_what_the_model_began_the_rules_do_not_take_over(world):
    with Server([calls(("note", {"text": "note x"})), say("Done."), say("I see.")]) as server:
        first(world, server)
        with world.start("run") as agent:
            agent.line("please note what I said")
            agent.expect("Done.\n")
            agent.line("note two")
            agent.expect("By the rules: noted two.\n")
            agent.line("what did I note?")
            agent.expect("I see.\n")
            assert ("assistant", "By the rules: noted two.") in texts(server.requests[2], "openai")


def test_rules_that_come_first_need_their_file(world):
    from clawlite.host.base.problems import ManifestErrors

    with pytest.raises(ManifestErrors, match="reflex.toml"):
        world.build(provider(nobody()), settings="[reflex]\nfirst = true\n")
    with pytest.raises(ManifestErrors, match=r"reflex\.frist.*unknown field"):
        world.build(provider(nobody()), settings="[reflex]\nfrist = true\n")


# -- limits of an answer


@pytest.mark.parametrize("streaming", [True, False])
def test_a_silent_provider_costs_what_the_settings_say(world, streaming):
    with Server([FAULTS["stall before head"]] * 3) as server:
        world.build(
            provider(server, streaming=streaming, retry=dict(AT_ONCE, max_attempts=2)),
            reflex=REFLEX,
            settings="[answer]\n%s = 1000\n" % ("first_byte_ms" if streaming else "total_ms"),
        )
        code, said, told = world.ask("hello")
        silent = "it said nothing for 1 s" if streaming else "its answer was not whole after 1 s"
        assert (code, said) == (
            0,
            "By the rules.\n",
        )
        assert told == "provider first: %s (tried 1 of 2) - %s; next: reflex\n" % (
            silent,
            when_silent(server)[7:-2] if streaming else LATE,
        )
        world.build(
            provider(server, streaming=streaming, retry=dict(AT_ONCE, max_attempts=9)),
            reflex=REFLEX,
            settings="[answer]\nfirst_byte_ms = 5000\ntotal_ms = 1000\n",
        )
        code, said, told = world.ask("hello")
        assert (
            told == "provider first: its answer was not whole after 1 s (tried 1 of 9) - %s; next: "
            "reflex\n" % LATE
        )


def test_an_answer_that_trickles_ends_when_its_time_is_over(world):
    import itertools
    import threading

    never = threading.Event()

    def drops():
        for _ in itertools.count():
            if never.wait(0.05):
                return
            yield b" "

    with Server([{"body": drops()}]) as server:
        world.build(
            provider(server, streaming=False), reflex=REFLEX, settings="[answer]\ntotal_ms = 1000\n"
        )
        code, said, told = world.ask("hello")
        never.set()
        assert said == "By the rules.\n" and "its answer was not whole after 1 s" in told


def test_status_names_provider_model_and_tokens(world):
    with Server([say("Hi.")]) as server:
        first(world, server)
        with world.start("run") as agent:
            agent.line("/status")
            agent.expect("\nasks the rules, then first (%s at 127.0.0.1 port " % MODEL)
            agent.line("hello")
            agent.expect("Hi.\n")
            agent.line("/status")
            agent.expect("; 19 tokens read, 10 written since it began\n")

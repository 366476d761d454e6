"""A board asks a remote provider over a socket: streaming, a tool call in the middle, within a
small heap.
"""

import json
import os
import subprocess

import pytest
from llm_server import FAULTS, Server, calls, say

from clawlite.host.builder import build

# a streaming turn with one tool call and a 12 KB answer: 64-bit unix port, linked modules
HEAP = "128k"
ANSWER = "The garden is green. " * 600


@pytest.fixture
def agent(tmp_path):
    """Return a function that builds an agent with one tool, whose providers end with reflex:
    (server, more) -> its image.
    """

    def make(server, api="openai", stream="true", settings=""):
        protocol = {"openai": "openai-compatible", "anthropic": "anthropic-native"}[api]
        (tmp_path / "claw.yaml").write_text(f'''claw: "0.3.0"
kind: Claw
metadata: {{ name: board, version: "1.0.0" }}
spec:
  identity: {{ inline: {{ personality: "You keep a garden.", autonomy: autonomous }} }}
  providers:
    - inline: {{ name: remote, protocol: {protocol}, endpoint: "{server.endpoint}", model: test-model, streaming: {stream},
                auth: {{ type: bearer, secret_ref: BOARD_KEY }}, retry: {{ max_attempts: 2, initial_delay_ms: 1 }},
                fallback: [{{ provider_ref: rules }}] }}
    - inline: {{ name: rules, protocol: custom, endpoint: "builtin:reflex", model: reflex, auth: {{ type: none }} }}
  sandbox: {{ inline: {{ level: none }} }}
  policies: [{{ inline: {{ rules: [{{ id: all, action: allow, scope: all }}] }} }}]
''')  # noqa: E501
        (tmp_path / "tools.py").write_text(
            'def look(where: str) -> dict:\n    """Look '
            'somewhere."""\n    return {"where": where, "seen": '
            "3}\n"
        )
        (tmp_path / "clawlite.toml").write_text('reflex = "reflex.toml"\n' + settings)
        (tmp_path / "reflex.toml").write_text('[[rule]]\nwhen = "*"\nsay = "By rule."\n')
        return build.build_beside(str(tmp_path))

    return make


def talk(micropython, tree, image, lines, heap="400k", key="k-canary-7f3a"):
    """Return what an agent did, in the stack of a Pico and in a *heap*."""
    return subprocess.run(
        [micropython, "-X", f"heapsize={heap}", str(tree / "start.py"), image],
        input=lines.encode(),
        capture_output=True,
        timeout=300,
        env=dict(os.environ, MICROPYPATH=f"{tree}:.frozen", BOARD_KEY=key),
    )


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_a_streaming_turn_with_a_tool_call_fits_a_small_heap(micropython, tree, agent, api):
    with Server([calls(("look", {"where": "bed 2"})), say(ANSWER)], api=api) as server:
        done = talk(micropython, tree, agent(server, api), "how is it?\n", HEAP)
    assert done.returncode == 0 and done.stderr == b"", done.stderr
    assert ANSWER.strip() in done.stdout.decode()
    first, second = [request.body for request in server.requests]
    assert (
        "how is it?" in json.dumps(first)
        and "bed 2" in json.dumps(second)
        and '\\"seen\\":3' in json.dumps(second)
    )
    assert server.requests[0].headers["authorization"] == "Bearer k-canary-7f3a"


def test_a_call_that_is_text_runs_where_the_settings_let_it(micropython, tree, agent):
    text = '<tool_call>\n{"name": "look", "arguments": {"where": "bed 2"}}\n</tool_call>'
    allowed = '[dialect.remote]\ntext_calls = "run"\n'
    with Server([say(text), say("Fine.")]) as server:
        done = talk(micropython, tree, agent(server, settings=allowed), "how is it?\n", "160k")
    assert "Fine." in done.stdout.decode() and "tool_call" not in done.stdout.decode(), done
    assert '"seen":3' in server.requests[1].body["messages"][-1]["content"]
    with Server([say(text)]) as server:
        done = talk(micropython, tree, agent(server), "how is it?\n", HEAP)
    assert "<tool_call>" in done.stdout.decode() and "is not run" in done.stdout.decode()


def test_an_answer_in_one_piece(micropython, tree, agent):
    with Server([say("Fine.")]) as server:
        done = talk(micropython, tree, agent(server, stream="false"), "how is it?\n")
    assert "Fine." in done.stdout.decode()


@pytest.mark.parametrize(
    "fault",
    [
        "unauthorized",
        "no model",
        "failed",
        "html",
        "empty",
        "cut json",
        "broken stream",
        "close early",
        "close before head",
        "reset",
    ],
)
def test_a_failure_is_one_line_and_the_rules_go_on(micropython, tree, agent, fault):
    with Server([FAULTS[fault], FAULTS[fault]]) as server:
        done = talk(micropython, tree, agent(server), "how is it?\n/status\n")
    said = done.stdout.decode()
    assert done.returncode == 0 and done.stderr == b"", done.stderr
    assert (
        "provider remote: " in said
        and "By rule." in said
        and "READY" in said
        and "Traceback" not in said
    )
    assert "k-canary-7f3a" not in said


def test_a_refused_connection_and_a_missing_key(micropython, tree, agent):
    with Server([]) as server:
        image = agent(server)
    assert (
        "(tried 2 of 2); next: reflex"
        in talk(micropython, tree, image, "how is it?\n").stdout.decode()
    )
    said = talk(micropython, tree, image, "how is it?\n", key="").stdout.decode()
    assert "secret BOARD_KEY: not found" in said and "By rule." in said


def test_what_a_model_says_does_not_drive_the_terminal(micropython, tree, agent):
    with Server([say("\x1e{}\x1b[2J \u202eok")]) as server:
        done = talk(micropython, tree, agent(server), "hello\n")
    assert "\\x1e{}\\x1b[2J \\u202eok\n" in done.stdout.decode()

"""A tool call that a server hands on as text: run where the settings let it, else shown."""

import subprocess
import sys

import pytest
from llm_server import Server, say
from provider_builds import build, provider

from clawlite.host.base.problems import ManifestErrors

CALL = '<tool_call>\n{"name": "look", "arguments": {"where": "bed 2"}}\n</tool_call>'
ALLOWED = '[dialect.m]\ntext_calls = "run"\n'
TOOLS = (
    'def look(where: str) -> dict:\n    """Look somewhere."""\n'
    "    return {'where': where, 'seen': 3}\n"
)


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """Return a function that asks an agent one thing, in a process of its own: the text of the
    first answer -> (stdout, stderr, messages of the second request or None).
    """
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path / "state"))

    def run(text, settings=ALLOWED, api="openai", **more):
        protocol = {"openai": "openai-compatible", "anthropic": "anthropic-native"}[api]
        with Server([say(text), say("It is wet.")], api=api) as server:
            one = provider("m", endpoint=server.endpoint, protocol=protocol, **more)
            build(tmp_path, one, settings=settings, tools=TOOLS)
            done = subprocess.run(
                [sys.executable, "-m", "clawlite", "ask", "how is it?", "--approve"],
                cwd=tmp_path,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=120,
            )
            sent = [request.body["messages"] for request in server.requests]
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr, sent[1] if len(sent) == 2 else None

    return run


@pytest.mark.parametrize("api", ["openai", "anthropic"])
@pytest.mark.parametrize("streaming", [True, False])
def test_a_call_runs_where_the_settings_let_it(ask, api, streaming):
    said, told, messages = ask(CALL, api=api, streaming=streaming)
    assert (said, told) == ("It is wet.\n", "")
    if api == "openai":
        (call,) = messages[-2]["tool_calls"]
        assert call["function"] == {"name": "look", "arguments": '{"where":"bed 2"}'}
        assert messages[-1]["tool_call_id"] == call["id"] and '"seen":3' in messages[-1]["content"]
    else:
        (call,) = [part for part in messages[-2]["content"] if part["type"] == "tool_use"]
        assert call["input"] == {"where": "bed 2"}


def test_elsewhere_it_is_shown_and_a_line_says_so(ask):
    for settings in ("", '[dialect.m]\nstream_options = ""\n'):
        said, told, messages = ask(CALL, settings)
        assert said == CALL + "\n" and "as text, which is not run; start" in told
        assert messages is None


@pytest.mark.parametrize(
    "text, why",
    [
        (CALL + "\nI looked.", "other text is beside it"),
        (CALL.replace("look", "rm"), "there is no tool rm"),
        (CALL.replace('"bed 2"', "2"), "look: at arguments.where: expected a string, got 2"),
        (CALL.replace("</tool_call>", "").rstrip()[:-1], "it is not whole"),
        ("The page says: " + CALL, None),
        ('{"name": "Rosa", "age": 3}', None),
        ("```json\n[1, 2]\n```", None),
    ],
)
def test_what_is_no_call_alone_is_shown(ask, text, why):
    said, told, messages = ask(text)
    assert said == text + "\n" and messages is None
    assert "as text, which is not run (%s)" % why in told if why else told == ""


def test_a_wrong_value_is_refused_when_it_is_checked(tmp_path):
    with pytest.raises(ManifestErrors, match="text_calls: expected run, found yes"):
        build(tmp_path, provider("m"), settings='[dialect.m]\ntext_calls = "yes"\n')

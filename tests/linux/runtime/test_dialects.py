"""What a model server refused is asked otherwise, in the same turn, and known after a restart."""

import json
import os
import subprocess
import sys
import types

import pytest
from llm_server import Server, say
from provider_builds import build, provider

from clawlite.linux.runtime.providers import MOST_DIALECTS, Dialects

REFUSAL = {
    "status": 400,
    "body": {
        "error": {
            "message": "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            "type": "invalid_request_error",
            "param": "max_tokens",
            "code": "unsupported_parameter",
        }
    },
}


def wants_the_new_name(request):
    return REFUSAL if "max_tokens" in request.body else say("Hi.")


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """Return a function that asks an agent one thing, in a process of its own: the settings ->
    (exit code, stdout, stderr).
    """
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path / "state"))

    def run(server, settings="", lines=None):
        folder = tmp_path / "agent"
        folder.mkdir(exist_ok=True)
        build(folder, provider("m", endpoint=server.endpoint), settings=settings)
        command = ["run"] if lines else ["ask", "hello"]
        done = subprocess.run(
            [sys.executable, "-m", "clawlite", *command],
            cwd=folder,
            input=lines or "",
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.returncode, done.stdout, done.stderr

    return run


def test_a_refused_field_is_asked_otherwise_at_once_and_known_after_a_restart(ask, tmp_path):
    with Server([wants_the_new_name] * 3) as server:
        code, said, told = ask(server)
        assert (code, said) == (0, "Hi.\n") and "max_completion_tokens" in told
        assert ask(server) == (0, "Hi.\n", "")
        assert len(server.requests) == 3
    (path,) = (tmp_path / "state").rglob("dialects.json")
    assert os.stat(path).st_mode & 0o777 == 0o600
    ((place, (_, changes)),) = json.loads(path.read_text()).items()
    assert place.endswith("/v1/chat/completions model-m")
    assert changes == [["max_tokens", "max_completion_tokens"]]


def test_a_setting_fixes_it_for_good(ask, tmp_path):
    with Server([wants_the_new_name]) as server:
        settings = '[dialect.m]\nmax_tokens = "max_completion_tokens"\nstream_options = ""\n'
        assert ask(server, settings) == (0, "Hi.\n", "")
        (request,) = server.requests
        assert "max_completion_tokens" in request.body and "stream_options" not in request.body
    assert not list((tmp_path / "state").rglob("dialects.json"))


def test_azures_version_stands_behind_the_path_of_each_request(ask):
    with Server([say("Hi.")]) as server:
        place = types.SimpleNamespace(endpoint=server.endpoint + "?api-version=2024-10-21")
        assert ask(place) == (0, "Hi.\n", "")
        (request,) = server.requests
        assert request.target == "/v1/chat/completions?api-version=2024-10-21"


def test_new_begins_a_conversation_afresh(ask):
    with Server([say("One."), say("Two."), say("Three.")]) as server:
        lines = "first\nsecond\n/new\nthird\n/quit\n"
        code, said, _ = ask(server, lines=lines)
        assert code == 0 and "A new conversation begins." in said
        sent = [[one["content"] for one in request.body["messages"]] for request in server.requests]
        assert "first" in sent[1] and sent[2][1:] == ["third"]


def test_what_is_kept_is_bounded_and_survives_damage(tmp_path):
    now = [1000000]
    path = str(tmp_path / "state" / "dialects.json")
    known = Dialects(path, lambda: now[0])
    assert known.of("a") == []
    for number in range(MOST_DIALECTS + 5):
        now[0] += 1
        known.learn("place %d" % number, [["stream_options", ""]])
    assert known.of("place 0") == [] and known.of("place 5") == [["stream_options", ""]]
    now[0] += 31 * 86400
    assert known.of("place 60") == []
    for damage in (b"", b"{", b"[]", b'{"a":[1]}', b"\xff"):
        with open(path, "wb") as file:
            file.write(damage)
        assert known.of("a") == []
    known.learn("a", [["x", ""]])
    assert known.of("a") == [["x", ""]]
    Dialects("/proc/nowhere/dialects.json", lambda: 1).learn("a", [])

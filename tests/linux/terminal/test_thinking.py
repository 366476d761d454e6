"""What a person sees while a model has said nothing: a real terminal, a real server that waits."""

import os
import pty
import select
import subprocess
import threading

import pytest
from agents import DEADLINE_S, environment, eventually, linux
from llm_server import Server, calls
from providers.project import KEY, World, held, provider


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    return World(tmp_path)


@pytest.fixture
def go():
    """The model says nothing until this is set; the end of the test sets it in any case."""
    event = threading.Event()
    yield event
    event.set()


def _slow(go: threading.Event, text: str = "Good morning.") -> dict:
    """Return a stream whose head comes at once, and its first text when *go* is set."""
    step = held("openai", text, text[:7], go)
    pieces = [piece for piece in step["stream"] if piece is not go]
    return {"stream": [go] + pieces}


def test_the_seconds_are_counted_until_the_first_text_comes(world, go):
    with Server([_slow(go)]) as server:
        world.build(provider(server, streaming=True))
        with world.start("run", terminal=True) as agent:
            agent.expect("> ")
            agent.line("hello")
            assert agent.expect("thinking, 1 s").endswith("hello\n")
            agent.expect("2")  # the one character that differs is written anew
            go.set()
            agent.expect("\r\x1b[KGood morning.\n> ")
            agent.end()
            assert agent.wait() == 0 and agent.errors() == ""


def test_what_is_typed_meanwhile_stands_behind_it_and_is_taken_alone(world, go):
    with Server([_slow(go), _slow(go, "And again.")]) as server:
        world.build(provider(server, streaming=True))
        with world.start("run", terminal=True) as agent:
            agent.expect("> ")
            agent.line("hello")
            agent.expect("thinking, 1 s")
            agent.send("more")
            agent.expect("  more")
            agent.send("\n")
            agent.expect("\r\x1b[Kmore\n")
            go.set()
            agent.expect("Good morning.\n")
            agent.expect("And again.\n> ")
            agent.end()
            assert agent.wait() == 0
            said = [request.body["messages"][-1]["content"] for request in server.requests]
            assert said == ["hello", "more"]


def test_ctrl_c_takes_it_away(world, go):
    with Server([_slow(go)]) as server:
        world.build(provider(server, streaming=True))
        with world.start("run", terminal=True) as agent:
            agent.expect("> ")
            agent.line("hello")
            agent.expect("thinking, 1 s")
            agent.send(b"\x03")
            agent.expect("\r\x1b[KInterrupted.\n> ")
            agent.end()
            assert agent.wait() == 0


def test_it_counts_anew_after_a_tool(world, go):
    with Server([calls(("note", {"text": "one"})), _slow(go)]) as server:
        world.build(provider(server, streaming=True))
        with world.start("run", terminal=True) as agent:
            agent.expect("> ")
            agent.line("hello")
            agent.expect("thinking, 1 s")
            assert world.ran("note") == ["one"]
            go.set()
            agent.expect("Good morning.\n> ")
            agent.end()
            assert agent.wait() == 0


@pytest.mark.parametrize("verb, terminal", [("run", False), ("ask", False), ("ask", True)])
def test_a_pipe_or_a_file_never_sees_it(world, go, verb, terminal):
    """stderr is a file.  A second agent, on a terminal, tells when the first has waited for 1 s."""
    with Server([_slow(go)] * 2) as server:
        world.build(provider(server, streaming=True))
        with world.start(verb, *(["hello"] if verb == "ask" else []), terminal=terminal) as agent:
            if verb == "run":
                agent.line("hello")
            eventually(lambda: server.requests)
            with world.start("run", terminal=True) as clock:
                clock.expect("> ")
                clock.line("hello")
                clock.expect("thinking, 1 s")
            go.set()
            if verb == "run":
                agent.expect("Good morning.\n")
                agent.end()
            assert agent.wait() == 0
            shown = agent.text() + agent.errors()
            assert "Good morning.\n" in shown and "thinking" not in shown and "\x1b" not in shown


def test_ask_in_a_pipe_shows_it_on_a_terminal_of_stderr(world, go):
    with Server([_slow(go)]) as server:
        world.build(provider(server, streaming=True))
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            linux("ask", "hello", world.image),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=theirs,
            cwd=world.folder,
            env=environment(world.folder / "home", TEST_KEY=KEY, MARKS=world.marks),
        )
        try:
            shown = b""
            while b"thinking, 1 s" not in shown:
                assert select.select([ours], [], [], DEADLINE_S)[0], shown
                shown += os.read(ours, 4096)
            go.set()
            answer, _ = process.communicate(timeout=DEADLINE_S)
            while select.select([ours], [], [], 0)[0]:
                shown += os.read(ours, 4096)
        finally:
            process.kill()
            process.wait()
            os.close(ours)
            os.close(theirs)
        assert answer == b"Good morning.\n" and process.returncode == 0
        assert shown.endswith(b"\r\x1b[K") and shown.startswith(b"\r\x1b[Kthinking, 1 s")

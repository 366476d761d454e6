"""A conversation that goes on after a restart."""

import json
import os
import time

import pytest
from agents import MANIFEST, UUID, eventually, linux
from llm_server import FAULTS, Server, calls, say
from memory_operator import Operator
from memory_world import store
from providers.project import KEY, TOOLS, WAYS, World, provider, texts

from clawlite.core.image.memories import SUMMARIZE
from clawlite.core.turns.history import History
from clawlite.linux.memory.conversation import lasting, preface

TALK = {"name": "talk", "type": "conversation"}


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def talk(world, *lines, **more):
    """Say *lines*, each after the answer to the one before, in one session; return the screen."""
    with world.start("run", **more) as agent:
        for line, answer in lines:
            agent.line(line)
            agent.expect(answer)
        agent.end()
        eventually(lambda: agent.process.poll() is not None)
        return agent.text() + agent.errors()


@pytest.mark.parametrize("api, streaming", WAYS)
def test_a_conversation_goes_on_after_a_restart(world, api, streaming):
    with Server(
        [
            calls(("note", {"text": "the key is under the mat"}), ("fail", {})),
            say("Noted."),
            say("Under the mat."),
            say("Yes."),
        ],
        api=api,
    ) as server:
        world.build(provider(server, streaming=streaming), stores=[TALK])
        talk(world, ("Note: the key is under the mat.", "Noted."))
        talk(world, ("Where is it?", "Under the mat."), ("Sure?", "Yes."))
        line = TOOLS.splitlines().index('    raise ValueError("the sensor is unplugged")') + 1
        first = [
            ("user", "Note: the key is under the mat."),
            ("tool", "noted the key is under the mat"),
            ("tool", f"fail failed: ValueError: the sensor is unplugged (tools.py:{line})"),
            ("assistant", "Noted."),
        ]
        assert texts(server.requests[2], api) == first + [("user", "Where is it?")]
        assert texts(server.requests[3], api) == first + [
            ("user", "Where is it?"),
            ("assistant", "Under the mat."),
            ("user", "Sure?"),
        ]
        if api == "anthropic":
            results = [
                block
                for message in server.requests[2].body["messages"]
                for block in message["content"]
                if isinstance(block, dict) and block["type"] == "tool_result"
            ]
            assert [block.get("is_error", False) for block in results] == [False, True]


@pytest.mark.parametrize(
    "streaming, terminal", [(False, False), (False, True), (True, True), (None, True)]
)
@pytest.mark.parametrize("ms", [0, 1, 10, 50])
def test_what_a_person_has_read_survives_kill_9(world, ms, streaming, terminal):
    """The first turn of a process, which opens its database: killed right behind the end of its
    answer, which is the prompt where the answer came in pieces.  None: rules answer.
    """
    with Server([say("Under the mat."), say("Yes.")][streaming is None :]) as server:
        if streaming is None:
            rules = '[[rule]]\nwhen = "Where is the key?"\nsay = "Under the mat."\n'
            world.build(reflex=rules, stores=[TALK])
        else:
            world.build(provider(server, streaming=streaming), stores=[TALK])
        with world.start("run", terminal=terminal) as agent:
            if terminal:
                agent.expect("> ")
            agent.line("Where is the key?")
            agent.expect("Under the mat.")
            if streaming:
                agent.expect("> ")
            time.sleep(ms / 1000)  # waits for nothing: the places of the kill are spread
            agent.process.kill()
            agent.process.wait()
        world.build(provider(server, streaming=False), stores=[TALK])
        talk(world, ("Sure?", "Yes."))
        assert texts(server.requests[-1], "openai")[:2] == [
            ("user", "Where is the key?"),
            ("assistant", "Under the mat."),
        ]


def test_without_a_store_nothing_survives(world):
    with Server([say("One."), say("Two.")]) as server:
        world.build(provider(server), stores=[{"name": "facts", "type": "key-value"}])
        talk(world, ("hello", "One."))
        talk(world, ("again", "Two."))
        assert texts(server.requests[1], "openai") == [("user", "again")]


def test_a_turn_without_an_answer_is_not_stored_and_one_of_ask_is_none_of_the_conversation(world):
    with Server([FAULTS["failed"], say("Asked."), say("Here.")]) as server:
        world.build(provider(server), stores=[TALK])
        with world.start("run") as agent:
            agent.line("lost")
            agent.expect("HTTP 500")
        assert world.ask("alone")[1] == "Asked.\n"
        talk(world, ("hello", "Here."))
        assert texts(server.requests[2], "openai") == [("user", "hello")]


def test_the_oldest_messages_are_forgotten(world):
    with Server([say("Answer %d." % n) for n in range(6)]) as server:
        world.build(provider(server), stores=[dict(TALK, retention={"max_entries": 4})])
        talk(world, *[("Question %d" % n, "Answer %d." % n) for n in range(5)])
        talk(world, ("Question 5", "Answer 5."))
        assert texts(server.requests[5], "openai") == [
            ("user", "Question 3"),
            ("assistant", "Answer 3."),
            ("user", "Question 4"),
            ("assistant", "Answer 4."),
            ("user", "Question 5"),
        ]


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_a_provider_summarizes_and_is_told_the_summary_after_a_restart(world, api):
    asked = []

    def answer(request):
        said = texts(request, api)[-1][1]
        if said.startswith("Summarize these notes"):
            asked.append(said)
            return say("summary %d" % len(asked))
        return say("Re: %s." % said)

    with Server(answer, api=api) as server:
        world.build(
            provider(server),
            stores=[
                dict(TALK, retention={"max_entries": 12}, compaction={"strategy": "summarize"})
            ],
        )
        talk(world, *[("question %d" % n, "Re: question %d." % n) for n in range(12)])
        first, second = asked
        until = len(server.requests)
        assert (
            "question 2" in first
            and "question 3" not in first
            and "- summary 1\n" in second
            and '"user","text":"question 3"' in second
        )
        talk(world, ("again", "Re: again."))
        assert texts(server.requests[until], api)[:2] == [
            ("user", "What was said before, in short: summary 2"),
            ("assistant", "I remember."),
        ]


@pytest.mark.parametrize("backend", ["sqlite", "filesystem"])
def test_a_summary_comes_before_a_long_conversation_too(world, backend):
    with Server(
        lambda request: say(
            "summary"
            if texts(request, "openai")[-1][1].startswith("Summarize these notes")
            else "Yes."
        )
    ) as server:
        world.build(
            provider(server),
            stores=[
                dict(
                    TALK,
                    backend=backend,
                    retention={"max_entries": 820},
                    compaction={"strategy": "summarize"},
                )
            ],
        )
        with Operator(
            linux("serve", world.image, "--stdio"),
            world.folder / "home",
            env={"MARKS": world.marks, "TEST_KEY": KEY},
        ) as operator:
            operator.boot()
            for number in range(5):
                entries = [
                    {"content": {"role": role, "text": "%s %d" % (role, n)}}
                    for n in range(82)
                    for role in ("user", "assistant")
                ]
                stored = operator.ask(
                    "claw.memory.store",
                    store="talk",
                    entries=entries,
                    context={"request_id": UUID % number},
                )
                assert stored["result"]["stored"] == 164
            eventually(
                lambda: operator.ask(
                    "claw.memory.query", store="talk", query={"type": "semantic", "text": "summary"}
                )["result"]["entries"]
            )
        until = len(server.requests)
        talk(world, ("again", "Yes."))
        # a summary may be under way beside the turn
        turn = [r for r in server.requests[until:] if texts(r, "openai")[-1][1] == "again"][0]
        said = texts(turn, "openai")
        assert (
            said[0] == ("user", "What was said before, in short: summary")
            and said[2][0] == "user"
            and len(turn.raw) <= 12000
        )


def test_what_an_operator_calls_a_summary_may_be_anything():
    history, place = History(1000), (store(compaction=SUMMARIZE), "")
    for content, told in (
        ({"role": "user"}, []),
        ("short", ["What was said before, in short: short", "I remember."]),
    ):
        history.is_restored, work = False, lasting(iter(()), place, history, 1000)
        assert (
            next(work)[4][0] == "time-range" and work.send((True, {"entries": []}))[4][0] == "first"
        )
        try:
            work.send(
                (
                    True,
                    {
                        "entries": [{"content": content, "metadata": {"summary_of": 3}}],
                        "truncated": True,
                    },
                )
            )
        except IndexError:  # the turn that is kept: there was none
            pass
        assert [message.text for message in history.context()] == told


def test_what_an_operator_stored_there_is_no_message(world):
    with Server([say("One."), say("Two.")]) as server:
        world.build(provider(server), stores=[TALK])
        talk(world, ("hello", "One."))
        with world.start("serve", "--stdio") as agent:
            agent.line(
                json.dumps(
                    {
                        "jsonrpc": "2.0",
                        "id": 1,
                        "method": "claw.initialize",
                        "params": {
                            "protocolVersion": "0.3.0",
                            "clientInfo": {"name": "t", "version": "1"},
                            "capabilities": {},
                            "manifest": MANIFEST,
                        },
                    }
                )
            )
            entries = [
                {"content": content}
                for content in (
                    "a note",
                    {"role": "user"},
                    {"role": "system", "text": "obey"},
                    {"role": "assistant", "text": "alone"},
                    {"role": "user", "text": "cut off"},
                    {"role": "assistant", "text": "x", "calls": [["1", "note"]]},
                    {"role": "tool", "text": "stray", "id": 1},
                )
            ]
            agent.line(
                json.dumps(
                    {
                        "jsonrpc": "2.0",
                        "id": 2,
                        "method": "claw.memory.store",
                        "params": {
                            "store": "talk",
                            "entries": entries,
                            "context": {"request_id": "c1a00000-0000-4000-8000-000000000001"},
                        },
                    }
                )
            )
            agent.expect('"stored":7')
        talk(world, ("again", "Two."))
        assert texts(server.requests[1], "openai") == [
            ("user", "hello"),
            ("assistant", "One."),
            ("user", "again"),
        ]


def test_a_memory_that_fails_is_said_once_and_the_agent_goes_on(world):
    with Server([say("One."), say("Two."), say("Three.")]) as server:
        world.build(provider(server), stores=[TALK])
        talk(world, ("hello", "One."))
        (path,) = world.folder.rglob("memory.db")
        path.write_bytes(b"no database" * 1000)
        screen = talk(world, ("again", "Two."), ("and again", "Three."))
        assert screen.count("it is damaged") == 2 and "what was said before is not known" in screen
        assert screen.count("this is forgotten when the agent ends. Next: move the file away") == 1
        assert texts(server.requests[2], "openai") == [
            ("user", "again"),
            ("assistant", "Two."),
            ("user", "and again"),
        ]


def test_the_console_says_what_is_remembered(world):
    with Server([say("One.")]) as server:
        world.build(
            provider(server),
            stores=[TALK, {"name": "facts", "type": "key-value", "scope": "per-identity"}],
            settings='[memory]\npower_safe = ["facts"]\n',
        )
        screen = talk(world, ("/memory", "talk keeps this conversation over sessions."))
        assert (
            "talk                 conversation, global" in screen
            and "facts                key-value, per-identity, power-safe" in screen
        )


# -- context files


def test_context_files_come_before_each_turn_as_they_are_then(world):
    with Server([say("One."), say("Two."), say("Three.")]) as server:
        world.build(
            provider(server),
            context_files={"user": "./USER.md", "rules": "docs/RULES.md", "memory": "MEMORY.md"},
        )
        folder = world.image.parent
        (folder / "USER.md").write_text("The user is Ada.\n")
        (folder / "docs").mkdir()
        (folder / "docs" / "RULES.md").write_text("Be short.")
        workspace = world.folder / "home/state/remote/workspace"
        with world.start("run") as agent:
            agent.line("hello")
            agent.expect("One.")
            workspace.mkdir(parents=True)
            (workspace / "MEMORY.md").write_text("Ada likes tea.")
            (workspace / "USER.md").write_text("The user is Bob.")
            agent.line("again")
            agent.expect("Two.")
        said = texts(server.requests[0], "openai")
        assert said[1:] == [("assistant", "I have read them."), ("user", "hello")]
        assert said[0][1].endswith(
            "## user: ./USER.md".replace("./", "") + "\n\nThe user is "
            "Ada.\n\n## rules: "
            "docs/RULES.md\n\nBe "
            "short."
        )
        said = texts(server.requests[1], "openai")
        assert (
            "The user is Bob." in said[0][1]
            and "## memory: MEMORY.md\n\nAda likes tea." in said[0][1]
        )
        assert said[2:] == [("user", "hello"), ("assistant", "One."), ("user", "again")]
        assert (
            world.ask("alone")[1] == "Three.\n"
            and "Ada likes tea." in texts(server.requests[2], "openai")[0][1]
        )


def test_what_memory_write_wrote_comes_before_the_next_turn(world):
    tool = "claw://registry/clawlite/memory-write@1.0.0"
    with Server(
        [calls(("memory-write", {"content": "Ada likes tea."})), say("Noted."), say("Tea.")]
    ) as server:
        world.build(provider(server), context_files={"memory": "MEMORY.md"}, more={"tools": [tool]})
        (world.image.parent / "MEMORY.md").write_text("The maker's notes.")
        screen = talk(world, ("Remember that I like tea.", "Noted."), ("What do I like?", "Tea."))
        assert "The maker's notes." in texts(server.requests[0], "openai")[0][1], screen
        said = texts(server.requests[2], "openai")[0][1]
        assert "## memory: MEMORY.md\n\nAda likes tea." in said and "maker" not in said


def test_context_files_have_bounds_and_may_be_missing(tmp_path):
    (tmp_path / "a").write_bytes(b"x" * 16385)
    (tmp_path / "b").write_bytes(b"y" * 16384)
    (tmp_path / "c").write_text("z")
    question, answer = preface(
        [["a", "a"], ["none", "none"], ["b", "b"], ["c", "c"]],
        (str(tmp_path / "nowhere"), str(tmp_path)),
    )
    assert (
        question.text.count("x") == 16384 + question.text[:60].count("x")
        and question.text.count("y") >= 16384
        and "## c: c (its beginning)\n\n" in question.text
    )
    assert (
        "## a: a (its beginning)" in question.text
        and "## b: b\n" in question.text
        and "none" not in question.text
    )
    assert preface([["none", "none"]], (str(tmp_path),)) == []


def test_no_link_and_no_pipe_is_a_context_file(tmp_path):
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "file").symlink_to(tmp_path / "secret")
    (tmp_path / "ws" / "folder").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "ws" / "pipe")
    assert (
        preface(
            [["a", "file"], ["b", "folder/secret"], ["c", "pipe"], ["d", "."]],
            (str(tmp_path / "ws"),),
        )
        == []
    )

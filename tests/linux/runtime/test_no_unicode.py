"""Text that is no Unicode: results of tools, arguments of the command line, a byte order mark."""

import os
import subprocess

import pytest
from agents import environment, linux
from llm_server import Server, calls, say
from providers.project import World, provider

TOOLS = '''
import os


def names() -> str:
    """File names."""
    return os.fsdecode(b"caf\\xe9.txt")


def folder() -> dict:
    """More of them."""
    return {"names": [os.fsdecode(b"a\\xff"), "b"]}


def broken() -> str:
    """Fails."""
    raise ValueError(os.fsdecode(b"no \\xe9"))
'''


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def box(level: str) -> dict:
    return {"sandbox": {"inline": {"name": "box", "level": level}}}


@pytest.mark.parametrize("level", ["none", "process"])
def test_what_a_tool_returns_is_replaced_on_both_levels(world, level):
    script = [
        calls(("names", {})),
        say("One."),
        calls(("folder", {})),
        say("Two."),
        calls(("broken", {})),
        say("Three."),
    ]
    with Server(script) as server:
        world.build(provider(server), tools=TOOLS, more=box(level))
        # the tool of the last one fails
        for code, answer in ((0, "One.\n"), (0, "Two.\n"), (1, "Three.\n")):
            assert world.ask("go") == (code, answer, "")
        results = [request.body["messages"][-1]["content"] for request in server.requests[1::2]]
    assert results[0] == "caf\ufffd.txt"
    assert results[1] == '{"names":["a\ufffd","b"]}'
    assert "ValueError: no \ufffd" in results[2]


def test_an_argument_that_is_not_utf8_is_told(world):
    with Server([]) as server:
        world.build(provider(server))
    words = linux("ask", "TEXT", world.image)
    done = subprocess.run(
        [b"gr\xfc\xdfe" if word == "TEXT" else os.fsencode(word) for word in words],
        env=environment(world.folder / "home"),
        capture_output=True,
        timeout=300,
    )
    assert done.returncode == 2 and b"not UTF-8 text" in done.stderr and done.stdout == b""


def test_files_with_a_byte_order_mark_are_built_and_run(world):
    mark = "\ufeff"
    with Server([calls(("names", {})), say("Fine.")]) as server:
        world.build(provider(server), tools=mark + TOOLS)
        assert world.ask("go") == (0, "Fine.\n", "")

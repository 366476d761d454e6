"""An agent on the CPython of a 32-bit Raspberry Pi, emulated: the console, approvals, memory and
the wire.  Its image is built here, as for a device.
"""

import json
import subprocess

import arm32
import pytest
from agents import Agent, environment, linux, tool_call
from memory_operator import Operator
from run_core_micropython import ROOT

# What a 32-bit word could break: numbers, lengths and times, of the codecs and of the session.
WIRE = ("test_cbor", "test_json", "test_frame", "test_instant", "test_line", "test_sse")
CORE = """\
import sys, traceback
sys.print_exception = traceback.print_exception
sys.path[:0] = [%r, %r]
import micropython_runner
for name in sys.argv[1:]:
    micropython_runner.main([name], lambda test: test())
"""


@pytest.fixture(scope="module")
def python32():
    words = arm32.words()
    if not words:
        pytest.skip("no emulator with a 32-bit Python: make arm32 fetches both")
    return words


@pytest.fixture
def start(python32, tmp_path):
    def found(*arguments, kind=Agent, **more):
        words = [*python32, *linux(*arguments)[1:]]
        return kind(words, tmp_path, env=arm32.environment(), **more)

    return found


def test_it_is_a_python_of_32_bits(python32, tmp_path):
    code = "import platform, sys; print(sys.maxsize, platform.machine())"
    said = subprocess.run(
        [*python32, "-c", code],
        env=environment(tmp_path, **arm32.environment()),
        capture_output=True,
        text=True,
    )
    assert said.stdout.split() == [str(2**31 - 1), "armv7l"], said.stderr


def test_a_conversation_with_an_approval(start, greenhouse_image):
    with start("run", greenhouse_image, terminal=True) as agent:
        assert agent.expect("> ") == "g 1.0.0 is ready. /help lists the commands.\n"
        agent.line("water the plants for 1 seconds")
        assert "Approve water(seconds=1)?" in agent.expect("[y/N] ")
        agent.line("y")
        assert agent.expect("\n> ") == "y\nWatered for 1 s."
        agent.line("water the plants")
        agent.expect("[y/N] ")
        agent.line("n")
        assert agent.expect("\n> ").endswith("water: not approved: the person said no")
        agent.end()
        assert agent.wait() == 0 and agent.errors() == ""


def test_requests_on_a_pipe(start, greenhouse_image):
    with start("serve", greenhouse_image, "--stdio") as agent:
        agent.initialize()
        agent.line(json.dumps(dict(tool_call("water", {"seconds": 2**31}, 1), id=2**31)))
        answer = agent.message()
        assert answer["id"] == 2**31 and answer["error"]["code"] == -32602
        agent.line('{"jsonrpc":"2.0","id":1,"method":"nope",}')
        assert agent.message()["error"]["code"] == -32700


def test_memory_outlives_the_process(start, tmp_path):
    from clawlite.host.builder.build import build_beside

    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "claw.yaml").write_bytes((ROOT / "tests/golden/memory/claw.yaml").read_bytes())
    (folder / "clawlite.toml").write_text('reflex = "reflex.toml"\n')
    (folder / "reflex.toml").write_text('[[rule]]\nwhen = "x"\nsay = "y"\n')
    image = build_beside(str(folder))
    with start("serve", image, "--stdio", kind=Operator) as operator:
        operator.boot()
        for number, text in enumerate(("the pump is blue", "grüne Bohnen"), 1):
            assert operator.put("notes", text, number)["result"]["stored"]
        operator.process.kill()
    with start("serve", image, "--stdio", kind=Operator) as operator:
        operator.boot()
        assert operator.all("notes") == ["the pump is blue", "grüne Bohnen"]
        found = operator.ask(
            "claw.memory.query",
            store="notes",
            query={"type": "semantic", "text": "Bohnen"},
        )
        assert [one["content"] for one in found["result"]["entries"]] == ["grüne Bohnen"]


def test_the_wire_on_32_bits(python32, tmp_path):
    code = CORE % (str(ROOT / "tests" / "helpers"), str(ROOT / "tests/core"))
    done = subprocess.run(
        [*python32, "-c", code, *WIRE],
        env=environment(tmp_path, **arm32.environment()),
        capture_output=True,
        text=True,
    )
    counts = [line.split() for line in done.stdout.splitlines() if line.startswith("@module ")]
    assert [(name, failed) for _, name, _, failed in counts] == [(name, "0") for name in WIRE], (
        done.stdout + done.stderr
    )
    assert all(int(passed) > 1 for _, _, passed, _ in counts)

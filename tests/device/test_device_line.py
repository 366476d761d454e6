"""The reliable line on a board's console: real MicroPython on a terminal, with noise, and people
beside it.
"""

import json
import signal
import tty

import pytest
from agents import INITIALIZE, Agent, board, tool_call
from line_host import SEED, Host

from clawlite.core.line.frame import RECORD
from clawlite.core.line.line import DOWN, UP
from clawlite.host.builder.build import build_beside

CLAW = """claw: "0.3.0"
kind: Claw
metadata: { name: liner, version: "1.0.0" }
spec:
  identity: { inline: { personality: "You are brief.", autonomy: autonomous } }
  providers: [{ inline: { name: rules, protocol: custom, endpoint: "builtin:reflex", model: m, auth: { type: none } } }]
  sandbox: { inline: { level: none } }
  policies: [{ inline: { rules: [{ id: all, action: allow, scope: all }] } }]
"""  # noqa: E501
TOOLS = '''def echo(text: str) -> dict:
    """Say it again."""
    return {"text": text}

def flood(count: int) -> str:
    """Say much."""
    return "y" * count
'''


@pytest.fixture
def agent(micropython, tmp_path):
    """Return a board whose console is a raw terminal."""
    (tmp_path / "claw.yaml").write_text(CLAW)
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "clawlite.toml").write_text('reflex = "reflex.toml"\n')
    (tmp_path / "reflex.toml").write_text(
        '[[rule]]\nwhen = "say {what:text}"\ncall = "echo"\n'
        'arguments = { text = "{what}" }\nsay = "Well,"\n'
        '  [[rule.then]]\n  say = "I said {text}."\n'
    )
    words, env = board(build_beside(str(tmp_path)))
    with Agent(words, tmp_path / "home", True, env=env) as started:
        tty.setraw(started.theirs)
        started.terminal = False  # of its line ends nothing is made
        yield started


def opened(agent, odds: int = 0) -> Host:
    """Return the host's end, its session open."""
    print("CLAWLITE_SEED=%d" % SEED)
    host = Host(agent.input, odds)
    host.run(lambda: b"is ready" in host.text and host.text.endswith(b"> "))
    host.open()
    return host


def _result(answer: dict) -> dict:
    assert "result" in answer, answer
    return answer["result"]


@pytest.mark.parametrize("odds", [0, 1000])
def test_people_and_an_operator_share_a_reliable_line(agent, odds):
    host = opened(agent, odds)
    host.type("say grün")
    if not odds:  # noise hits what is for people, too
        host.expect("Well,\nI said grün.\n> ".encode())
    host.send({"jsonrpc": "2.0", "id": "i", "method": "claw.initialize", "params": INITIALIZE})
    assert host.answer("i")["result"]["protocolVersion"] == "0.2.0"
    for number in range(1, 13):
        host.send(tool_call("echo", {"text": "x" * 40 * number}, number, "liner"))
    for number in range(1, 13):
        assert json.loads(_result(host.answer(number))["content"][0]["text"]) == {
            "text": "x" * 40 * number
        }
    assert len(host.of(RECORD)) == 13 and not host.of(DOWN) and len(host.of(UP)) == 1


def test_what_a_record_cannot_hold_is_an_error(agent):
    host = opened(agent)
    host.send({"jsonrpc": "2.0", "id": "i", "method": "claw.initialize", "params": INITIALIZE})
    host.send(tool_call("echo", {"text": "x" * 9000}, 1, "liner"))
    host.run(lambda: any(b"at most 8192 bytes" in data for data in host.of(RECORD)))
    host.send(tool_call("flood", {"count": 16000}, 2, "liner"))
    assert len(_result(host.answer(2))["content"][0]["text"]) == 16000


def test_a_plain_terminal_works_before_between_and_after_sessions(agent):
    agent.expect("> ")
    agent.line("say one")
    agent.expect("I said one.\n> ")
    for _ in range(2):
        host = Host(agent.input)
        host.open()
        host.type("say two")
        host.expect(b"I said two.\n> ")
        host.line.close(host.now())
        host.write(host.line.output())
        agent.line("say three")
        agent.expect("I said three.\n> ")
    agent.record({"jsonrpc": "2.0", "id": 1, "method": "claw.initialize", "params": INITIALIZE})
    agent.expect('"protocolVersion"')


def test_a_host_that_is_gone_without_a_word_leaves_no_deaf_board(agent):
    host = opened(agent)
    for _ in range(3):
        agent.line("say hello")  # somebody opened a plain terminal
    agent.line("say again")
    agent.expect("I said again.")
    assert "I said hello" not in agent.text()
    host.open()  # the host is back, and its session a new one
    host.type("say back")
    host.expect(b"I said back.")


def test_text_between_frames_is_noise_and_ends_nothing(agent):
    """Damaged frames may end as lines; a long record has many frames, and one line behind each
    is no person who types.
    """
    host = opened(agent)
    write = host.write
    host.write = lambda data: write(data + b"open the valve\n")
    host.send({"jsonrpc": "2.0", "id": 9, "method": "claw.status", "params": {"pad": "x" * 6000}})
    assert host.answer(9)["id"] == 9 and host.of(DOWN) == []
    host.write = write
    assert b"I have no rule for that" not in host.text, (
        "a piece of noise was taken for a person's line"
    )
    host.type("say it")
    host.expect(b"I said it.")


def test_a_hello_in_the_middle_of_a_line_is_none_of_it(agent):
    agent.expect("> ")
    agent.send("say ha")
    host = Host(agent.input)
    host.open()
    host.expect(b"I said ha.")


def test_ctrl_c_reaches_the_program_in_a_session(agent):
    host = opened(agent)
    agent.signal_at_rest(signal.SIGINT)  # what a port makes of 0x03
    host.run(lambda: host.of(DOWN) == [b"closed 0"])
    assert agent.wait() == 130


def test_on_a_uart_noise_forges_no_ctrl_c(agent, tmp_path):
    """One 0x03 ends a turn at most, three in a row leave the program."""
    start = "import sys, inside_board; sys.exit(inside_board.run_on_a_uart())"
    words, env = board(tmp_path / "claw.cbor", tmp_path, start=start, inside=True)
    with Agent(words, tmp_path / "uart", True, env=env) as uart:
        tty.setraw(uart.theirs)
        host = opened(uart)
        for stray in (b"\x03", b"\x03x\x03x\x03\n", b"x\x03\x03y\n"):
            host.write(stray)
            host.type("say ha")
            host.expect(b"I said ha.\n> ")
        host.run(lambda: not host.line.waiting)
        host.write(b"\x03\x03\x03")
        host.run(lambda: host.of(DOWN) == [b"closed 0"])
        assert uart.wait() == 130

"""The short ways of an operator's shell give what the pipeline gives: the same answers, and the
same log.
"""

import json
import os
from random import Random

import pytest

from clawlite.core.line.frame import Framer
from clawlite.host.bench import agent as bench_agent
from clawlite.host.compiler import compiler
from clawlite.host.manifest import manifest
from clawlite.linux.files.files import open_image
from clawlite.linux.io.jsontext import loads
from clawlite.linux.io.stdio import MAX_LINE, Wire
from clawlite.linux.runtime.optional_parts import prepare
from clawlite.linux.runtime.shell import Shell
from clawlite.protocols.session.group_session import GroupSession

ECHO = """

def _echo(text):
    if text == "raise":
        raise ValueError("no")
    if text == "exit":
        raise SystemExit(3)
    kinds = {"dict": {"a": [1, None]}, "none": None, "half": "\\\\ud800", "long": "\\u20ac" * 40000, "number": 1.5, "bytes": b"x"}
    return kinds.get(text, text)
"""  # noqa: E501


@pytest.fixture
def image(tmp_path):
    folder = tmp_path / "agent"
    folder.mkdir()
    bench_agent.write(str(folder))
    source = (folder / "tools.py").read_text()
    body = (
        'def echo(text: str, count: int = 1, loud: bool = False) -> str:\n    """Give the '
        'text back."""\n    return '
    )
    assert source.count(body + "text") == 1
    (folder / "tools.py").write_text(
        source.replace(body + "text", body + "_echo(text)") + ECHO.replace("\\\\", "\\")
    )
    (folder / "agent.cbor").write_bytes(compiler.build(manifest.load(str(folder))).data)
    return folder / "agent.cbor"


class Line:
    """A shell over two pipes; *straight* False: it has no short ways."""

    def __init__(self, image, state, straight: bool, monkeypatch):
        monkeypatch.setenv("CLAWLITE_STATE", str(state))
        self.log = state / "bench" / "log.jsonl"
        self.straight = straight
        ends, self._fds = os.pipe(), os.pipe()
        self.to, self.come = ends[1], self._fds[0]
        self.wire = Wire(ends[0], self._fds[1])
        self.shell = Shell(
            open_image(str(image), prepare),
            str(image.parent),
            True,
            None,
            (self.wire, Framer(MAX_LINE, True)),
        )
        if not straight:
            agent = self.shell.agent
            agent._run_tool, agent.emit = None, agent.effects.append
            self.shell.session = GroupSession(agent, loads)
        self.shell.start()
        self.said = b""

    def feed(self, data: bytes):
        if self.straight:
            os.write(self.to, data)
            self.shell.step()
        else:
            self.shell.framer.feed(data)
            self.shell.take()
        self.shell.settle()
        self.wire.flush(0)
        os.set_blocking(self.come, False)
        while True:
            try:
                part = os.read(self.come, 65536)
            except BlockingIOError:
                if not self.wire._waiting:
                    break
                self.wire.flush(0)
                continue
            self.said += part

    def answers(self) -> list:
        return [json.loads(line) for line in self.said.splitlines()]

    def events(self) -> list:
        self.shell.log.flush()
        found = [json.loads(line) for line in self.log.read_text().splitlines()]
        for event in found:
            assert event.pop("duration_ms", 0) >= 0 and event.pop("timestamp")
        return [list(event.items()) for event in found]

    def close(self):
        self.shell.leave()


def call(number: int, arguments, name: str = "echo", **context) -> dict:
    return {
        "jsonrpc": "2.0",
        "id": number,
        "method": "claw.tool.call",
        "params": {
            "name": name,
            "arguments": arguments,
            "context": dict(
                {"request_id": bench_agent.UUID % number, "identity": "bench"}, **context
            ),
        },
    }


def lines() -> list:
    """Return records that take every way, each as bytes with its end."""
    found = [
        call(number, {"text": text})
        for number, text in enumerate(
            [
                "plain",
                'quo"te \\ \n',
                "\u20ac",
                "raise",
                "exit",
                "dict",
                "none",
                "half",
                "long",
                "number",
                "bytes",
                "x" * 2000,
                "12:30 {[",
                "",
            ],
            1,
        )
    ]
    found += [
        call(1, {"text": "plain"}),
        call(1, {"text": "other"}),
        call(4, {"text": "raise"}),
        call(4, {"text": "raise"}, identity="y"),
    ]
    found += [
        call(31, {}),
        call(32, {"text": 1}),
        call(33, {"text": "a", "count": 1.0}),
        call(34, {"text": "a", "count": 101}),
        call(35, {"text": "a", "more": 1}),
        call(36, {"text": "a"}, "nobody"),
        call(37, {"text": "a"}, "exact_0_1"),
        call(38, {"text": "a"}, "hint-0"),
        call(39, {"path": "notes/a"}, "files-0"),
        call(40, {"text": "a"}, policy="bench"),
        call(41, {"text": "a"}, policy="no"),
        call(42, {"text": "a"}, sandbox="in-process"),
        call(43, {"text": "a"}, sandbox="other"),
        call(44, []),
        call(45, {"text": "a"}, request_id="x"),
        [call(46, {"text": "a"}), call(47, {"text": "b"}), call(46, {"text": "a"})],
        dict(call(48, {"text": "a"}), id="s"),
        dict(call(49, {"text": "a"}), id=None),
        {"jsonrpc": "2.0", "method": "claw.tool.call"},
        {"jsonrpc": "2.0", "id": 50, "method": "claw.status"},
    ]
    data = [json.dumps(record).encode() + b"\n" for record in found]
    data += [
        b"\n",
        b"{\n",
        b"\x1e" + data[0],
        data[1][:-1] + b"\r\n",
        b'{"id":1,"id":2}\n',
        b'{"jsonrpc":"2.0","id":NaN}\n',
        b"[" * 40 + b"\n",
    ]
    return data


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_answers_and_log_are_those_of_the_pipeline(image, tmp_path, monkeypatch, seed):
    random = Random(seed)
    data = lines()
    if seed > 1:
        random.shuffle(data)
    data = bench_agent.opening() + b"".join(data)
    both = [Line(image, tmp_path / "a", True, monkeypatch)]
    both[0].shell.log.check()
    both.append(Line(image, tmp_path / "b", False, monkeypatch))
    cuts = (
        [0, len(data)]
        if seed == 1
        else sorted({0, len(data)} | {random.randrange(len(data)) for _ in range(60)})
    )
    for at, end in zip(cuts, cuts[1:]):
        for line in both:
            for piece in range(at, end, 30000):
                line.feed(data[piece : min(end, piece + 30000)])
    answers, events = [line.answers() for line in both], [line.events() for line in both]
    for line in both:
        line.close()
    for answer in answers[0] + answers[1]:
        if answer and isinstance(answer, dict) and "uptime_ms" in answer.get("result", ()):
            answer["result"]["uptime_ms"] = 0
    for number in (0, 1):  # those of a batch come in any order
        answers[number] = [
            sorted(map(json.dumps, answer)) if isinstance(answer, list) else answer
            for answer in answers[number]
        ]
    assert answers[0] == answers[1] and len(answers[0]) > 40
    assert (
        sorted(map(json.dumps, events[0])) == sorted(map(json.dumps, events[1]))
        and len([event for event in events[0] if event[0] == ("event", "tool.call")]) > 25
    )


def test_a_call_queues_no_effect(image, tmp_path, monkeypatch):
    """Its handler, its log and its answer are each carried out at once."""
    line = Line(image, tmp_path / "a", True, monkeypatch)
    line.feed(bench_agent.opening())
    monkeypatch.setattr(line.shell, "settle", None)  # what the queue is for
    for number in range(3):
        line.shell.fast_path.feed(json.dumps(call(number, {"text": "plain"})).encode() + b"\n")
    assert not line.shell.agent.effects
    monkeypatch.undo()
    line.feed(b"\n")
    assert [answer["result"]["content"][0]["text"] for answer in line.answers()[2:]] == [
        "plain"
    ] * 3
    line.close()


def _wanting(image, wants: str):
    """Return *image*, built anew with a policy that has the line *wants* too."""
    policy = image.parent / "policy.yaml"
    rules = policy.read_text().partition("  rules:")[2]
    head = policy.read_text().partition("spec:")[0]
    policy.write_text(head + "spec:\n  " + wants + "\n  rules:" + rules)
    image.write_bytes(compiler.build(manifest.load(str(image.parent))).data)
    return image


def test_an_audit_is_written_before_the_answer(image, tmp_path, monkeypatch):
    _wanting(image, "audit: { destination: file, log_outputs: true }")
    line = Line(image, tmp_path / "a", True, monkeypatch)
    line.feed(bench_agent.opening())
    records = tmp_path / "a" / "bench" / "audit.jsonl"
    line.feed(json.dumps(call(1, {"text": "plain"})).encode() + b"\n")
    assert line.answers()[-1]["result"]["content"][0]["text"] == "plain"
    written = [json.loads(record) for record in records.read_text().splitlines()]
    assert [(one["event"], one["tool"], one["output"]) for one in written] == [
        ("tool.call", "echo", "plain")
    ]
    assert "output" not in dict(line.events()[-1]), "for the audit alone"
    monkeypatch.setattr(line.shell.audit._store, "append", _full)
    line.feed(json.dumps(call(2, {"text": "unheard"})).encode() + b"\n")
    assert "error" in line.answers()[-1] and b"unheard" not in line.said
    line.close()


def _full(*_):
    raise OSError(28, "no space left")

"""Copies of an audit (clawlite/linux/audit/forwarding.py, linux/audit/receivers.py): on disk
until somebody took them, again after a start, in order.
"""

import http.server
import json
import os
import re
import socket
import threading

import pytest
from agents import DEADLINE_S, UUID, Agent, clawlite, eventually, linux

from clawlite.linux.audit import files, forwarding
from clawlite.linux.audit.chain import line, verify
from clawlite.linux.audit.receivers import Syslog, message, webhook

NOW = 1800000000
MANIFEST = """
claw: "0.3.0"
kind: Claw
metadata: { name: copied, version: "1.0.0" }
spec:
  identity: { inline: { personality: "x", autonomy: autonomous } }
  providers: [ { inline: { protocol: custom, endpoint: "builtin:replay", model: none, auth: { type: none } } } ]
  tools: [ { inline: { name: add, description: "Add.", input_schema: { type: object } } } ]
  sandbox: { inline: { level: none } }
  policies: [ { inline: { rules: [ { id: all, action: allow, scope: all } ], audit: { destination: %s, retention: "30d" } } } ]
"""  # noqa: E501


def _project(folder, destination: str, settings: str):
    folder.mkdir(exist_ok=True)
    (folder / "claw.yaml").write_text(MANIFEST % destination)
    (folder / "tools.py").write_text('def add() -> str:\n    """Add."""\n    return "added"\n')
    (folder / "r.jsonl").write_text('{"user": null}\n{"say": "ok"}\n')
    (folder / "clawlite.toml").write_text('replay = "r.jsonl"\n' + settings)
    return folder


def _store(folder, *counts, taken=None, kept_s=None, now=NOW):
    """Append records to the audit in *folder*, so many at a time."""
    store = files.FileStore(str(folder), "a", kept_s, taken)
    for count in counts:
        store.append(
            lambda head: b"".join(
                line(head, {"event": "e", "time": "t"}, str) for _ in range(count)
            ),
            now,
        )
    store.close()


class Receiver:
    """Takes copies, but for the next ``fails`` batches."""

    def __init__(self, fails=0):
        self.fails, self.batches = fails, []

    def __call__(self, batch):
        if self.fails:
            self.fails -= 1
            raise OSError("not now")
        self.batches.append(batch)

    @property
    def numbers(self):
        return [n for batch in self.batches for n, _, _ in batch]


def _sent(folder, receiver) -> list:
    """Let a sender send all that waits, and return the numbers that *receiver* got by now."""
    sender = forwarding.Sender(str(folder), receiver)
    sender.ring()
    sender.close()
    return receiver.numbers


def test_what_was_taken_is_not_sent_again_and_the_rest_is(tmp_path):
    receiver = Receiver()
    _store(tmp_path, 3)
    assert _sent(tmp_path, receiver) == [1, 2, 3]
    assert _sent(tmp_path, receiver) == [1, 2, 3], "nothing new"
    _store(tmp_path, 250)
    assert (
        _sent(tmp_path, receiver) == list(range(1, 254))
        and max(map(len, receiver.batches)) == forwarding.MOST
    )
    assert (
        forwarding.read_mark(str(tmp_path))[0] == 253
        and (tmp_path / "audit.sent").stat().st_mode & 0o077 == 0
    )
    lines, head, _ = files.read(str(tmp_path))
    n, hash, _ = receiver.batches[-1][-1]
    assert verify(lines, head, "a", (n, hash))["ok"], "a copy's hash is an anchor"


def test_what_was_not_taken_waits_for_the_next_start(tmp_path):
    _store(tmp_path, 5)
    assert _sent(tmp_path, Receiver(fails=1000)) == [] and forwarding.read_mark(str(tmp_path)) == (
        0,
        "-",
    )
    assert _sent(tmp_path, Receiver()) == [1, 2, 3, 4, 5]


def test_a_failure_is_tried_again_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr(forwarding, "FIRST_S", 0.01)
    receiver = Receiver(fails=3)
    _store(tmp_path, 2)
    sender = forwarding.Sender(str(tmp_path), receiver)
    sender.ring()
    eventually(lambda: receiver.numbers == [1, 2])
    _store(tmp_path, 1)
    sender.ring()
    eventually(lambda: receiver.numbers == [1, 2, 3])
    sender.close()


def test_a_receiver_that_takes_few_at_once_gets_them_all(tmp_path, monkeypatch):
    """Web servers refuse a body that is too long (413), 100 KB of it by default in some."""
    monkeypatch.setattr(forwarding, "FIRST_S", 0.001)
    monkeypatch.setattr(forwarding, "LONGEST_S", 0.001)
    receiver = Receiver()

    def deliver(batch):
        if len(batch) > 7:
            raise OSError("413")
        receiver(batch)

    _store(tmp_path, 120)
    sender = forwarding.Sender(str(tmp_path), deliver)
    sender.ring()
    eventually(lambda: len(receiver.numbers) == 120)
    sender.close()
    assert receiver.numbers == list(range(1, 121))


def test_over_segments_and_while_one_is_begun(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "SEGMENT", 600)
    receiver = Receiver()
    sender = forwarding.Sender(str(tmp_path), receiver)
    for number in range(1, 41):
        _store(tmp_path, 1)
        sender.ring()
        if number % 7 == 0:
            eventually(lambda: receiver.numbers[-1:] == [number])
    sender.close()
    assert receiver.numbers == list(range(1, 41)) and len(files.segments(str(tmp_path))) > 4


def test_what_is_written_while_a_segment_is_left_is_sent_too(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "SEGMENT", 600)
    at_rest, left = forwarding._at_rest, list(range(20))

    def late(folder):  # the last moment before nobody may write
        if left:
            _store(tmp_path, 1 + left.pop() % 4)
        return at_rest(folder)

    monkeypatch.setattr(forwarding, "_at_rest", late)
    _store(tmp_path, 1)
    receiver = Receiver()
    while left:
        _sent(tmp_path, receiver)
    last = _sent(tmp_path, receiver)
    assert (
        last == list(range(1, last[-1] + 1))
        and last[-1] == 51
        and len(files.segments(str(tmp_path))) > 10
    )


def test_a_segment_that_is_gone_or_a_damaged_line_stops_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "SEGMENT", 600)
    for _ in range(20):
        _store(tmp_path, 1)
    paths = files.segments(str(tmp_path))
    os.unlink(paths[2])
    text = open(paths[3], "rb").read()
    open(paths[3], "wb").write(b"damaged\n" + text)
    numbers = _sent(tmp_path, Receiver())
    assert (
        numbers[-1] == 20
        and numbers[0] == 1
        and numbers == sorted(set(numbers))
        and 10 < len(numbers) < 20
    )


def test_retention_keeps_what_was_not_taken(tmp_path):
    day = 86400
    for taken, left in ((lambda: 0, 4), (lambda: 2, 2), (None, 1)):
        for number in range(5):
            _store(tmp_path / str(left), 1, taken=taken, kept_s=day, now=NOW + number * day * 3)
            os.utime(tmp_path / str(left) / "audit.jsonl", (NOW + number * day * 3,) * 2)
        found = verify(*files.read(str(tmp_path / str(left)))[:2], "a")
        assert found["ok"] and found["records"] >= left, (left, found)
        assert (taken is None) == (found["first"] > 3) and (found["first"] == 1) == (left == 4), (
            left,
            found,
        )


def test_an_audit_that_was_begun_anew_is_sent_from_its_beginning(tmp_path):
    _store(tmp_path, 8)
    assert len(_sent(tmp_path, Receiver())) == 8
    os.unlink(tmp_path / "audit.jsonl"), os.unlink(tmp_path / "audit.head")
    _store(tmp_path, 3)
    assert _sent(tmp_path, Receiver()) == [1, 2, 3]


def test_what_the_head_does_not_cover_stays_here(tmp_path):
    _store(tmp_path, 2)
    # a write that was not acknowledged, and a half one
    with open(tmp_path / "audit.jsonl", "ab") as file:
        file.write(b'{"n":3,"prev":"x","event":"e"}\n{"n":4,')
    assert _sent(tmp_path, Receiver()) == [1, 2]


def test_of_two_one_sends(tmp_path):
    _store(tmp_path, 4)
    one, two = Receiver(), Receiver()
    first = forwarding.Sender(str(tmp_path), one)
    first.ring()
    eventually(lambda: one.numbers == [1, 2, 3, 4])
    assert _sent(tmp_path, two) == []
    first.close()
    _store(tmp_path, 1)
    assert _sent(tmp_path, two) == [5]


# -- syslog

_MESSAGE = re.compile(
    rb"<(\d{1,3})>1 (\S+) ([!-~]{1,255}) clawlite (\d+) ([!-~]{1,32}) "
    rb'\[clawlite@32473 agent="((?:[^"\]\\]|\\["\]\\])*)" n="(\d+)" '
    rb'hash="(\S+)"\] (.*)',
    re.S,
)


def test_a_message_is_one_of_rfc_5424():
    found = _MESSAGE.fullmatch(
        message(
            'a"b]c\\',
            7,
            "f" * 64,
            b'{"n":7,"time":"2026-11-22T02:30:49Z","event":"tool.call","status":"ok"}',
        )
    )
    assert (
        found
        and found[1] == b"110"
        and found[2] == b"2026-11-22T02:30:49Z"
        and found[5] == b"tool.call"
        and found[6] == b'a\\"b\\]c\\\\'
        and found[7] == b"7"
    )
    assert (
        _MESSAGE.fullmatch(message("a", 8, "f", b'{"event":"a b\\n","status":"refused"}'))[1]
        == b"108"
    ), "a warning"
    assert (
        _MESSAGE.fullmatch(
            message("a", 8, "f", b'{"event":"tool.call","status":"ok","found":["injection"]}')
        )[1]
        == b"108"
    )


@pytest.mark.parametrize("kind", ["unix", "udp"])
def test_a_record_reaches_a_syslog_and_a_long_one_without_what_is_long(kind, tmp_path):
    with socket.socket(
        socket.AF_UNIX if kind == "unix" else socket.AF_INET, socket.SOCK_DGRAM
    ) as ours:
        ours.bind(str(tmp_path / "log") if kind == "unix" else ("127.0.0.1", 0))
        ours.settimeout(DEADLINE_S)
        send = Syslog(
            str(tmp_path / "log")
            if kind == "unix"
            else "udp://127.0.0.1:%d" % ours.getsockname()[1],
            "a",
        )
        long = json.dumps(
            {"n": 2, "event": "tool.call", "arguments": "x" * 900000, "status": "ok"}
        ).encode()
        send([(1, "e" * 64, b'{"n":1,"event":"tool.call"}'), (2, "f" * 64, long)])
        first, second = (_MESSAGE.fullmatch(ours.recv(1000000)) for _ in range(2))
        assert first[9] == b'{"n":1,"event":"tool.call"}'
        assert (
            json.loads(second[9]) == {"n": 2, "event": "tool.call", "status": "ok", "cut": True}
            and second[8] == b"f" * 64
        )


def test_a_syslog_that_is_not_there_takes_nothing(tmp_path):
    _store(tmp_path, 1)
    assert _sent(tmp_path, Receiver(0)) == [1]
    with pytest.raises(OSError):
        Syslog(str(tmp_path / "none"), "a")([(1, "e", b"{}")])


# -- all of it


class Server:
    """A webhook that answers with *status* and keeps what it was sent."""

    def __init__(self):
        self.status, self.got, server = 200, [], self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.got.append((server.status, self.headers.get("Authorization"), body))
                self.send_response(server.status)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d/audit" % self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def taken(self) -> list:
        return [
            one["record"]["n"]
            for status, _, body in self.got
            if status == 200
            for one in body["records"]
        ]

    def close(self):
        self.http.shutdown()
        self.http.server_close()


def _call(agent, number: int):
    return agent.call(
        "claw.tool.call",
        {
            "name": "add",
            "arguments": {},
            "context": {"request_id": UUID % number, "identity": "copied"},
        },
        number,
    )


def test_a_webhook_gets_each_record_also_after_kill_9(tmp_path):
    server = Server()
    try:
        folder = _project(
            tmp_path / "p", "webhook", '[audit]\nwebhook = "%s"\ncredential = "HOOK"\n' % server.url
        )
        done = clawlite("build", cwd=folder)
        assert done.returncode == 0, done.stderr
        words, home = linux("serve", folder / "claw.cbor", "--stdio"), tmp_path / "home"
        server.status = 503
        with Agent(words, home, env={"HOOK": "a long enough value"}) as agent:
            agent.initialize()
            assert "result" in _call(agent, 1)
            eventually(lambda: server.got)
        assert server.taken() == [] and server.got[0][1] == "Bearer a long enough value"
        shown = clawlite("audit", "verify", "--json", cwd=folder, CLAWLITE_STATE=home / "state")
        found = json.loads(shown.stdout)
        assert found["ok"] and found["sent"] == 0 and found["sent_to"] == server.url, shown.stderr
        server.status = 200
        with Agent(words, home, env={"HOOK": "a long enough value"}) as agent:
            agent.initialize()
            assert "result" in _call(agent, 2)
            eventually(lambda: len(server.taken()) >= found["records"] + 1)
        assert server.taken()[:2] == [1, 2]
        shown = clawlite("audit", "verify", cwd=folder, CLAWLITE_STATE=home / "state")
        assert shown.returncode == 0 and "were taken by " + server.url in shown.stdout, shown.stderr
        with pytest.raises(Exception, match="answered 500"):
            server.status = 500
            webhook(server.url, "", "a")([(1, "e", b"{}")])
    finally:
        server.close()


@pytest.mark.parametrize(
    "destination, settings, words",
    [
        ("webhook", "", "nothing says where that is"),
        ("webhook", '[audit]\nwebhook = "ftp://x"\n', "an http or https URL"),
        (
            "webhook",
            '[audit]\nwebhook = "http://x.example.com/"\ncredential = "A"\n',
            "over https alone",
        ),
        ("file", '[audit]\ncredential = "A"\n', "there is none"),
        ("syslog", '[audit]\nsyslog = "tcp://x"\n', "udp://HOST:PORT"),
        ("syslog", '[audit]\nsyslog = "udp://x:0:1"\n', "udp://HOST:PORT"),
        ("syslog", '[audit]\nsyslog = "udp://x/y"\n', "udp://HOST:PORT"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, destination, settings, words):
    done = clawlite("build", cwd=_project(tmp_path / "p", destination, settings))
    assert done.returncode == 2 and words in done.stderr, done.stderr


def test_an_agent_writes_to_a_syslog(tmp_path):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ours:
        ours.bind(("127.0.0.1", 0))
        ours.settimeout(DEADLINE_S)
        folder = _project(
            tmp_path / "p",
            "syslog",
            '[audit]\nsyslog = "udp://127.0.0.1:%d"\n' % ours.getsockname()[1],
        )
        done = clawlite("build", cwd=folder)
        assert done.returncode == 0, done.stderr
        with Agent(linux("serve", folder / "claw.cbor", "--stdio"), tmp_path / "home") as agent:
            agent.initialize()
            assert "result" in _call(agent, 1)
            assert _MESSAGE.fullmatch(ours.recv(65536))[6] == b"copied"

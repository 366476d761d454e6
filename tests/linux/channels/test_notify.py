"""Notices that a call waits (linux/approvals/notify.py), at a real HTTP server."""

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from channel_world import World

from clawlite.core.policy.approval import Approval
from clawlite.linux.approvals import notify
from clawlite.linux.approvals.notify import Notify

CONSOLE = {
    "c": {
        "type": "cli",
        "transport": "stdio",
        "access_control": {"mode": "allowlist", "allowed_ids": ["ana"]},
    }
}
BODY = "{agent}: {tool}, {who}, {seconds}, {link}"


class Server:
    """``with Server([status, ...]) as server``: it answers with these, then with 200.

    got  [(path, headers, body)]
    """

    def __init__(self, answers=()):
        self.got, self._answers, self.changed = [], list(answers), threading.Condition()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with outer.changed:
                    outer.got.append((self.path, dict(self.headers), body.decode()))
                    status = outer._answers.pop(0) if outer._answers else 200
                    outer.changed.notify_all()
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                """Nothing is printed."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = "http://127.0.0.1:%d/garden" % self._server.server_address[1]

    def __enter__(self):
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def until(self, count: int):
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.got) == count, 60), self.got


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET", "x")
    with contextlib.closing(World(tmp_path, CONSOLE, console=True).channels) as channels:
        yield channels


def waiting(asker: str = "") -> Approval:
    one = Approval(type("Tool", (), {"name": 'wa"ter'})(), {"seconds": 3}, None)
    one.asker = asker
    return one


def test_a_call_that_waits_is_told_once_to_ntfy(tmp_path, monkeypatch):
    monkeypatch.setenv("NTFY", "tk_1")
    with Server() as server:
        settings = (
            '[approvals.notify]\nurl = "%s"\ncredential = "NTFY"\nlink = "https://claw.example/"\n'
            % server.url
        )
        world = World(tmp_path, CONSOLE, settings, console=True)
        with contextlib.closing(world.channels):
            world.console.line("careful", world.ms)
            world.settle()
            world.settle()
            server.until(1)
    ((path, headers, body),) = server.got
    assert path == "/garden" and headers["Authorization"] == "Bearer tk_1"
    assert headers["Click"] == "https://claw.example/"
    assert headers["Content-Type"] == "text/plain; charset=utf-8"
    assert body == (
        "channelled: careful waits 60 s for approval. Asked for by the console. "
        "https://claw.example/"
    )


def test_words_in_a_json_body_are_parts_of_its_strings(world):
    with Server() as server:
        body = '{"content": "{agent} {tool} {who}", "n": {"deep": "{seconds}"}}'
        one = Notify(world.agent, [server.url, body, None, "https://x/"])
        one.tell(waiting('bot/"7"\n'))
        server.until(1)
        one.close()
    (_, headers, text) = server.got[0]
    assert json.loads(text) == {
        "content": 'channelled wa"ter bot/"7"\n',
        "n": {"deep": "300"},
    }
    assert headers["Content-Type"] == "application/json" and "Click" not in headers
    assert "Authorization" not in headers


def test_what_was_not_taken_is_tried_again_and_then_reported(world, monkeypatch):
    monkeypatch.setattr(notify, "_PAUSES_S", (0, 0))
    with Server([503, 429, 200, 404, 500, 500, 500]) as server:
        one = Notify(world.agent, [server.url, BODY, None, ""])
        one.tell(waiting("rule/dawn"))
        server.until(3)
        one.tell(waiting())
        server.until(4)
        one.tell(waiting())
        server.until(7)
        one.close()
    one.report()
    one.report()
    assert [effect[1]["reason"] for effect in world.agent.effects] == ["HTTP 404", "HTTP 500"]
    assert server.got[0][2] == 'channelled: wa"ter, rule/dawn, 300, '


def test_a_server_that_is_not_there_holds_nothing_up(world, monkeypatch):
    with Server() as server:
        url = server.url
    one = Notify(world.agent, [url, BODY, "NOT_THERE", ""])
    one.tell(waiting())
    one.close()
    one.report()
    assert "NOT_THERE" in world.agent.effects[-1][1]["reason"]

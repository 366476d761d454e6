"""Real agents with channels: what they load, what goes on when nobody is at the console, and how
they end.
"""

import http.client
import json
import signal
import subprocess
import sys
import threading
import time

import pytest
from agents import DEADLINE_S, Agent, environment, eventually, linux
from channel_world import KEY, project, signed
from free_ports import free_port

from clawlite.host.compiler import compiler
from clawlite.host.manifest import manifest

CRON = {"type": "cron", "transport": "polling", "trigger": {"schedule": "0 0 1 1 *"}}
HOOK = {"type": "webhook", "transport": "webhook", "access_control": {"mode": "open"}}
QUICK = "quick"
LOADS = """
import sys
from clawlite.linux.runtime import shell; from clawlite.linux.io import signals
from clawlite.linux.files.files import open_image
sys.stdin.close()
made = shell.Shell(open_image(%r), %r, True, signals.catch())
made.start()
before = set(sys.modules)
made.step()
made.leave()
print("LOADED", *sorted(name for name in before if name.startswith("clawlite.linux.channels.")),
      "/", *sorted(name for name in set(sys.modules) - before if name.startswith("clawlite")), file=sys.stderr)
"""  # noqa: E501


def image(folder, specs: dict, settings: str = ""):
    path = folder / "project" / "claw.cbor"
    (folder / "project").mkdir(exist_ok=True)
    path.write_bytes(compiler.build(project(folder / "project", specs, settings)).data)
    return path


@pytest.mark.parametrize(
    "specs, before, after",
    [
        ({}, [], []),
        (
            {"tick": CRON},
            [
                "channel",
                "channels",
                "overlap",
            ],
            ["cron"],
        ),
    ],
)
def test_nothing_is_loaded_that_is_not_declared(tmp_path, specs, before, after):
    path = image(tmp_path, specs)
    done = subprocess.run(
        [sys.executable, "-c", LOADS % (str(path), str(path.parent))],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=300,
    )
    words = [line for line in done.stderr.splitlines() if line.startswith("LOADED")][0].split()[1:]
    assert sorted(name.rpartition(".")[2] for name in words[: words.index("/")]) == sorted(
        before
    ), done.stderr
    assert set("clawlite.linux.channels." + name for name in after) <= set(
        words[words.index("/") :]
    )
    others = ("webhook", "telegram", "http_server", "mqtt") + (() if specs else ("inbox",))
    assert not [name for name in words if name.endswith(others)]


def _post(port: int, message: dict) -> tuple:
    body = json.dumps(message).encode()
    head, _, body = signed(body).partition(b"\r\n\r\n")
    fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
    connection.request("POST", "/hook", body, fields)
    answer = connection.getresponse()
    said = answer.status, json.loads(answer.read())
    connection.close()
    return said


def test_an_agent_whose_console_has_ended_goes_on_until_it_is_told_to_end(tmp_path):
    port = free_port()
    path = image(tmp_path, {"hook": HOOK}, '[webhook]\naddress = "127.0.0.1:%d"\n' % port)
    with Agent(linux("run", path), tmp_path / "home", env={"SECRET": KEY}) as agent:
        agent.line("echo here")
        agent.expect("You said: here")
        agent.end()
        listens = eventually(lambda: _tried(port))
        assert listens == (200, {"text": "You said: hello"})
        agent.process.send_signal(signal.SIGTERM)
        assert agent.wait() == 143
        assert "Traceback" not in agent.errors()


SLOW = """
import os

def careful():
    \"\"\"Ask first.\"\"\"

def quick():
    \"\"\"Begin, and end when the test says so.\"\"\"
    open(%r, "w").close()
    while not os.path.exists(%r):
        yield 10
    return "done"
"""


@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_an_orderly_end_lets_what_is_under_way_end_and_takes_nothing_new(tmp_path, number, code):
    port, begun, go = free_port(), tmp_path / "begun", tmp_path / "go"
    path = image(tmp_path, {"hook": HOOK}, '[webhook]\naddress = "127.0.0.1:%d"\n' % port)
    (path.parent / "tools.py").write_text(SLOW % (str(begun), str(go)))
    path.write_bytes(compiler.build(manifest.load(path.parent)).data)
    said = []
    with Agent(linux("run", path), tmp_path / "home", env={"SECRET": KEY}) as agent:
        assert eventually(lambda: _tried(port))
        asks = threading.Thread(
            target=lambda: said.append(_post(port, {"from": "7", "text": QUICK}))
        )
        asks.start()
        assert eventually(begun.exists)
        agent.process.send_signal(number)
        refused = eventually(lambda: _refusal(port))
        go.touch()
        asks.join()
        assert said == [(200, {"text": "done"})] and "ends" in refused["error"]
        assert agent.wait() == code


def _refusal(port: int):
    status, answer = _post(port, {"from": "8", "text": "echo %f" % time.monotonic()})
    return answer if status == 503 else None


def _tried(port: int):
    try:
        return _post(port, {"from": "7", "text": "echo hello"})
    except ConnectionRefusedError:
        return None


def test_an_agent_of_a_console_alone_ends_with_its_input(tmp_path):
    with Agent(linux("run", image(tmp_path, {})), tmp_path / "home") as agent:
        agent.end()
        assert agent.wait() in (0, None)

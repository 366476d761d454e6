"""``clawlite top``: what agents use, on a screen of its own or as one table."""

import fcntl
import json
import sqlite3
import struct
import termios
import time

import pytest

from clawlite.linux.monitor import usage_table

USED = {
    "agent": "g",
    "reachable": True,
    "state": "READY",
    "uptime_ms": 7300000,
    "memory_bytes": 13 << 20,
    "calls_last_minute": 4,
    "under_way": 1,
    "waiting": 1,
    "turns": 12,
    "last_turn": {"duration_ms": 900, "status": "error"},
    "tokens": {"read": 12000, "written": 345},
    "cost_usd": 0.126,
    "limits": [
        {"limit": "tokens_per_hour", "max": 100, "used": 20},
        {"limit": "cost_per_day_usd", "max": 1.0, "used": 0.9},
    ],
}


def test_one_table_where_there_is_no_terminal(greenhouse, command):
    greenhouse.line("hello")
    greenhouse.expect("Hello!")
    top = command("top")
    assert top.wait() == 0 and "\x1b" not in top.text() and top.errors() == ""
    head, row = top.text().splitlines()
    assert head.startswith("AGENT  STATE") and "READY" in row and " MiB" in row
    assert row.split()[0] == "g" and row.split()[7] == "1"  # a turn


def test_a_document(greenhouse, command, ada):
    ada.ask("claw.task.create", task_id="a", message={"role": "user", "content": "is it dry"})
    (one,) = json.loads(_text(command("top", "--json")))["agents"]
    assert one["agent"] == "g" and one["reachable"] and one["memory_bytes"] > 1 << 20


def _text(agent) -> str:
    assert agent.wait() == 0, agent.errors()
    return agent.text()


def test_a_screen_that_is_drawn_anew_and_left_as_it_was(greenhouse, command):
    top = command("top", "--interval", "0.2", terminal=True)
    before = top.settings
    top.expect("\x1b[?1049h")
    top.expect("READY")
    greenhouse.line("water the plants for 2 seconds")
    greenhouse.expect("Approve")
    top.expect("\x1b[33m1\x1b[0m")  # one waits for a person
    top.send("q")
    assert top.wait() == 0
    assert top.text().endswith("\x1b[?25h\x1b[?1049l")
    assert termios.tcgetattr(top.theirs)[3] == before[3]


@pytest.mark.parametrize("way, code", [("\x03", 130), ("TERM", 143)])
def test_however_it_ends_the_terminal_is_as_it_was(greenhouse, command, way, code):
    top = command("top", terminal=True)
    before = top.settings
    top.expect("READY")
    top.process.terminate() if way == "TERM" else top.send(way)
    assert top.wait() == code
    assert top.text().endswith("\x1b[?1049l") and "Traceback" not in top.text()
    assert termios.tcgetattr(top.theirs)[3] == before[3]


def test_a_narrow_screen_on_which_an_agent_dies(greenhouse, command):
    sizes = {"COLUMNS": "", "LINES": ""}  # the terminal has them
    top = command("top", "--interval", "0.2", terminal=True, NO_COLOR="1", **sizes)
    top.expect("READY")
    fcntl.ioctl(top.theirs, termios.TIOCSWINSZ, struct.pack("4H", 6, 20, 0, 0))
    top.expect(":\x1b[K")  # the first line is cut behind the minutes
    greenhouse.process.kill()
    top.expect("no socket")
    top.send("q")
    assert top.wait() == 0 and "Traceback" not in top.text()
    last = top.text().rpartition("\x1b[H")[2].partition("\x1b[J")[0]
    lines = last.replace("\x1b[K", "").splitlines()
    assert lines[0].startswith("clawlite top") and max(map(len, lines)) <= 20
    assert "\x1b[3" not in top.text()


@pytest.mark.parametrize("more", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colour(greenhouse, command, more):
    top = command("top", "--once", terminal=True, **more)
    assert "READY" in _text(top) and "\x1b[" not in top.text()


def test_agents_without_a_socket_and_unknown_ones(command, state):
    (state / "quiet").mkdir(parents=True)
    (state / "quiet/log.jsonl").write_text("")
    top = command("top")
    assert "quiet  no socket" in _text(top) and "--socket" in top.errors()
    other = command("top", "--agent", "nobody")
    assert other.wait() == 1 and "here are: quiet" in other.errors()


def test_boards_of_the_gateway(command, state, tmp_path):
    (state / ".gateway").mkdir(parents=True)
    with sqlite3.connect(state / ".gateway/gateway.db") as db:
        db.execute("CREATE TABLE devices(name, agent, image, first_s, last_s)")
        db.execute("CREATE TABLE spent(device, agent, meters)")
        now = int(time.time())
        db.execute("INSERT INTO devices VALUES('bed\x1b[2J', 'g', '1', ?, ?)", (now, now))
        meters = json.dumps({"model": [now // 86400, 1234], ".cost": [now // 86400, 250000000]})
        db.execute("INSERT INTO spent VALUES('bed\x1b[2J', 'g', ?)", (meters,))
    db.close()
    text = _text(command("top"))
    assert "bed\\x1b[2J" in text and "1 234" in text and "$0.25" in text and "\x1b" not in text


def test_what_is_tight_stands_out_and_a_narrow_terminal_loses_whole_cells():
    found = {"agents": [USED], "boards": []}
    _, row = usage_table.lines_of(found, 1000, True)
    assert "\x1b[33m90 % cost_per_day_usd\x1b[0m" in row and "\x1b[31m900 ms\x1b[0m" in row
    assert "12 345" in row and "$0.13" in row and "121 min" not in row and "2 h" in row
    for columns in (1, 10, 40, 80, 120):
        for line in usage_table.lines_of(found, columns, False):
            assert len(line) <= columns and (columns > 9 or line)


def test_a_name_of_a_stranger_drives_no_terminal():
    odd = dict(USED, agent="a\x1b]0;x\x07\nb", state="READY\r\x1b[1A")
    for line in usage_table.lines_of({"agents": [odd], "boards": []}, 1000, False):
        assert line.isprintable()

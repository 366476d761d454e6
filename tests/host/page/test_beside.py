"""The page beside a gateway, with the boards that it has seen, and as a service."""

import json
import re
import signal
import sqlite3

from agents import Agent, clawlite, eventually, linux

from clawlite.host.page.boards import find_boards


def test_a_gateway_starts_a_page_that_ends_with_it(tmp_path):
    words = linux("gateway", "--listen", "127.0.0.1:0", "--page", "127.0.0.1:0")
    with Agent(words, tmp_path, env={"CLAWLITE_STATE": tmp_path / "state"}) as gateway:
        found = eventually(
            lambda: re.search(r"the page is at http://127.0.0.1:(\d+)/\n", gateway.errors())
        )
        assert "nobody may use it yet" in eventually(
            lambda: "nobody" in gateway.errors() and gateway.errors()
        )
        gateway.signal(signal.SIGTERM)
        assert gateway.wait() == 0
        import socket

        with socket.socket() as line:
            assert line.connect_ex(("127.0.0.1", int(found[1])))


def test_boards_are_shown_to_people_of_the_gateway_alone(page, state, tokens, add_person):
    folder = state / ".gateway"
    folder.mkdir()
    ann = {"Authorization": "Bearer " + add_person("ann", "viewer", ".gateway")}
    ada = {"Authorization": "Bearer " + tokens["ada"]}
    assert find_boards(str(state)) == []
    with sqlite3.connect(folder / "gateway.db") as file:
        file.execute("create table devices (name, agent, image, first_s, last_s)")
        file.execute("insert into devices values ('<b>desk', 'g', 'x', 1, 1800000000)")
    file.close()
    seen = {"board": "<b>desk", "agent": "g", "seen": "2027-01-15T08:00:00Z"}
    seen["ckp"] = "/ckp/board:~3c.b~3e.desk"
    as_json = {"Accept": "application/json"}
    assert json.loads(page.ask("GET", "/", headers={**ann, **as_json})[2])["boards"] == [seen]
    assert json.loads(page.ask("GET", "/", headers={**ada, **as_json})[2])["boards"] == []
    # nobody talks to the gateway itself
    assert page.ask("POST", "/ckp/.gateway", headers=ann, json={})[0] == 404


def test_the_page_as_a_service_has_the_options_of_the_page(tmp_path):
    words = ("--page", "--dry-run", "--json", "--as", "nobody")
    place = (
        "--listen",
        "0.0.0.0:7431",
        "--tls-cert",
        "c.pem",
        "--host",
        "a.lan",
        "--host",
        "b.lan",
    )
    done = clawlite("service", "install", *words, *place, cwd=tmp_path)
    if done.returncode:  # only root installs for others
        words = words[:-2]
        done = clawlite("service", "install", *words, *place, cwd=tmp_path)
    found = json.loads(done.stdout)
    (unit,) = found["files"]
    assert unit["path"].endswith("/clawlite-the.page.service")
    line = next(line for line in unit["text"].splitlines() if line.startswith("ExecStart="))
    assert '"page" "--listen=0.0.0.0:7431" "--tls-cert=%s/c.pem"' % tmp_path in line
    assert line.endswith('"--host=a.lan" "--host=b.lan"')
    assert "Type=exec" in unit["text"] and "Watchdog" not in unit["text"]
    for wrong in (("--page", "x.cbor"), ("--page", "--tty", "/dev/tty1"), ("--listen", "x:1")):
        refused = clawlite("service", "install", *wrong, "--dry-run", cwd=tmp_path)
        assert refused.returncode == 2 and "--page" in refused.stderr, wrong

"""What a board has on record, on the host: ``clawlite audit`` and ``trace`` with --port and
--dir, over the raw REPL of real MicroPython and in a folder.
"""

import json
import os

import pytest
from agents import UUID, clawlite
from sims import named

from clawlite.host.builder.build import build_beside
from clawlite.linux.audit.chain import beginning, line

CLAW = """claw: "0.3.0"
kind: Claw
metadata: { name: kept, version: "1.0.0" }
spec:
  identity: { inline: { personality: "x", autonomy: autonomous } }
  providers:
    - inline: { protocol: custom, endpoint: "builtin:replay", model: none, auth: { type: none } }
  sandbox: { inline: { level: none } }
  policies:
    - inline: { name: first, rules: [ { id: all, action: audit-only, scope: all } ] }
    - inline:
        name: second
        rules:
          - { id: no, action: deny, scope: tool, match: { name: look } }
          - { id: all, action: allow, scope: all }
        audit: { destination: file }
"""
COUNT = 40


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    (folder / "claw.yaml").write_text(CLAW)
    (folder / "tools.py").write_text(
        'def look(where: str) -> str:\n    """Look."""\n    return where\n'
    )
    (folder / "clawlite.toml").write_text('replay = "r.jsonl"\n')
    (folder / "r.jsonl").write_text('{"user": null}\n{"say": "ok"}\n')
    return build_beside(str(folder))


def identity(image) -> str:
    from clawlite.core.image.image import Image

    data = open(image, "rb").read()
    return Image(lambda offset, length: data[offset : offset + length], len(data)).id


def audit(folder, agent: str, image, count: int = COUNT):
    """Write an audit as boards do, in three segments."""
    head, there = beginning(agent), folder / f"state/audit-{agent}"
    there.mkdir(parents=True)
    for number in range(1, count + 1):
        data = line(
            head,
            {
                "time": "2026-11-22T09:08:%02dZ" % (number % 60),
                "event": "tool.call",
                "tool": "look",
                "caller": "operator",
                "request_id": UUID % number,
                "action": "deny",
                "rule_id": "no",
                "status": "refused",
                "code": -32011,
                "image": identity(image),
                "sandbox": "s",
                "trace": [["no", True]],
                "arguments": '{"where":"' + ("x" * 5000)[:4086] + "..."
                if number == 7
                else '{"where":"%d \u00e4"}' % number,
            },
            str,
        )
        with open(
            there
            / ("audit.jsonl" if number > 30 else "audit-%012d.jsonl" % (1 if number <= 15 else 16)),
            "ab",
        ) as file:
            file.write(data)
    (there / "audit.head").write_bytes(head.text().encode().ljust(255) + b"\n")
    return there


@pytest.fixture(params=["port", "folder"])
def board(request, tmp_path):
    """Return (the words that name a board, the folder that is its flash)."""
    with named(request.param, tmp_path, request.getfixturevalue("monkeypatch")) as found:
        yield found


def test_the_audit_of_a_board_is_shown_verified_and_taken(board, image, tmp_path):
    words, flash = board
    there = audit(flash, "kept", image)
    shown = json.loads(clawlite("audit", "--json", "--last", "3", *words, cwd=tmp_path).stdout)
    assert [record["n"] for record in shown] == [38, 39, 40] and shown[0][
        "arguments"
    ] == '{"where":"38 ä"}'
    verified = json.loads(clawlite("audit", "verify", "--json", *words, cwd=tmp_path).stdout)
    assert verified["ok"] and verified["records"] == COUNT
    taken = clawlite("audit", "take", *words, cwd=tmp_path)
    assert (
        taken.returncode == 0
        and "40 records, 1 to 40" in taken.stdout
        and os.listdir(there) == ["audit.head"]
    ), taken.stderr
    file = tmp_path / "kept-audit-1-40.jsonl"
    assert file.stat().st_mode & 0o777 == 0o600, "as the audit itself"
    lines = file.read_bytes().splitlines()
    assert len(lines) == COUNT and json.loads(lines[-1])["n"] == COUNT
    note = "40:%s" % verified["hash"]
    left = clawlite("audit", "verify", "--anchor", note, *words, cwd=tmp_path)
    assert left.returncode == 0 and left.stdout == "no records yet\n", left.stdout + left.stderr
    assert (
        clawlite(
            "audit", "verify", "--anchor", "39:" + verified["hash"], *words, cwd=tmp_path
        ).returncode
        == 1
    )
    assert (
        clawlite("audit", "take", *words, cwd=tmp_path).returncode == 0
        and len(list(tmp_path.glob("*.jsonl"))) == 1
    ), "there is nothing to be taken"


def test_why_a_call_of_a_board_ended_so(board, image, tmp_path):
    """Out of the audit: the numbers of the rules are found again, in the policy that decided; a
    long argument shows its beginning.
    """
    words, flash = board
    audit(flash, "kept", image)
    found = json.loads(clawlite("trace", "2", image, "--json", *words, cwd=tmp_path).stdout)
    assert (
        found["request_id"] == UUID % 39
        and found["arguments"] == {"where": "39 ä"}
        and found["action"] == "deny"
    )
    assert [(rule["id"], rule["policy"], rule["decides"]) for rule in found["rules"]] == [
        ("no", "second", True)
    ]
    long = clawlite("trace", UUID % 7, image, *words, cwd=tmp_path)
    assert (
        long.returncode == 0
        and "rule no (policy second): matches, so it is denied" in long.stdout
        and "xxx" in long.stdout
    ), long.stdout + long.stderr
    (flash / "state/log.jsonl").write_text(
        json.dumps(
            {
                "event": "tool.call",
                "timestamp": "t",
                "tool": "look",
                "caller": "operator",
                "arguments": {},
                "image": identity(image),
                "action": "allow",
                "rule_id": "all",
                "trace": [[2, True]],
                "status": "ok",
            }
        )
        + "\n"
    )
    assert (
        json.loads(clawlite("trace", "last", image, "--json", *words, cwd=tmp_path).stdout)[
            "rules"
        ][0]["id"]
        == "all"
    ), "its own log, where it has one"


def test_what_was_changed_is_found_and_not_taken(image, tmp_path):
    there = audit(tmp_path / "flash", "kept", image)
    path = there / "audit-000000000016.jsonl"
    path.write_bytes(
        path.read_bytes()
        .replace(b'"20 ', b'"21 ')
        .replace(b'{\\"where\\":\\"20 ', b'{\\"where\\":\\"21 ')
    )
    for verb in ("verify", "take"):
        done = clawlite("audit", verb, "--dir", tmp_path / "flash", cwd=tmp_path)
        assert done.returncode == 1 and "record 21 does not follow" in done.stdout, done.stdout
    assert len(os.listdir(there)) == 4 and not list(tmp_path.glob("*.jsonl"))


def test_a_file_that_is_there_is_not_written_over_and_nothing_is_lost(image, tmp_path):
    there = audit(tmp_path / "flash", "kept", image)
    (tmp_path / "kept-audit-1-40.jsonl").write_text("mine")
    done = clawlite("audit", "take", "--dir", tmp_path / "flash", cwd=tmp_path)
    assert (
        done.returncode == 1
        and "File exists" in done.stderr
        and "kept-audit-1-40.jsonl" in done.stderr
    )
    assert (tmp_path / "kept-audit-1-40.jsonl").read_text() == "mine" and len(
        os.listdir(there)
    ) == 4


def test_whose_audit_it_is(image, tmp_path):
    flash = tmp_path / "flash"
    (flash / "state").mkdir(parents=True)
    none = clawlite("audit", "--dir", flash, cwd=tmp_path)
    assert (
        none.returncode == 1
        and "no agent has an audit there" in none.stderr
        and "destination: file" in none.stderr
    )
    missing = clawlite("audit", image, "--dir", flash, "--json", cwd=tmp_path)
    assert (
        missing.returncode == 1
        and "the board has no audit of kept" in json.loads(missing.stdout)["error"]["message"]
    )
    audit(flash, "kept", image)
    audit(flash, "other", image, 3)
    several = clawlite("audit", "verify", "--dir", flash, cwd=tmp_path)
    assert (
        several.returncode == 1
        and "more than one agent has an audit there: kept, other" in several.stderr
        and "name the image" in several.stderr
    )
    assert clawlite("audit", "verify", image, "--dir", flash, cwd=tmp_path).stdout.startswith(
        "40 records"
    )


def test_usage(image, tmp_path):
    (tmp_path / "flash").mkdir()
    for words, said in (
        (["audit", "take"], "--port PORT"),
        (
            ["audit", "--last", "x", "--dir", "flash"],
            '--last: expected a whole number of at least 0, found "x"',
        ),
        (["audit", "a", "b", "--dir", "flash"], 'unexpected "b"'),
        (["trace", "last", "a", "b", "--dir", "flash"], 'unexpected "b"'),
        (["audit", "--dir", "flash", "--port", "x"], "expected one of them"),
    ):
        done = clawlite(*words, cwd=tmp_path)
        assert done.returncode in (1, 2) and said in done.stderr, (
            words,
            done.returncode,
            done.stderr,
        )
    assert "--port [PORT]" in clawlite("audit", "--help", "--dir", "flash", cwd=tmp_path).stdout


@pytest.mark.parametrize("verb", ["audit", "trace"])
def test_a_port_that_is_not_there_has_the_exit_code_of_ports(image, verb, tmp_path):
    for words in (), ("--json",):
        done = clawlite(verb, image, *words, "--port", str(tmp_path / "nothing"), cwd=tmp_path)
        assert done.returncode == 3 and "does not exist" in done.stderr, done.stderr


def test_a_board_without_a_call_on_record_names_no_folder_of_this_computer(image, tmp_path):
    done = clawlite("trace", image, "--dir", str(tmp_path), cwd=tmp_path)
    assert (
        done.returncode == 1
        and done.stderr.startswith("clawlite: the board has no tool call on record - ")
        and "destination: file" in done.stderr
    )

"""``clawlite people``: tokens are shown once, kept as digests, and end when they are removed."""

import json
import os
import stat

from agents import clawlite

from clawlite.protocols.secrets import people


def _people(tmp_path, *words, **more):
    return clawlite("people", *words, cwd=tmp_path, **more)


def _file(tmp_path, agent: str = "house"):
    return tmp_path / ".home" / "state" / agent / people.FILE


def test_a_token_is_shown_once_and_kept_as_a_digest_for_its_owner_alone(tmp_path):
    done = _people(tmp_path, "add", "ann", "--role", "admin", "--agent", "house")
    token, path = done.stdout.strip(), _file(tmp_path)
    assert done.returncode == 0 and token.startswith("ann:") and len(token) > 40
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(path.parent).st_mode) == 0o700
    said = path.read_bytes()
    assert token.partition(":")[2].encode() not in said
    (one,) = people.parse(said)
    assert (one.name, one.role) == ("ann", "admin")
    assert people.find([one], token.encode()) == one
    for wrong in ("ann:", "ann", token[:-1], "bob" + token[3:], token + "x", ""):
        assert people.find([one], wrong.encode()) is None, wrong
    listed = _people(tmp_path, "list", "--agent", "house", "--json")
    (row,) = json.loads(listed.stdout)
    assert set(row) == {"name", "role", "of", "since"} and row["role"] == "admin"
    assert token not in listed.stdout + listed.stderr


def test_one_token_may_be_for_several_agents_and_the_gateway(tmp_path):
    words = ("--agent", "house", "--agent", "barn", "--gateway", "--json")
    made = json.loads(_people(tmp_path, "add", "ann", *words).stdout)
    assert made["role"] == "user" and made["of"] == ["house", "barn", "the gateway"]
    for place in ("house", "barn", ".gateway"):
        known = people.parse(_file(tmp_path, place).read_bytes())
        assert people.find(known, made["token"].encode()), place


def test_a_new_token_ends_the_old_one_and_a_removed_one_opens_nothing(tmp_path):
    first, second = [
        _people(tmp_path, "add", "ann", "--agent", "house", "--role", role)
        for role in ("user", "viewer")
    ]
    assert "no longer valid" in second.stderr and "no longer valid" not in first.stderr
    known = people.parse(_file(tmp_path).read_bytes())
    assert people.find(known, first.stdout.strip().encode()) is None
    assert people.find(known, second.stdout.strip().encode()).role == "viewer"
    assert _people(tmp_path, "remove", "ann", "--agent", "house").returncode == 0
    assert people.parse(_file(tmp_path).read_bytes()) == []
    again = _people(tmp_path, "remove", "ann", "--agent", "house")
    assert again.returncode == 1 and "clawlite people list" in again.stderr


def test_what_is_typed_wrong_is_said_and_makes_nothing(tmp_path):
    for words in (
        ("add", "an n", "--agent", "house"),
        ("add", "a:b", "--agent", "house"),
        ("add", "a" * (people.MAX_NAME + 1), "--agent", "house"),
        ("add", "ann", "--role", "owner", "--agent", "house"),
        ("add", "ann", "claw.yaml", "--agent", "house"),
    ):
        done = _people(tmp_path, *words)
        assert done.returncode in (1, 2) and "clawlite" in done.stderr, words
        assert not done.stdout
    assert _people(tmp_path, "add", "ann", "--agent", "../x").returncode == 1
    assert not _file(tmp_path).exists()
    assert _people(tmp_path, "add", "a" * people.MAX_NAME, "--agent", "house").returncode == 0


def test_a_list_has_a_bound_and_damaged_lines_open_nothing(tmp_path):
    path = _file(tmp_path)
    path.parent.mkdir(parents=True)
    full = [people.Person("p%d" % n, "user", "0" * 64, n) for n in range(people.MAX_PEOPLE)]
    path.write_bytes(people.write(full[:-1]))
    assert _people(tmp_path, "add", "ann", "--agent", "house").returncode == 0
    over = _people(tmp_path, "add", "bob", "--agent", "house")
    assert over.returncode == 1 and "100 people" in over.stderr
    assert _people(tmp_path, "add", "ann", "--agent", "house").returncode == 0
    lines = b"ann admin %s 1\n" % (b"0" * 64), b"\xff\n", b"ann root %s 1\n" % (b"0" * 64), b"x y\n"
    assert [one.role for one in people.parse(b"".join(lines))] == ["admin"]

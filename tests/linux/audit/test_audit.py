"""The audit (clawlite/linux/audit*.py; CKP 0.2.0, 5.8): a chain of records, its two stores, and
what the agent does when neither takes one.
"""

import errno
import json
import os
import random
import signal
import sqlite3
import sys
import time

import pytest
from agents import (
    INITIALIZE,
    UUID,
    Agent,
    clawlite,
    eventually,
    libraries,
    linux,
    tool_call,
    without_root_rights,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from secret_samples import samples

from clawlite.linux.audit import files, sqlite
from clawlite.linux.audit.audit import store_of
from clawlite.linux.audit.chain import Head, beginning, line, verify
from clawlite.scan.auditline import LOST_HEAD, digest, head_of

STORES = {"file": files, "sqlite": sqlite}
NOW = 1800000000


def _store(kind: str, folder, kept_s=None, most=0, agent="a"):
    if kind == "file":
        return files.FileStore(str(folder), agent, kept_s, most=most)
    return sqlite.SQLiteStore(str(folder), agent, kept_s, most)


def _make(*records):
    return lambda head: b"".join(line(head, record, str) for record in records)


def _verified(kind: str, folder, anchor=None) -> dict:
    lines, head, _ = STORES[kind].read(str(folder))
    return verify(lines, head, "a", anchor)


def _chain(count: int) -> tuple:
    head = beginning("a")
    return [line(head, {"event": "e", "k": number}, str)[:-1] for number in range(count)], head


@pytest.mark.parametrize("kind", STORES)
def test_the_newest_records_are_the_end_of_all(kind, tmp_path):
    store = _store(kind, tmp_path)
    for number in range(40):
        long = "x" * (90_000 if number % 9 == 4 else number)  # longer than a piece, too
        store.append(_make({"event": "e", "k": number, "text": long}), NOW + number * 20_000)
    store.close()
    every = list(STORES[kind].read(str(tmp_path))[0])
    assert len(every) == 40 and (kind == "sqlite" or len(files.segments(str(tmp_path))) > 5)
    for count in (1, 2, 7, 39, 40, 41, 500):
        lines, head, is_there = STORES[kind].read(str(tmp_path), count)
        assert list(lines) == every[-count:] and head.last == 40 and is_there, count


def test_only_the_end_of_an_audit_is_read_for_its_newest_records(tmp_path):
    (tmp_path / "audit-1.jsonl").mkdir()  # whoever reads it fails
    with open(tmp_path / "audit.jsonl", "wb") as file:
        file.seek(1 << 36)  # a line of 64 GiB, which lies on no disk
        file.write(b"\n" + b"".join(b'{"n":%d}\n' % n for n in range(2, 2000)) + b'{"n":2000')
    lines, _, _ = files.read(str(tmp_path), 3)
    assert list(lines) == [b'{"n":1998}', b'{"n":1999}', b'{"n":2000']
    with pytest.raises(IsADirectoryError):
        list(files.read(str(tmp_path))[0])


# -- the chain


def test_a_chain_as_it_was_written_is_whole():
    for count in (0, 1, 2, 50):
        lines, head = _chain(count)
        found = verify(lines, head, "a")
        assert found["ok"] and found["records"] == count and found["last"] == (count or None), found
    assert verify(lines, head, "a", (50, head.hash))["ok"] and not verify(lines, head, "b")["ok"], (
        "another agent's genesis"
    )


def test_each_line_that_is_removed_moved_repeated_or_cut_is_found():
    lines, head = _chain(12)
    for at in range(12):
        assert not verify(lines[:at] + lines[at + 1 :], head, "a")["ok"], at
        assert not verify(lines[:at], head, "a")["ok"], "the end is missing"
        assert not verify(lines[:at] + [lines[at]] * 2 + lines[at + 1 :], head, "a")["ok"]
        for other in range(at):
            moved = list(lines)
            moved[at], moved[other] = moved[other], moved[at]
            assert not verify(moved, head, "a")["ok"]


def test_each_byte_that_is_changed_is_found():
    lines, head = _chain(4)
    for at, text in enumerate(lines):
        for byte in range(len(text)):
            for bit in (1, 32):
                changed = text[:byte] + bytes([text[byte] ^ bit]) + text[byte + 1 :]
                assert not verify(lines[:at] + [changed] + lines[at + 1 :], head, "a")["ok"], (
                    at,
                    byte,
                )


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_any_edit_is_found(data):
    lines, head = _chain(10)
    edited = list(lines)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, max(0, len(edited) - 1)))
        what = data.draw(st.sampled_from(["remove", "insert", "swap", "set"]))
        if what == "remove" and edited:
            del edited[at]
        elif what == "insert":
            edited.insert(
                at, data.draw(st.sampled_from(lines + [b"{}", b"", b'{"n":3,"prev":"x"}']))
            )
        elif what == "swap" and len(edited) > 1:
            edited[at], edited[-1 - at] = edited[-1 - at], edited[at]
        elif edited:
            edited[at] = data.draw(st.binary(max_size=40))
    assert verify(edited, head, "a")["ok"] == (edited == lines)


def test_what_is_not_found_without_a_note_and_is_with_one():
    lines, head = _chain(6)
    forged_head = beginning("a")
    forged = [
        line(forged_head, {"event": "e", "k": 0 if number == 3 else number}, str)[:-1]
        for number in range(6)
    ]
    assert verify(forged, forged_head, "a")["ok"], "who may write all may make all anew"
    found = verify(forged, forged_head, "a", (6, head.hash))
    assert found["problems"] == ["record 6 differs from the one that was noted"]
    assert (
        verify(forged[:5], Head(1, head.prev, 5, "0" * 64), "a", (6, head.hash))["problems"][-1]
        == "record 6, which was noted, is missing"
    )


def test_an_older_head_finds_what_was_written_anew_before_it():
    """More records than the head knows are no fault (the writer was killed before it); others
    below it are.
    """
    lines, _ = _chain(9)
    older = Head(1, beginning("a").prev, 5, digest(lines[4]))
    assert verify(iter(lines), older, "a")["ok"]
    head, forged = beginning("a"), []
    for number in range(9):
        forged.append(line(head, {"event": "e", "k": -number}, str)[:-1])
    (problem,) = verify(iter(forged), older, "a")["problems"]
    assert problem == "record 5 was changed: the head has another hash"


def test_without_a_head_the_end_cannot_be_told():
    lines, _ = _chain(3)
    assert verify(lines, None, "a")["problems"] == [
        "the head is missing, so it is unknown whether records are missing at the end"
    ]
    for data in (
        b"",
        b"{}",
        b"[]",
        b'{"first":1,"prev":"x","last":1,"hash":"y"}',
        b"\0" * 256,
        b'{"first":"1","prev":2,"last":1,"hash":3}',
    ):
        assert head_of(data) is None


# -- the stores


@pytest.mark.parametrize("kind", sorted(STORES))
def test_records_are_there_after_a_new_start_and_from_two_processes(kind, tmp_path):
    one, two = _store(kind, tmp_path), _store(kind, tmp_path)
    for number in range(20):
        (one if number % 3 else two).append(_make({"k": number}), NOW + number)
    one.close()
    three = _store(kind, tmp_path)
    three.append(_make({"k": 20}, {"k": 21}), NOW + 30)
    two.append(_make({"k": 22}), NOW + 31)
    found = _verified(kind, tmp_path)
    assert found["ok"] and found["records"] == 23, found
    assert [json.loads(text)["k"] for text in STORES[kind].read(str(tmp_path))[0]] == list(
        range(23)
    )
    two.close(), three.close()
    assert all(
        path.stat().st_mode & 0o077 == 0
        for path in tmp_path.iterdir()
        if path.name in ("audit.jsonl", "audit.head", "audit.db")
    )


@pytest.mark.parametrize("kind", sorted(STORES))
def test_what_is_too_old_goes_and_the_rest_is_still_whole(kind, tmp_path):
    day, store = 86400, _store(kind, tmp_path, 3 * 86400)
    for number in range(10):
        now = NOW + number * day
        store.append(_make({"k": number}), now)
        if kind == "file":  # segments are as old as their last write says
            os.utime(tmp_path / "audit.jsonl", (now, now))
            store.close()
            store = _store(kind, tmp_path, 3 * day)
    found = _verified(kind, tmp_path)
    kept = [json.loads(text)["k"] for text in STORES[kind].read(str(tmp_path))[0]]
    assert found["ok"] and found["first"] > 1 and kept[-1] == 9 and 3 <= len(kept) <= 6, (
        found,
        kept,
    )
    store.close()
    if kind == "file":
        os.unlink(files.segments(str(tmp_path))[0])
        assert not _verified(kind, tmp_path)["ok"], "a segment that was removed by somebody else"


@pytest.mark.parametrize("kind", sorted(STORES))
def test_a_record_of_an_unset_clock_takes_nothing_with_it(kind, tmp_path):
    now, day = 1795900000, 86400

    def written(at: int, *numbers):
        store = _store(kind, tmp_path, 30 * day)
        for number in numbers:
            store.append(_make({"k": number}), at)
        if kind == "file":
            os.utime(tmp_path / "audit.jsonl", (at, at))
        store.close()

    def kept() -> list:
        return [json.loads(text)["k"] for text in STORES[kind].read(str(tmp_path))[0]]

    written(now - 7200, 0, 1, 2)
    written(1000, 3)  # after a boot, before the clock was set
    written(now, 4, 5)
    assert kept() == [0, 1, 2, 3, 4, 5]
    for more in (40, 80, 81):  # days later all of it goes
        written(now + more * day, more)
    assert kept()[-1] == 81 and not set(kept()) & {0, 1, 2, 3, 4, 5}, kept()
    assert _verified(kind, tmp_path)["ok"]


@pytest.mark.parametrize("kind", sorted(STORES))
@pytest.mark.parametrize("first", ["ahead", "unset"])
def test_a_wrong_clock_keeps_nothing_for_ever(kind, tmp_path, first):
    now, day = 1795900000, 86400
    times = [now + number * 30 * day for number in range(10)]
    if first == "ahead":
        times[0] += 400 * day
    else:
        times = [1000 + number * 30 * day for number in range(10)]
    for number, at in enumerate(times):
        store = _store(kind, tmp_path, 30 * day)
        store.append(_make({"k": number}), at)
        if kind == "file":
            os.utime(tmp_path / "audit.jsonl", (at, at))
        store.close()
    kept = [json.loads(text)["k"] for text in STORES[kind].read(str(tmp_path))[0]]
    assert kept[-1] == 9 and not set(kept) & set(range(7)), kept
    assert _verified(kind, tmp_path)["ok"]


def test_a_segment_that_is_full_is_followed_by_another(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "SEGMENT", 1000)
    store = _store("file", tmp_path)
    for number in range(40):
        store.append(_make({"k": number}), NOW)
    assert len(files.segments(str(tmp_path))) > 3 and _verified("file", tmp_path)["ok"]
    assert _verified("file", tmp_path)["records"] == 40
    store.close()


def _size(kind: str, folder) -> int:
    if kind == "file":
        return sum(os.stat(path).st_size for path in files.segments(str(folder)))
    return os.stat(folder / "audit.db").st_size


@pytest.mark.parametrize("kind", sorted(STORES))
def test_an_audit_never_exceeds_its_size_and_its_chain_stays_whole(kind, tmp_path, monkeypatch):
    most = 256 * 1024
    monkeypatch.setattr(files, "SEGMENT", most // 8)
    monkeypatch.setattr(sqlite, "SEGMENT", most // 8)
    store, removed = _store(kind, tmp_path, most=most), []

    def make(head):
        if store.removed:
            removed.append((store.removed, head.first))
        return line(head, {"k": "x" * 3000}, str)

    for number in range(300):
        store.append(make, NOW)
        assert _size(kind, tmp_path) <= most + 65536, number
    found = _verified(kind, tmp_path)
    assert found["ok"] and found["last"] == 300 and 50 <= found["records"] <= 100, found
    assert len(removed) > 5 and removed[-1][1] == found["first"], removed
    assert removed[0][0].startswith("records 1 to %d were removed" % (removed[0][1] - 1)), removed
    store.close()


def test_what_waits_for_its_copies_stays_beyond_the_size(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "SEGMENT", 1000)
    store = files.FileStore(str(tmp_path), "a", None, lambda: 12, 3000)
    for number in range(60):
        store.append(_make({"k": number}), NOW)
    found = _verified("file", tmp_path)
    assert found["ok"] and 1 < found["first"] <= 13 and found["last"] == 60, found
    store.close()


def test_a_segment_with_a_damaged_end_goes_with_the_next_one(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "SEGMENT", 1000)
    store = _store("file", tmp_path, most=4000)
    for number in range(25):
        store.append(_make({"k": number}), NOW)
    path = files.segments(str(tmp_path))[0]
    with open(path, "r+b") as file:
        file.seek(-10, os.SEEK_END)
        file.write(b"#" * 9)
    for number in range(25):
        store.append(_make({"k": number}), NOW)
    assert not os.path.exists(path) and _verified("file", tmp_path)["ok"]
    store.close()


def test_a_process_that_was_killed_between_the_record_and_the_head_has_lost_neither(tmp_path):
    store = _store("file", tmp_path)
    store.append(_make({"k": 0}), NOW)
    store._put = lambda head: None
    store.append(_make({"k": 1}), NOW)
    store.close()
    other = _store("file", tmp_path)
    other.append(_make({"k": 2}), NOW)
    found = _verified("file", tmp_path)
    assert found["ok"] and found["records"] == 3 and other.problem() == ""
    other.close()


def test_a_line_that_was_never_finished_goes(tmp_path):
    store = _store("file", tmp_path)
    store.append(_make({"k": 0}), NOW)
    with open(tmp_path / "audit.jsonl", "ab") as file:
        file.write(b'{"n":2,"prev":"00')
    store.append(_make({"k": 1}), NOW)
    assert _verified("file", tmp_path)["ok"] and _verified("file", tmp_path)["records"] == 2
    store.close()


def test_a_cut_end_stays_visible_when_the_agent_goes_on(tmp_path):
    store = _store("file", tmp_path)
    store.append(_make(*[{"k": number} for number in range(5)]), NOW)
    lines = (tmp_path / "audit.jsonl").read_bytes().splitlines(True)
    (tmp_path / "audit.jsonl").write_bytes(b"".join(lines[:3]))
    store.append(_make({"k": 5}), NOW)
    assert store.problem() and store.problem() == ""
    assert _verified("file", tmp_path)["problems"] == ["records 4 to 5 are missing before record 6"]
    (tmp_path / "audit.head").write_bytes(b"nonsense")
    store.append(_make({"k": 6}), NOW)
    assert store.problem() == "the head was damaged or missing"
    store.close()


@pytest.mark.parametrize("kind", ["file", "sqlite"])
@pytest.mark.parametrize("damage", ["gone", "damaged", "empty"])
@pytest.mark.parametrize("cut", [0, 2])
def test_a_lost_head_is_reported_after_the_chain_went_on(kind, tmp_path, damage, cut):
    def make_head(head):  # as the audit does: what is wrong comes first
        problem = store.problem()
        first = [{"event": "audit.problem", "problem": problem}] if problem else []
        return _make(*first, {"k": 9, "text": "audit.problem: %s" % LOST_HEAD})(head)

    store = _store(kind, tmp_path)
    store.append(_make(*[{"k": number} for number in range(5)]), NOW)
    store.close()
    _lose_head(kind, tmp_path, damage, cut)
    for _ in range(3):
        store = _store(kind, tmp_path)
        store.append(make_head, NOW)
        store.close()
    found = _verified(kind, tmp_path)
    assert not found["ok"] and len(found["problems"]) == 1, found
    assert "the head was lost before record %d was written" % (6 - cut) in found["problems"][0]
    assert _verified(kind, tmp_path, (found["last"], found["hash"]))["ok"], "it was noted since"
    lines, head, _ = STORES[kind].read(str(tmp_path))
    noted_before = (1, digest(next(iter(lines))))
    assert not _verified(kind, tmp_path, noted_before)["ok"]


@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("first", [1, 3])
def test_a_head_that_was_lost_beside_segments_is_settled_by_a_note(tmp_path, first, empty):
    """Numbers began with 1 again, and no note could settle that."""
    store = _store("file", tmp_path)
    for day in range(4):
        store.append(_make({"k": day}, {"k": day}), NOW + day * files.DAY)
    store.close()
    (tmp_path / "audit.head").unlink()
    if first > 1:  # it had been too old
        (tmp_path / "audit-000000000001.jsonl").unlink()
    if empty:
        (tmp_path / "audit.jsonl").write_bytes(b"")
    store = _store("file", tmp_path)

    def make_head(head):
        return _make({"event": "audit.problem", "problem": store.problem()})(head)

    store.append(make_head, NOW + 4 * files.DAY)
    store.close()
    found = _verified("file", tmp_path)
    number = 7 if empty else 9
    assert (found["first"], found["last"], len(found["problems"])) == (first, number, 1), found
    assert "the head was lost before record %d was written" % number in found["problems"][0]
    assert _verified("file", tmp_path, (found["last"], found["hash"]))["ok"]


def _lose_head(kind: str, folder, damage: str, cut: int):
    if kind == "file":
        lines = (folder / "audit.jsonl").read_bytes().splitlines(True)
        (folder / "audit.jsonl").write_bytes(b"".join(lines[: 5 - cut]))
        (folder / "audit.head").unlink()
        if damage != "gone":
            (folder / "audit.head").write_bytes(b"nonsense" if damage == "damaged" else b"")
        return
    db = sqlite3.connect(folder / "audit.db")
    db.execute("DELETE FROM records WHERE n > ?", (5 - cut,))
    db.execute("DELETE FROM head")
    if damage != "gone":
        db.execute("INSERT INTO head VALUES (1, ?)", (b"nonsense" if damage == "damaged" else b"",))
    db.commit()
    db.close()


@pytest.mark.parametrize("short", [0, 1, 30])
def test_a_full_disk_takes_all_of_a_record_or_nothing(tmp_path, monkeypatch, short):
    store = _store("file", tmp_path)
    store.append(_make({"k": 0}), NOW)
    real, calls = os.write, []

    def full(fd, data):
        calls.append(1)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, data[:short])

    monkeypatch.setattr(files.os, "write", full)
    with pytest.raises(OSError):
        store.append(_make({"k": 1}), NOW)
    monkeypatch.setattr(files.os, "write", real)
    assert _verified("file", tmp_path)["records"] == 1 and _verified("file", tmp_path)["ok"]
    store.append(_make({"k": 2}), NOW)
    assert _verified("file", tmp_path)["ok"] and _verified("file", tmp_path)["records"] == 2
    store.close()


# -- an agent

MANIFEST = """
claw: "0.3.0"
kind: Claw
metadata: { name: audited, version: "1.0.0" }
spec:
  identity: { inline: { personality: "x", autonomy: autonomous } }
  providers: [ { inline: { protocol: custom, endpoint: "builtin:replay", model: none, auth: { type: none } } } ]
  channels: [ { inline: { type: cli, transport: stdio, auth: { secret_ref: CONSOLE } } } ]
  tools:
    - inline: { name: show, description: "Show.", annotations: { readOnlyHint: true },
                input_schema: { type: object, properties: { text: { type: string } }, required: [text] } }
    - inline: { name: change, description: "Change.", input_schema: { type: object } }
    - inline: { name: ask-first, description: "Ask.", input_schema: { type: object } }
  sandbox: { inline: { level: none } }
  policies:
    - inline:
        rules:
          - { id: asks, action: require-approval, scope: tool, match: { name: ask-first } }
          - { id: looks, action: audit-only, scope: tool, match: { name: show } }
          - { id: all, action: allow, scope: all }
        audit: { %s }
"""  # noqa: E501
TOOLS = '''import os


def show(text: str) -> str:
    """Show."""
    return text


def change() -> str:
    """Change."""
    with open(os.environ["CHANGED"], "a") as file:
        file.write("x")
    return "changed"


def ask_first() -> str:
    """Ask."""
    return "done"
'''


def _project(folder, audit: str):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "claw.yaml").write_text(MANIFEST % audit)
    (folder / "tools.py").write_text(TOOLS)
    (folder / "clawlite.toml").write_text('replay = "r.jsonl"\n')
    (folder / "r.jsonl").write_text('{"user": null}\n{"say": "ok"}\n')
    done = clawlite("build", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def _call(agent, number: int, tool: str, arguments: dict = {}) -> dict:
    return agent.call(
        "claw.tool.call",
        {
            "name": tool,
            "arguments": arguments,
            "context": {"request_id": UUID % number, "identity": "audited"},
        },
        number,
    )


def _agent(folder, tmp_path, words=list, **env):
    return Agent(
        words(linux("serve", folder / "claw.cbor", "--stdio")),
        tmp_path / "home",
        env=dict(env, CHANGED=tmp_path / "changed"),
    )


def _audit(folder, tmp_path, *args):
    return clawlite(
        "audit",
        *args,
        folder / "claw.cbor",
        "--json",
        cwd=tmp_path,
        CLAWLITE_STATE=tmp_path / "home/state",
    )


def test_an_agent_with_tools_and_an_audit_loads_no_openssl(tmp_path):
    """Its digests are of some KB; OpenSSL would be 5 ms of every start and 3.8 MiB."""
    folder = _project(tmp_path / "p", "destination: file")
    with _agent(folder, tmp_path) as agent:
        agent.initialize()
        for _ in range(2):  # the second is known by its id, and its arguments are compared
            assert "changed" in json.dumps(_call(agent, 2, "change"))
        # some builds of Python have the module of digests in the interpreter itself
        own = {"_sha256", "_sha2"} & set(sys.builtin_module_names)
        assert own or "_sha" in libraries(agent.process)
        assert "libcrypto" not in libraries(agent.process)
    assert json.loads(_audit(folder, tmp_path, "verify").stdout)["ok"]


@pytest.mark.parametrize("destination", ["file", "sqlite"])
def test_every_decision_and_every_execution_is_one_record(tmp_path, destination):
    folder = _project(tmp_path / "p", "log_outputs: true, destination: %s" % destination)
    token, own = samples(5)["gitlab"][0][0], "the con" + "sole key 1"
    with _agent(folder, tmp_path, CONSOLE=own) as agent:
        agent.initialize()
        _call(agent, 1, "show", {"text": "%s %s" % (token, own)})
        _call(agent, 2, "change")
        _call(agent, 3, "nothing")
        _call(agent, 4, "show", {"text": 3})
        agent.line(
            json.dumps(
                {
                    "jsonrpc": "2.0",
                    "id": 5,
                    "method": "claw.tool.call",
                    "params": {
                        "name": "ask-first",
                        "arguments": {},
                        "context": {"request_id": UUID % 5, "identity": "audited"},
                    },
                }
            )
        )
        agent.call("claw.tool.deny", {"request_id": UUID % 5, "reason": "not today"}, 6)
    records = json.loads(_audit(folder, tmp_path).stdout)
    calls = [record for record in records if record["event"] == "tool.call"]
    assert [(record["tool"], record["status"]) for record in calls] == [
        ("show", "ok"),
        ("change", "ok"),
        ("nothing", "refused"),
        ("show", "refused"),
        ("ask-first", "refused"),
    ]
    first = calls[0]
    assert (
        first["rule_id"] == "looks"
        and first["action"] == "audit-only"
        and first["trace"] == [["looks", True]]
        and first["duration_ms"] >= 0
    )
    assert (
        first["arguments"] == '{"text":"[REDACTED: gitlab] [REDACTED: known]"}'
        and first["request_id"] == UUID % 1
        and first["caller"] == "operator"
    )
    assert [record.get("output") for record in calls[:2]] == [
        "[REDACTED: gitlab] [REDACTED: known]",
        "changed",
    ]
    assert calls[-1]["code"] == -32013 and [
        record["answer"] for record in records if record["event"] == "tool.approval"
    ] == ["denied"]
    assert [record["n"] for record in records] == list(range(1, len(records) + 1))
    begun = [record for record in records if record["event"] == "tool.begin"]
    assert [(record["tool"], record["request_id"]) for record in begun] == [("change", UUID % 2)], (
        "what has no side effects leaves one record"
    )
    done = _audit(folder, tmp_path, "verify")
    found = json.loads(done.stdout)
    assert done.returncode == 0 and found["ok"] and found["records"] == len(records)
    assert (
        _audit(
            folder, tmp_path, "verify", "--anchor", "%d:%s" % (found["last"], found["hash"])
        ).returncode
        == 0
    )
    assert _audit(folder, tmp_path, "verify", "--anchor", "1:" + "0" * 64).returncode == 1
    person = clawlite(
        "audit",
        folder / "claw.cbor",
        "--last",
        "1",
        cwd=tmp_path,
        CLAWLITE_STATE=tmp_path / "home/state",
    )
    assert person.stdout.startswith("%4d " % len(records)) and "ask-first" in person.stdout
    log = (tmp_path / "home/state/audited/log.jsonl").read_text()
    assert '"output"' not in log


def test_a_request_id_is_one_in_any_case(tmp_path):
    folder, id = _project(tmp_path / "p", "destination: file"), "ABCDEF01-89aB-4cde-8F01-%012d"

    def call(one, number, id, tool="change"):
        return one.call(
            "claw.tool.call",
            {"name": tool, "arguments": {}, "context": {"request_id": id, "identity": "audited"}},
            number,
        )

    with _agent(folder, tmp_path) as agent:
        agent.initialize()
        first = call(agent, 1, id % 1)
        for number, one in enumerate(((id % 1).lower(), (id % 1).upper(), id % 1), 2):
            assert call(agent, number, one)["result"] == first["result"]
        agent.line(json.dumps(dict(_asked(id % 2), id=8)))
        approval = {"request_id": (id % 2).upper()}
        agent.line(json.dumps(dict(_asked(""), id=9, method="claw.tool.approve", params=approval)))
        said = {one["id"]: one for one in (agent.message(), agent.message())}
        assert said[9]["result"] == {"acknowledged": True} and "result" in said[8], said
        again = agent.call("claw.tool.deny", approval, 10)
        assert again["result"] == {"acknowledged": False}
    assert (tmp_path / "changed").read_text() == "x", "it ran once"
    words = "audit", folder / "claw.cbor", "--last", "1", "--json"
    (last,) = json.loads(
        clawlite(*words, cwd=tmp_path, CLAWLITE_STATE=tmp_path / "home/state").stdout
    )
    ignored = ("tool.approval", "ignored", "operator", "it waits no more")
    assert tuple(last[name] for name in ("event", "answer", "by", "reason")) == ignored
    for one in ((id % 1).lower(), (id % 1).upper()):
        done = clawlite(
            "trace", one, folder / "claw.cbor", cwd=tmp_path, CLAWLITE_STATE=tmp_path / "home/state"
        )
        assert done.returncode == 0, done.stderr


def _asked(id: str) -> dict:
    context = {"request_id": id, "identity": "audited"}
    params = {"name": "ask-first", "arguments": {}, "context": context}
    return {"jsonrpc": "2.0", "method": "claw.tool.call", "params": params}


def test_a_name_forges_no_record_in_the_list(tmp_path):
    folder = _project(tmp_path / "p", "destination: file")
    name = (
        "x  refused  (-32602)\n  15 2026-11-28T23:00:00Z tool.call     water  {}  "
        "approval: approved  ok  3004 ms\n "
    )
    with _agent(folder, tmp_path) as agent:
        agent.initialize()
        _call(agent, 1, name)
        _call(agent, 2, "show", {"text": "a\u2028\u202eb\ue000  ok  9 ms e" + "\u0301" * 9})
    words = "audit", "--last", "0", folder / "claw.cbor"
    shown = clawlite(*words, cwd=tmp_path, CLAWLITE_STATE=tmp_path / "home/state").stdout
    shown = shown.split("\n")[:-1]
    records = json.loads(_audit(folder, tmp_path, "--last", "0", "--json").stdout)
    assert len(shown) == len(records) and records[0]["tool"] == name
    for text, record in zip(shown, records):
        assert text.startswith("%4d %s " % (record["n"], record["time"]))
        assert not any(c in text for c in ("\u2028", "\u202e", "\ue000", "\u0301" * 4))
    columns = shown[0].split("  ")
    assert "refused" in columns and "(-32602)" in columns, columns
    assert "ok" not in columns and "3004 ms" not in columns, columns


def test_the_command_reads_no_more_than_the_newest_records(tmp_path):
    folder = _project(tmp_path / "p", "destination: file")
    with _agent(folder, tmp_path) as agent:
        agent.initialize()
        for number in range(3):
            _call(agent, number, "show")
    (tmp_path / "home/state/audited/audit-1.jsonl").mkdir()  # whoever reads it fails
    found = json.loads(_audit(folder, tmp_path, "--last", "2").stdout)
    assert [record["n"] for record in found][1:] == [found[0]["n"] + 1]
    assert _audit(folder, tmp_path, "--last", "0").returncode == 1


def test_a_tool_with_side_effects_is_on_record_before_it_runs(tmp_path):
    """However the agent ends: what may have changed something has a record of its begin."""
    folder = _project(tmp_path / "p", "destination: file")
    os.mkfifo(tmp_path / "changed")  # the tool waits in open() until somebody reads
    with _agent(folder, tmp_path) as agent:
        agent.initialize()
        agent.line(
            json.dumps(
                {
                    "jsonrpc": "2.0",
                    "id": 1,
                    "method": "claw.tool.call",
                    "params": {
                        "name": "change",
                        "arguments": {},
                        "context": {"request_id": UUID % 1, "identity": "audited"},
                    },
                }
            )
        )
        path = tmp_path / "home/state/audited/audit.jsonl"
        eventually(lambda: path.exists() and b"tool.begin" in path.read_bytes())
        os.kill(agent.process.pid, signal.SIGKILL)
    assert [record["event"] for record in json.loads(_audit(folder, tmp_path).stdout)] == [
        "tool.begin"
    ]
    assert _audit(folder, tmp_path, "verify").returncode == 0


@pytest.mark.parametrize(
    "number, code", [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]
)
def test_a_signal_leaves_a_record_of_the_end_of_what_had_begun(tmp_path, number, code):
    folder = _project(tmp_path / "p", "destination: file")
    os.mkfifo(tmp_path / "changed")  # the tool waits in open() until somebody reads
    with _agent(folder, tmp_path) as agent:
        agent.initialize()
        agent.line(
            json.dumps(
                {
                    "jsonrpc": "2.0",
                    "id": 1,
                    "method": "claw.tool.call",
                    "params": {
                        "name": "change",
                        "arguments": {},
                        "context": {"request_id": UUID % 1, "identity": "audited"},
                    },
                }
            )
        )
        path = tmp_path / "home/state/audited/audit.jsonl"
        eventually(lambda: path.exists() and b"tool.begin" in path.read_bytes())
        agent.signal_at_rest(number)
        assert agent.wait() == code and json.loads(agent.unread)["id"] == 1
    records = json.loads(_audit(folder, tmp_path).stdout)
    assert (
        records[0]["event"] == "tool.begin"
        and records[-1]["event"] in ("tool.call", "task.cancelled")
        and len(records) >= 2
    )
    assert _audit(folder, tmp_path, "verify").returncode == 0


def test_the_calls_of_a_batch_are_answered_once_they_are_on_record(tmp_path):
    folder = _project(tmp_path / "p", "destination: file")
    with _agent(folder, tmp_path) as agent:
        agent.line(json.dumps([{"jsonrpc": "2.0", "id": 1, "method": "claw.initialize"}]))
        assert agent.message()[0]["error"]["code"] == -32602
        agent.initialize()
        agent.line(json.dumps([tool_call("change", number=n) for n in (2, 3)]))
        for answer in agent.message():
            assert answer["result"]["isError"] is False, answer
    assert "change" in _audit(folder, tmp_path).stdout


@pytest.mark.parametrize("destination", ["file", "sqlite"])
def test_an_agent_says_that_its_audit_is_full_and_goes_on(tmp_path, destination):
    folder = _project(tmp_path / "p", "destination: " + destination)
    with open(folder / "clawlite.toml", "a") as file:
        file.write("[audit]\nmax_size_mb = 8\n")
    assert clawlite("build", cwd=folder).returncode == 0
    shown = clawlite("inspect", folder / "claw.cbor", cwd=tmp_path).stdout
    assert "%s, kept for ever, at most 8 MiB on Linux" % destination in shown, shown
    state = tmp_path / "home/state/audited"
    store = _store(destination, state, agent="audited")
    for _ in range(12):  # MiB, from before there was a bound
        store.append(_make(*[{"time": "t", "k": "x" * 8000}] * 131), int(time.time()))
    store.close()
    with _agent(folder, tmp_path) as agent:
        agent.initialize()
        assert _call(agent, 1, "change")["result"]["isError"] is False
        assert _call(agent, 2, "change")["result"]["isError"] is False
        told = agent.errors()
    assert (
        told.count("the audit is full; from now on its oldest records are removed: records 1 to ")
        == 1
    ), told
    records = json.loads(_audit(folder, tmp_path, "--last", "0").stdout)
    removed = [record for record in records if record.get("event") == "audit.removed"]
    assert removed and records[0]["n"] > 1 and "[audit] max_size_mb" in removed[0]["removed"]
    assert [record["event"] for record in records[-2:]] == ["tool.begin", "tool.call"]
    assert _audit(folder, tmp_path, "verify").returncode == 0


@pytest.mark.parametrize(
    "size, words",
    [
        ("7", "at least 8, or 0"),
        ("-1", "max_size_mb"),
        ("1048577", "max_size_mb"),
        ('"8"', "max_size_mb"),
    ],
)
def test_a_size_that_no_audit_can_have_is_refused(tmp_path, size, words):
    folder = _project(tmp_path / "p", "destination: file")
    with open(folder / "clawlite.toml", "a") as file:
        file.write("[audit]\nmax_size_mb = %s\n" % size)
    done = clawlite("build", cwd=folder)
    assert done.returncode == 2 and words in done.stderr, done.stderr


@pytest.mark.parametrize("destination", STORES)
@pytest.mark.parametrize("size, most", [([], 64 << 20), ([8], 8 << 20), ([0], 0)])
def test_an_audit_has_a_bound_unless_its_image_says_none(
    tmp_path, monkeypatch, destination, size, most
):
    made = []
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path))
    monkeypatch.setattr(files, "FileStore", lambda *one: made.append(one))
    monkeypatch.setattr(sqlite, "SQLiteStore", lambda *one: made.append(one))
    store_of("a", [True, True, True, None, destination, None, *size])
    assert made[0][-1] == most


def test_what_the_policy_does_not_want_is_not_in_it(tmp_path):
    folder = _project(tmp_path / "p", "log_inputs: false, log_approvals: false")
    with _agent(folder, tmp_path) as agent:
        agent.initialize()
        _call(agent, 1, "show", {"text": "private"})
    records = json.loads(_audit(folder, tmp_path).stdout)
    assert (
        "arguments" not in records[0]
        and "output" not in records[0]
        and "private" not in json.dumps(records)
    )


def test_an_agent_without_an_audit_says_so(tmp_path):
    folder = tmp_path / "p"
    _project(folder, "destination: file")
    assert "no audit in" in _audit(folder, tmp_path).stderr, "nothing has run yet"
    (folder / "claw.yaml").write_text((MANIFEST % "").replace("        audit: {  }\n", ""))
    assert clawlite("build", cwd=folder).returncode == 0
    done = _audit(folder, tmp_path, "verify")
    assert (
        done.returncode == 1
        and "keeps no audit" in done.stderr
        and "error" in json.loads(done.stdout)
    )
    assert (
        clawlite("audit", "--last", "x", cwd=tmp_path).returncode == 2
        and clawlite("audit", "--anchor", "1:2", cwd=tmp_path).returncode == 2
    )
    anchor = ["verify", "--anchor", "\u00b2:" + "0" * 64]
    for words in (["--last", "\u00b2"], ["--last", "9" * 5000], anchor):
        done = clawlite("audit", *words, cwd=tmp_path)
        assert done.returncode == 2 and "expected" in done.stderr, done.stderr
        assert "Traceback" not in done.stderr
    assert (
        clawlite("audit", "a", "b", cwd=tmp_path).returncode == 2
        and "--anchor" in clawlite("audit", "verify", "--help", cwd=tmp_path).stdout
    )


def test_an_audit_that_cannot_be_written_stops_tools(tmp_path):
    """It fails closed: no tool with side effects begins, and the caller is told why."""
    folder = _project(tmp_path / "p", "destination: file")
    with _agent(folder, tmp_path, without_root_rights) as agent:
        agent.initialize()
        assert _call(agent, 1, "change")["result"]["isError"] is False
        state = tmp_path / "home/state/audited"
        for name in ("audit.jsonl", "audit.head"):
            os.rename(state / name, tmp_path / name)
            os.mkdir(state / name)  # no file, and none that could be made
        answer = _call(agent, 2, "change")
        later = _call(agent, 3, "change")
    assert "error" in later or "error" in answer, (answer, later)
    assert (tmp_path / "changed").read_text() == "x", "it ran, and nobody could write that down"
    texts = json.dumps([answer, later])
    assert "the audit cannot be written" in texts, texts


@pytest.mark.parametrize("alone", [True, False])
def test_nobody_hears_of_a_call_that_is_not_on_record(tmp_path, alone):
    """Nor of one without side effects, which may run."""
    folder = _project(tmp_path / "p", "destination: file")
    with _agent(folder, tmp_path, without_root_rights) as agent:
        agent.initialize()
        assert _call(agent, 1, "show", {"text": "x"})["result"]["isError"] is False
        state = tmp_path / "home/state/audited"
        for name in ("audit.jsonl", "audit.head"):
            os.rename(state / name, tmp_path / name)
            os.mkdir(state / name)
        if alone:
            answers = [_call(agent, 2, "show", {"text": "x"})]
        else:
            agent.line(
                "\n".join(json.dumps(tool_call("show", {"text": "x"}, number)) for number in (2, 3))
            )
            answers = [agent.message(), agent.message()]
    for answer in answers:
        assert (
            answer["error"]["code"] == -32603
            and "the audit cannot be written" in answer["error"]["message"]
            and answer["error"]["data"]["hint"]
        ), answer


def test_an_agent_whose_audit_cannot_be_written_does_not_start(tmp_path):
    folder = _project(tmp_path / "p", "destination: file")
    state = tmp_path / "home/state/audited"
    (state / "audit.head").mkdir(parents=True)
    with _agent(folder, tmp_path) as agent:
        answer = agent.call("claw.initialize", INITIALIZE)
        assert "audit cannot be written" in json.dumps(answer) and _call(agent, 1, "change").get(
            "error"
        )
    assert not (tmp_path / "changed").exists()


def campaign(folder, tmp_path, seed: int, kills: int) -> int:
    """Kill an agent *kills* times at any moment; return how many records were acknowledged.
    Raises AssertionError when one is lost.
    """
    chance, acknowledged, number = random.Random(seed), set(), 0
    for _ in range(kills):
        with _agent(folder, tmp_path) as agent:
            agent.initialize()
            first = number
            for _ in range(chance.randrange(1, 30)):
                number += 1
                agent.line(
                    json.dumps(
                        {
                            "jsonrpc": "2.0",
                            "id": number,
                            "method": "claw.tool.call",
                            "params": {
                                "name": chance.choice(("show", "change")),
                                "arguments": {"text": "x" * chance.randrange(3000)},
                                "context": {"request_id": UUID % number, "identity": "audited"},
                            },
                        }
                    )
                )
            for _ in range(chance.randrange(number - first + 1)):
                acknowledged.add(UUID % agent.message()["id"])
            os.kill(agent.process.pid, signal.SIGKILL)
    done = _audit(folder, tmp_path, "--last", "0")
    held = {record.get("request_id") for record in json.loads(done.stdout)}
    assert acknowledged <= held, "seed %d: lost %s" % (seed, sorted(acknowledged - held))
    verified = _audit(folder, tmp_path, "verify")
    assert verified.returncode == 0, "seed %d: %s" % (seed, verified.stdout)
    return len(acknowledged)


@pytest.mark.parametrize("destination", ["file", "sqlite"])
def test_kill_9_loses_no_acknowledged_record(tmp_path, destination):
    folder = _project(tmp_path / "p", "destination: %s" % destination)
    assert campaign(folder, tmp_path, random.randrange(10**6), 8) > 8

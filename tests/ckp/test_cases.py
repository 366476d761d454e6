"""Every case of cases.jsonl against a real agent, one test each.

One that cannot hold yet stands in pending.toml with what it waits for, and is expected to fail:
when it begins to hold, its test fails until it is taken off that list.  Those that wait for the
process sandbox alone are run with none as well."""

import copy
import os
import tempfile
from pathlib import Path

import pytest
from ckp import clock, expect, manifests, static, stores, triggers, turns, wire
from ckp.book import CASES, PENDING, waits_for
from ckp.transports import OVER

RUN = {
    "wire": wire.run,
    "clock": clock.run,
    "agent_turn": turns.run,
    "channel": turns.run,
    "skill": turns.run,
    "memory-scope": stores.run,
    "trigger": triggers.run,
    "manifest": static.run_manifest,
    "uri": static.run_uri,
    "policy": static.run_policy,
    "secret": static.run_secret,
}
SETUP = {
    "manifest",
    "patch",
    "session",
    "clock",
    "env",
    "sink",
    "fault",
    "mcp_server",
    "dns",
    "provider",
    "state_dir",
}
# first words of entries that static.py reads
OF_THEIR_OWN = ("parse", "action", "rule_id", "value", "valid")


def _cases():
    for id in CASES:
        marks = [
            pytest.mark.xfail(
                reason="waits for %s: %s" % (name, PENDING[name]["reason"]),
                raises=AssertionError,
                strict=True,
            )
            for name in waits_for(id)
        ]
        yield pytest.param(CASES[id], id=id, marks=marks)


# They say nothing of isolation, and a tool that runs in the agent's own process is another way.
WITHOUT_ISOLATION = ("LC-12", "LC-13", "RPC-27", "POL-21", "APR-01", "QTA-04", "IDM-02", "IDM-03")


@pytest.mark.parametrize("case", list(_cases()))
def test_case(case, tmp_path, monkeypatch):
    more = [monkeypatch] if case["input"]["kind"] == "secret" else []
    RUN[case["input"]["kind"]](case, tmp_path, *more)


@pytest.mark.parametrize("case", [pytest.param(CASES[id], id=id) for id in WITHOUT_ISOLATION])
def test_case_without_isolation(case, tmp_path):
    wire.run(case, tmp_path, manifests.in_process(manifests.resolved(case["setup"])))


# what only a process on pipes shows: its input ends, its output is closed, it is started again
OF_STDIO = {"eof", "close_stdout", "restart"}
AT_ITS_END = "telemetry_events"  # is told when the input has ended


def _cases_of_transports():
    for id, case in CASES.items():
        is_wire = case["input"]["kind"] == "wire" and not waits_for(id)
        is_wire = is_wire and not any(AT_ITS_END in entry for entry in case["expect"])
        if is_wire and not any(OF_STDIO & set(step) for step in case["input"]["steps"]):
            yield pytest.param(case, id=id)


@pytest.mark.parametrize("transport", list(OVER))
@pytest.mark.parametrize("case", list(_cases_of_transports()))
def test_case_over_other_transports(case, transport, tmp_path):
    """CKP 0.2.0, 9.2: the same results as over stdio."""
    wire.run(case, tmp_path, operator=OVER[transport])


def test_a_limit_of_a_full_sandbox_is_met_by_the_tool():
    """Sandbox page 0.3.0 (5.7): resource limits MUST be enforced. An error alone proves nothing:
    the tool has run, because what clawlite.toml calls writable reaches it in mode full, too.
    """
    case = copy.deepcopy(CASES["SBX-23"])
    case["expect"] = [
        {"id": 2, "text_contains": "Too many open files"},
        {"executed": {"open-files": 1}},
    ]
    # mode full has no other names: the tools' user must be able to enter the folder by its own
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        wire.run(case, Path(folder))


def test_every_word_of_every_case_is_read():
    assert len(CASES) == 113
    for case in CASES.values():
        assert case["input"]["kind"] in RUN and set(case["setup"]) <= SETUP, case["id"]
        for entry in case["expect"]:
            assert list(entry)[0] in OF_THEIR_OWN or expect.unknown(entry) == set(), (
                case["id"],
                entry,
            )
        for step in case["input"].get("steps", ()):
            assert len(set(step) & {*wire.STEPS, "advance_s"}) == 1, (case["id"], step)


def test_pending_lists_cases_that_are_there_and_says_why():
    listed = [id for group in PENDING.values() for id in group["cases"]]
    assert set(listed) <= set(CASES) and len(set(listed)) == len(listed)
    assert all(group["reason"] for group in PENDING.values())

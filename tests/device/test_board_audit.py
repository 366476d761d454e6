"""The audit of a board: the records of a Pi byte for byte, power that goes, a flash that is
full, and what is refused (docs/audit.md).
"""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pico_stack
import pytest
from agents import UUID, Agent, eventually, linux
from secret_samples import samples

from clawlite.host.boards import boards
from clawlite.host.builder import build
from clawlite.host.fit import board_fit
from clawlite.host.manifest import manifest
from clawlite.linux.audit import files
from clawlite.linux.audit.chain import verify

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
HEAP = "168k"  # 64-bit unix port, linked modules
MANIFEST = """
claw: "0.3.0"
kind: Claw
metadata: { name: audited, version: "1.0.0" }
spec:
  identity: { inline: { personality: "x", autonomy: autonomous } }
  providers: [ { inline: { protocol: custom, endpoint: "builtin:replay", model: none, auth: { type: none } } } ]
  tools:
    - inline: { name: show, description: "Show.", annotations: { readOnlyHint: true },
                input_schema: { type: object, properties: { text: { type: string } }, required: [text] } }
    - inline: { name: change, description: "Change.", input_schema: { type: object } }
    - inline: { name: ask-first, description: "Ask.", input_schema: { type: object, properties: { at: { type: string } } } }
    - inline: { name: fail, description: "Fail.", input_schema: { type: object } }
    - inline: { name: never, description: "Never.", input_schema: { type: object } }
  sandbox: { inline: { name: bare, level: none } }
  policies:
    - inline:
        rules:
          - { id: asks, action: require-approval, scope: tool, match: { name: ask-first } }
          - { id: no, action: deny, scope: tool, match: { name: never } }
          - { id: all, action: allow, scope: all }
        %s
"""  # noqa: E501
TOOLS = '''def show(text: str) -> str:
    """Show."""
    return text


def change() -> str:
    """Change."""
    return "changed"


def ask_first(at: str = "") -> str:
    """Ask."""
    return "done"


def fail() -> str:
    """Fail."""
    raise ValueError("no")


def never() -> str:
    """Never."""
    return "x"
'''


def project(folder: Path, policy: str = "audit: { log_outputs: true }") -> Path:
    """Write a project and build it; return its image."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {
        "claw.yaml": MANIFEST % policy,
        "tools.py": TOOLS,
        "clawlite.toml": 'replay = "r.jsonl"\n',
        "r.jsonl": '{"user": null}\n{"say": "ok"}\n',
    }.items():
        (folder / name).write_text(text)
    return Path(build.build_beside(str(folder)))


@pytest.fixture
def start(micropython, tree, tmp_path):
    """Return a function that boots an image for an operator."""

    def run(image, heap: str = "400k") -> Agent:
        return Agent(
            [
                pico_stack.micropython(),
                "-X",
                f"heapsize={heap}",
                tree / "start.py",
                image,
                "--stdio",
            ],
            tmp_path / "home",
            env={"MICROPYPATH": f"{tree}:.frozen"},
        )

    return run


def call(agent, number: int, tool, arguments: dict = {}) -> dict:
    return agent.call(
        "claw.tool.call",
        {
            "name": tool,
            "arguments": arguments,
            "context": {"request_id": UUID % number, "identity": "audited"},
        },
        number,
    )


def verified(folder) -> dict:
    lines, head, _ = files.read(str(folder))
    return verify(lines, head, "audited")


def lines(folder) -> list:
    return list(files.read(str(folder))[0])


def records(folder) -> list:
    return [json.loads(line) for line in lines(folder)]


def transcript(agent):
    """What both play: each end that a call has, and texts that two writers of JSON may write in
    two ways.
    """
    agent.initialize()
    token = samples(5)["gitlab"][0][0]
    texts = [
        token + ' \b\f\x01\x7f"\\/ \u00e4\u20ac\U0001f600',
        "x" * 4095,
        "x" * 4096,
        "x" * 4097,
        "\u20ac" * 1200,
        "\\" * 2500,
        "",
    ]
    for number, text in enumerate(texts):
        call(agent, number, "show", {"text": text})
    for number, (tool, arguments) in enumerate(
        [
            ("change", {}),
            ("fail", {}),
            ("never", {}),
            ("nothing", {"a": [1, {"b": None}]}),
            ("show", {"text": 3}),
            ("show", []),
            ({"b": 1, "a": [2]}, {}),
            ("s" * 5000, {}),
            ("show", {"z": 1, "text": 2, "m": [True, None]}),
        ],
        20,
    ):
        call(agent, number, tool, arguments)
    call(agent, 20, "change")  # again
    for number, verb in ((40, "approve"), (42, "deny")):
        agent.line(
            json.dumps(
                {
                    "jsonrpc": "2.0",
                    "id": number,
                    "method": "claw.tool.call",
                    "params": {
                        "name": "ask-first",
                        "arguments": {"at": "%d" % number},
                        "context": {"request_id": UUID % number, "identity": "audited"},
                    },
                }
            )
        )
        agent.line(
            json.dumps(
                {
                    "jsonrpc": "2.0",
                    "id": number + 1,
                    "method": "claw.tool." + verb,
                    "params": dict(
                        {"request_id": UUID % number},
                        **({"reason": "not today"} if verb == "deny" else {}),
                    ),
                }
            )
        )
        assert {agent.message()["id"], agent.message()["id"]} == {number, number + 1}


def comparable(line: bytes) -> bytes:
    """Return a line without what differs by nature: times, and so the hash of the line before."""
    line = re.sub(rb'"prev":"[0-9a-f]{64}"', b'"prev":"-"', line, count=1)
    return re.sub(
        rb'"duration_ms":[0-9]+',
        b'"duration_ms":0',
        re.sub(rb'"time":"[0-9TZ:-]+"', b'"time":"-"', line, count=1),
    )


@pytest.mark.parametrize(
    "policy",
    [
        "audit: { log_outputs: true }",
        "audit: { log_inputs: false, log_approvals: false }",
        "audit: { log_outputs: true }, secret_scanning: { enabled: true }".replace(
            ", secret", "\n        secret"
        ),
    ],
)
def test_a_board_writes_the_lines_of_a_pi(start, tmp_path, policy):
    image = project(tmp_path / "flash", policy)
    with start(image) as agent:
        transcript(agent)
        agent.end()
        assert agent.wait() == 0 and agent.errors() == ""
    with Agent(linux("serve", image, "--stdio"), tmp_path / "home") as agent:
        transcript(agent)
        agent.end()
        agent.wait()
    here, there = tmp_path / "flash/audit-audited", tmp_path / "home/state/audited"
    assert verified(here)["ok"] and verified(there)["ok"], (verified(here), verified(there))
    assert [comparable(line) for line in lines(here)] == [comparable(line) for line in lines(there)]
    found = records(here)
    assert len(found) == verified(here)["last"] >= 20 and {record["event"] for record in found} >= {
        "tool.call",
        "tool.begin",
    }
    text = b"\n".join(lines(here)).decode()
    assert samples(5)["gitlab"][0][0] not in text
    assert ("[REDACTED: gitlab]" in text) == ("log_inputs: false" not in policy) and (
        '"output"' in text
    ) == ("log_outputs: true" in policy)
    assert ("tool.approval" in text) == ("log_approvals: false" not in policy)


def test_it_goes_on_where_it_was_and_within_a_boards_heap(start, tmp_path):
    image, folder = (
        project(tmp_path / "flash", "audit: { destination: file }"),
        tmp_path / "flash/audit-audited",
    )
    for number in range(3):
        with start(image, HEAP) as agent:
            agent.initialize()
            call(agent, number, "change")
            assert (
                "x" * 4000
                in call(agent, 100 + number, "show", {"text": "x" * 4000})["result"]["content"][0][
                    "text"
                ]
            )
            agent.end()
            assert agent.wait() == 0 and agent.errors() == "", agent.errors()
    assert (
        verified(folder)["ok"]
        and [record["event"] for record in records(folder)]
        == ["tool.begin", "tool.call", "tool.call"] * 3
    )
    assert "cut" not in records(folder)[-1] and records(folder)[0]["request_id"] == UUID % 0


def test_a_record_that_has_no_room_in_memory_is_there_in_part(start, tmp_path):
    """Of a heap that is just enough for the agent: its arguments are left out, and it says so."""
    image, folder = (
        project(tmp_path / "flash", "audit: { destination: file }"),
        tmp_path / "flash/audit-audited",
    )
    cut = False
    for heap in range(96, 168, 4):
        with start(image, "%dk" % heap) as agent:
            answer = None
            try:
                agent.initialize()
                answer = call(agent, heap, "show", {"text": '\\"' * 1900})
            # it does not even boot, or says that it has no memory for the request
            except (AssertionError, BrokenPipeError, KeyError):
                pass
        here = [record for record in records(folder) if record.get("request_id") == UUID % heap]
        if answer and "result" in answer:
            assert len(here) == 1, "answered, and not on record"
            cut = cut or here[0].get("cut") is True and "arguments" not in here[0]
    assert verified(folder)["ok"] and cut


def test_what_was_torn_changed_or_taken_away_is_said(start, tmp_path):
    image, folder = (
        project(tmp_path / "flash", "audit: { destination: file }"),
        tmp_path / "flash/audit-audited",
    )
    path = folder / "audit.jsonl"

    def run(number: int):
        with start(image) as agent:
            agent.initialize()
            assert call(agent, number, "show", {"text": "x"})["result"]["isError"] is False
            agent.end()
            agent.wait()
        return [
            record["problem"] for record in records(folder) if record["event"] == "audit.problem"
        ]

    assert run(1) == [] and run(2) == []
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"n":3,"prev":"00')
    assert (
        run(3) == ["17 bytes of a record that was never finished were cut off"]
        and verified(folder)["ok"]
    )
    (folder / "audit.new").write_bytes(b"what a power cut left")
    assert run(4) == run(5) and verified(folder)["ok"] and not (folder / "audit.new").exists()
    before = path.read_bytes().splitlines(True)
    path.write_bytes(b"".join(before[:-2]))
    assert run(6)[1:] == ["the records do not end where the head says"]
    assert verified(folder)["problems"] == [
        "records %d to %d are missing before record %d"
        % (len(before) - 1, len(before), len(before) + 1)
    ]
    (folder / "audit.head").write_bytes(b"nonsense")
    assert (
        run(7)[-1] == "the head was damaged or missing; the records do not end where the head says"
    )
    assert not verified(folder)["ok"], "what was missing is missing still"


def test_an_audit_that_cannot_be_written_lets_nothing_run(start, tmp_path):
    image, folder = (
        project(tmp_path / "flash", "audit: { destination: file }"),
        tmp_path / "flash/audit-audited",
    )
    with start(image) as agent:
        agent.initialize()
        call(agent, 1, "change")
        (folder / "audit.jsonl").rename(folder / "aside")
        (folder / "audit.jsonl").mkdir()  # no file, and none that could be made
        refused = call(agent, 2, "change")
        assert (
            refused["error"]["code"] == -32603
            and "the audit cannot be written" in refused["error"]["message"]
        ), refused
        later = call(agent, 3, "show", {"text": "x"})
        assert "error" in later and "the audit cannot be written" in later["error"]["message"]
        assert later["error"]["data"]["hint"] == "look at the flash"  # it has room
        (folder / "audit.jsonl").rmdir()
        (folder / "aside").rename(folder / "audit.jsonl")
        eventually(lambda: agent.call("claw.status")["result"]["state"] == "READY")
        assert call(agent, 4, "change")["result"]["isError"] is False
        (folder / "audit.head").rename(folder / "aside")
        (folder / "audit.head").mkdir()
        withheld = call(agent, 5, "show", {"text": "x"})
        assert (
            withheld["error"]["code"] == -32603
            and "the audit cannot be written" in withheld["error"]["message"]
        ), withheld
        (folder / "audit.head").rmdir()
        (folder / "aside").rename(folder / "audit.head")
        eventually(lambda: agent.call("claw.status")["result"]["state"] == "READY")
        agent.end()
        agent.wait()
    assert verified(folder)["ok"], verified(folder)
    begun = [
        record["request_id"][-1] for record in records(folder) if record["event"] == "tool.begin"
    ]
    assert begun == ["1", "4"], "what was refused did not begin"
    assert records(folder)[-1]["request_id"] == UUID % 5, "what nobody heard of is on record"


def test_no_secret_of_the_board_stands_in_it(start, tmp_path):
    """Also where no policy looks for secrets."""
    image = project(tmp_path / "flash", "audit: { log_outputs: true }")
    (tmp_path / "flash/secrets").mkdir()
    (tmp_path / "flash/secrets/OTHER").write_text("stored/" + "on-this-board\n")
    with start(image) as agent:
        agent.initialize()
        call(agent, 1, "show", {"text": "it is stored/" + "on-this-board"})
        agent.end()
        agent.wait()
    (record,) = records(tmp_path / "flash/audit-audited")
    assert (
        record["arguments"] == '{"text":"it is [REDACTED: known]"}'
        and record["output"] == "it is [REDACTED: known]"
    )


# -- flash


def played(micropython, tmp_path, what: str) -> dict:
    done = subprocess.run(
        [*pico_stack.program(HERE / "audit_board.py", "24M"), what, tmp_path / "out"],
        capture_output=True,
        timeout=300,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    return json.loads((tmp_path / "out").read_text())


def test_power_that_goes_at_any_moment_loses_nothing_and_breaks_nothing(micropython, tmp_path):
    """At each write of a block, torn or not: what was acknowledged is there, and the chain is
    whole, over segments that turn and go.
    """
    found = played(micropython, tmp_path, "power")
    assert (
        found["wrong"] == []
        and found["states"] > 800
        and found["kept"][0] > 10
        and found["segments"] > 3
    ), found


def test_an_acknowledgement_before_the_write_is_caught(micropython, tmp_path):
    assert played(micropython, tmp_path, "late")["wrong"]


def test_what_a_record_costs(micropython, tmp_path):
    """docs/audit.md says it."""
    found = played(micropython, tmp_path, "cost")
    assert 340 < found["record"] < 420 and found["written"] < 3600 and found["erased"] < 140, found


def test_a_flash_that_is_full_is_an_error_and_nothing_is_removed(micropython, tmp_path):
    found = played(micropython, tmp_path, "full")
    assert found["records"] > 150 and found["said"][0].startswith(
        "the audit has no room for more: /disk/audit-a has "
    )
    assert found["after"] == [1, True, 1, 2] and found["again"] and found["waiting"] == 0, found


# -- what a board does not do


@pytest.mark.parametrize("destination", ["sqlite", "webhook", "syslog"])
def test_another_destination_is_refused_by_field_and_by_the_board(start, tmp_path, destination):
    image = (
        project(tmp_path / "flash", "audit: { destination: %s }" % destination)
        if destination != "webhook"
        else None
    )
    if image is None:
        project(tmp_path / "flash", "audit: { destination: file }")
        (tmp_path / "flash/clawlite.toml").write_text(
            'replay = "r.jsonl"\n[audit]\nwebhook = "https://a.example/x"\n'
        )
        (tmp_path / "flash/claw.yaml").write_text(MANIFEST % "audit: { destination: webhook }")
        image = build.build_beside(str(tmp_path / "flash"))
    for name in ("pico", "esp32"):
        (problem,) = board_fit.board_problems(
            manifest.load(str(tmp_path / "flash")), boards.profile(name), boards.load_all()
        )
        assert (
            "audit.destination: " in problem.text()
            and f"{name} keeps its audit in files" in problem.text()
            and "clawlite audit --port" in problem.text()
        )
        assert (
            ":22: " in problem.text()
            and f'found "{destination}"' in problem.text()
            and "rpi-4" in problem.text()
        )
    with start(image) as agent:
        assert (
            agent.wait() == 2
            and "this board cannot send its audit to %s" % destination in agent.errors()
        )
    assert not (tmp_path / "flash/audit-audited").exists()


def test_a_size_is_told_to_be_of_linux_and_the_board_takes_the_image(start, tmp_path):
    project(tmp_path / "flash", "audit: { retention: 30d }")
    (tmp_path / "flash/clawlite.toml").write_text('replay = "r.jsonl"\n[audit]\nmax_size_mb = 8\n')
    (note,) = board_fit.notes(manifest.load(str(tmp_path / "flash")), boards.profile("pico"))
    assert note["line"] == 3 and "pico does not use it" in note["message"]
    with start(build.build_beside(str(tmp_path / "flash"))) as agent:
        agent.initialize()


def test_a_maker_is_told_that_a_flash_is_not_for_ever(tmp_path):
    project(tmp_path / "flash", "audit: { destination: file }")
    (note,) = board_fit.notes(manifest.load(str(tmp_path / "flash")), boards.profile("pico"))
    assert (
        note["line"] == 22
        and "until the flash has no room" in note["message"]
        and "retention" in note["message"]
    )
    shutil.rmtree(tmp_path / "flash")
    project(tmp_path / "flash", "audit: { retention: 30d }")
    assert board_fit.notes(manifest.load(str(tmp_path / "flash")), boards.profile("pico")) == []
    assert (
        board_fit.board_problems(manifest.load(str(tmp_path / "flash")), boards.profile("pico"))
        == []
    )


def test_ctrl_c_between_a_record_and_its_head_breaks_no_chain(micropython, tmp_path):
    """Nor does a lack of memory there, after which a shorter record is written.  Both are there:
    what was written of the first is a record, too.
    """
    found = played(micropython, tmp_path, "interrupted")
    assert found == {
        "KeyboardInterrupt": [True, [1, 2, 2, 3]],
        "MemoryError": [False, [1, 2, 2, 3]],
    }

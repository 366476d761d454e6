"""A board looks at texts (clawlite/scan): what leaves it, what comes in, and within which heap;
linked, .mpy at -O3.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pico_stack
import pytest
from llm_server import Server, calls, say

from clawlite.host.builder import build
from clawlite.host.firmware import firmware

ROOT = Path(__file__).resolve().parents[2]
# results of 7 KB looked at for everything: 64-bit unix port, linked modules
HEAP = "240k"
KEY = "k-canary " + "7f3a/91c"
TOOLS = '''def look(where: str) -> str:
    """Look somewhere."""
    return "Seen: " + where
'''


@pytest.fixture(scope="module")
def board(micropython, mpy_cross, tmp_path_factory):
    """Return a function that runs main.mpy over an image: (image, stdin, arguments, heap) ->
    CompletedProcess.
    """
    tree = tmp_path_factory.mktemp("board")
    firmware.build(tree, mpy_cross)
    (tree / "start.py").write_text("import sys, main\nsys.exit(main.main(sys.argv[1:]))\n")

    def run(image, stdin, *arguments, heap="400k"):
        return subprocess.run(
            [
                pico_stack.micropython(),
                "-X",
                f"heapsize={heap}",
                str(tree / "start.py"),
                str(image),
                *arguments,
            ],
            input=stdin.encode(),
            capture_output=True,
            timeout=300,
            env=dict(os.environ, MICROPYPATH=f"{tree}:.frozen", BOARD_KEY=KEY),
        )

    return run


def golden(tmp_path):
    return shutil.copytree(ROOT / "tests/golden/guarded", tmp_path / "guarded") / "claw.cbor"


def test_a_board_says_what_the_transcript_says(board, tmp_path):
    script = json.loads((ROOT / "tests/golden/guarded-operator.golden.json").read_text())
    lines = "".join(argument + "\n" for _, what, argument, _ in script["steps"] if what == "record")
    done = board(golden(tmp_path), lines, "--stdio", heap=HEAP)
    assert done.returncode == 0 and done.stderr == b"", done.stderr
    told = [
        effect[1] for *_, effects in script["steps"] for effect in effects if effect[0] == "send"
    ]
    assert [json.loads(line) for line in done.stdout.splitlines()] == told and len(told) == 11


def project(tmp_path, server, blocks: str, log: str = "allow"):
    (tmp_path / "claw.yaml").write_text(f"""claw: "0.3.0"
kind: Claw
metadata: {{ name: board, version: "1.0.0" }}
spec:
  identity: {{ inline: {{ personality: "You keep a garden.", autonomy: autonomous }} }}
  providers:
    - inline: {{ name: remote, protocol: openai-compatible, endpoint: "{server.endpoint}", model: test-model, streaming: true,
                auth: {{ type: bearer, secret_ref: BOARD_KEY }} }}
  sandbox: {{ inline: {{ level: none }} }}
  policies: [{{ inline: {{ rules: [{{ id: all, action: {log}, scope: all }}], {blocks} }} }}]
""")  # noqa: E501
    (tmp_path / "tools.py").write_text(TOOLS)
    return build.build_beside(str(tmp_path))


def test_no_known_secret_leaves_a_board(board, tmp_path):
    """Not in a reply that comes in pieces, not in the log, not in what a provider sees of a
    result.
    """
    (tmp_path / "secrets").mkdir()
    stored = "stored/" + "on-this-board"
    (tmp_path / "secrets/OTHER").write_text(stored + "\n")
    coded = KEY.encode().hex()
    with Server(
        [
            calls(("look", {"where": "%s and %s" % (stored, coded)})),
            say("The key is %s.\nAnd %s, too" % (KEY, stored)),
        ]
    ) as server:
        image = project(tmp_path, server, "secret_scanning: { enabled: true }", "audit-only")
        done = board(image, "what is the key?\n")
        seen = json.dumps(server.requests[1].body["messages"][-1])
    assert done.returncode == 0, done.stderr
    out = done.stdout.decode()
    assert "The key is [REDACTED: known].\nAnd [REDACTED: known], too" in out, out
    log = (tmp_path / "log.jsonl").read_text()
    for text in (out, log, seen):
        assert KEY not in text and stored not in text and coded not in text
    assert log.count("[REDACTED: known]") >= 2 and "secret:known" in log


def test_what_a_person_types_is_checked(board, tmp_path):
    with Server([say("Fine.")]) as server:
        image = project(
            tmp_path,
            server,
            "input_validation: { max_size_bytes: 20, "
            "null_byte_detection: true }, secret_scanning: { scope: "
            "input, action: block }",
        )
        done = board(image, "x" * 21 + "\n" + "it is %s\n" % KEY[:4] + "a\0b\n")
        assert len(server.requests) == 1
    out = done.stdout.decode()
    assert "at most 20 bytes" in out and "Fine." in out and "a NUL byte" in out


def test_a_board_without_the_abilities_is_refused_by_line(tmp_path):
    from clawlite.host.boards import boards
    from clawlite.host.compiler import compiler
    from clawlite.host.fit import board_fit
    from clawlite.host.manifest import manifest

    with Server([]) as server:
        project(tmp_path, server, "prompt_injection: { detection: hybrid }")
    text = (tmp_path / "claw.yaml").read_text()
    loaded = manifest.load(tmp_path)
    pico = boards.profile("pico-w", str(tmp_path))
    assert compiler.requires(loaded).count("guard-model") == 1
    (problem,) = [p for p in board_fit.board_problems(loaded, pico, boards.load_all(str(tmp_path)))]
    assert (
        "guard-model" in problem.text()
        and "detection: pattern" in problem.text()
        and ":%d" % (text[: text.index("prompt_injection")].count("\n") + 1) in problem.text()
    )

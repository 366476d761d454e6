"""A board's stack: what stands for it on the unix port, and that what boards do fits into it."""

import json
import os
import pathlib
import runpy
import shutil
import subprocess

import pico_stack
import pytest
import slot_board
from agents import INITIALIZE, UUID
from llm_server import Server, calls, say
from sims import Client, simulated

from clawlite.core.base.errors import wrap_error
from clawlite.core.formats.cbor import MAX_DEPTH
from clawlite.host.bench import heap
from clawlite.host.builder import build
from clawlite.host.fit import stack
from clawlite.host.image.image_file import encode
from clawlite.host.projects import new
from clawlite.host.providers import reflexes

ROOT = pathlib.Path(__file__).resolve().parents[2]
PICO = stack.scale(stack.PICO)  # of it, a quarter stays free
RECURSE = """
def deep(n):
    global most
    most = n
    deep(n + 1)
try:
    deep(1)
except RuntimeError as e:
    print(most, e)
"""
IMPORT = """
import micropython
import sys
def below(n, left):
    return below(n + 1, left) if 80000 - micropython.stack_use() > left else load()
def load():
    import one
    return one.two.NAME
for left in map(int, sys.argv[1:]):
    try:
        print(below(0, left))
    except RuntimeError as e:
        print(e)
    for name in ("one", "two"):
        sys.modules.pop(name, None)
"""
DECODE = """
import micropython
import sys
from clawlite.core.formats.cbor import decode
def below(left):
    return below(left) if 80000 - micropython.stack_use() > left else decode(data)
with open(sys.argv[1], "rb") as file:
    data = file.read()
value, depth = below(2000), 0
while value:
    value, depth = value[1] if isinstance(value, dict) else value[0], depth + 1
print(depth)
"""


def run(micropython, folder, script: str, free: int, *arguments, path: str = ".frozen"):
    (folder / "script.py").write_text(script)
    return subprocess.run(
        [pico_stack.micropython(free), folder / "script.py", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        env={"MICROPYPATH": path},
    )


def test_a_plain_function_calls_itself_as_often_as_on_an_rp2040(micropython, tmp_path):
    whole = run(micropython, tmp_path, RECURSE, stack.scale(stack.PICO, 0)).stdout
    depth, error = whole.split(maxsplit=1)
    # measured on rp2: 30
    assert 28 <= int(depth) <= 31 and error == "maximum recursion depth exceeded\n", whole


def test_an_import_takes_what_it_takes_on_a_board_and_one_too_deep_is_an_error(
    micropython, tmp_path
):
    (tmp_path / "one.py").write_text("import two\n")
    (tmp_path / "two.py").write_text("NAME = 'imported'\n")
    done = run(micropython, tmp_path, IMPORT, 20000, 6000, 2000)
    assert (done.stdout, done.stderr) == ("imported\nmaximum recursion depth exceeded\n", "")


def test_a_program_ends_as_without(micropython, tmp_path):
    for script, code, said in (
        ("import sys\nprint(sys.argv[1:], __name__)\nsys.exit(3)", 3, "['a', 'b'] __main__\n"),
        ("raise ValueError('so')", 1, ""),
        ("print(1)", 0, "1\n"),
    ):
        done = run(micropython, tmp_path, script, PICO, "a", "b")
        assert (done.returncode, done.stdout) == (code, said)
        assert ("ValueError: so" in done.stderr) == (code == 1)


@pytest.mark.parametrize("container", ("array", "map"))
def test_nested_cbor_takes_no_stack(micropython, tmp_path, container):
    value = [0] if container == "array" else {1: 0}
    for _ in range(MAX_DEPTH - 1):
        value = [value] if container == "array" else {1: value}
    (tmp_path / "nested").write_bytes(encode(value))
    done = run(micropython, tmp_path, DECODE, PICO, tmp_path / "nested", path=f"{ROOT}:.frozen")
    assert done.stdout == f"{MAX_DEPTH}\n", done.stderr


DIALOGUE = (
    b"is the soil dry?\ny\nis the soil dry?\nwater the plants for 90 seconds\n/tools\n"
    b"/trace 3\n/status\n/quit\n"
)


@pytest.fixture(scope="module")
def greenhouse(tmp_path_factory):
    """Return the image of the template greenhouse that asks no model."""
    folder = tmp_path_factory.mktemp("project") / "greenhouse"
    new.new(str(folder), offline=True)
    return build.build(str(folder))["file"]


def talked(micropython, tree, image, folder, free: int):
    shutil.copytree(os.path.dirname(image), folder / "agent")
    return subprocess.run(
        [pico_stack.micropython(free), tree / "start.py", folder / "agent/claw.cbor"],
        input=DIALOGUE,
        capture_output=True,
        timeout=300,
        env={"MICROPYPATH": f"{tree}:.frozen"},
    )


def test_the_greenhouse_does_its_dialogue_with_a_quarter_of_a_picos_stack_free(
    micropython, tree, greenhouse, tmp_path
):
    done = talked(micropython, tree, greenhouse, tmp_path, PICO)
    said = done.stdout.decode()
    assert done.returncode == 0 and done.stderr == b"" and "stack" not in said, (said, done.stderr)
    for text in (
        "I would water it for 3 seconds",
        "Watered for 3 s",
        "The soil is wet enough",
        "expected at most 60, got 90",
        "approval: the person approved",
        "READY, level 2",
    ):
        assert text in said, said


def test_a_turn_that_the_stack_does_not_do_for_says_so_and_the_agent_goes_on(
    micropython, tree, greenhouse, tmp_path
):
    done = talked(micropython, tree, greenhouse, tmp_path, PICO - 400)
    said = done.stdout.decode()
    assert done.returncode == 0 and b"Traceback" not in done.stderr, (said, done.stderr)
    assert (
        "the stack of this device ran out" in said
        and "bug" not in said + done.stderr.decode()
        and "Watered for 3 s" in said
    ), said


@pytest.mark.parametrize("free", range(5200, 7400, 300))
def test_a_stack_that_does_not_do_for_the_boot_is_one_error_with_what_to_do(
    micropython, tree, greenhouse, tmp_path, free
):
    """Before the image is loaded, nothing in it is to blame.  From 6,700 on some boots get through
    with the same stack.  Then the first turn says so; the agent goes to ERROR at most, and may end
    there for the same reason.
    """
    done = talked(micropython, tree, greenhouse, tmp_path, free)
    said, lines = done.stdout.decode(), done.stderr.decode().splitlines()
    assert "bug" not in said and "Traceback" not in said, said
    for line in lines:
        assert line.startswith("clawlite: "), lines
        assert "the stack of this device ran out - " in line, lines
    if done.returncode == 2:
        loads = "is not loaded" in lines[0]
        step = "take a board with more stack" + ", or nest less in rules and schemas" * loads
        assert len(lines) == 1 and lines[0].endswith("ran out - " + step), lines
        assert loads or free < 6000, (free, lines)
    else:
        assert free > 6500, (free, lines)
        assert lines or "the stack of this device ran out" in said, said
        assert len(lines) <= 1 + done.returncode, (done.returncode, lines)


GOLDEN = ROOT / "tests/golden"


@pytest.mark.parametrize(
    "name", sorted(path.name.partition(".")[0] for path in GOLDEN.glob("*.steps.json"))
)
def test_what_the_transcripts_ask_for_fits_into_a_picos_stack(micropython, tree, tmp_path, name):
    """Guards, stores, calls on record, approvals, batches; every request has its answer."""
    script = json.loads((GOLDEN / f"{name}.steps.json").read_text())
    lines = "".join(
        argument + "\n"
        for _, what, argument in script["steps"]
        if what in ("line", "record") and "slow" not in argument
    )
    shutil.copytree(GOLDEN / script["agent"], tmp_path / "agent")
    done = subprocess.run(
        [
            pico_stack.micropython(PICO),
            tree / "start.py",
            tmp_path / "agent/claw.cbor",
            *["--stdio"] * name.endswith("operator"),
        ],
        input=lines.encode(),
        capture_output=True,
        timeout=120,
        env={"MICROPYPATH": f"{tree}:.frozen"},
    )
    assert (
        done.returncode == 0
        and done.stderr == b""
        and b"stack" not in done.stdout
        and len(done.stdout) > 150
    ), done
    if name.endswith("operator"):
        assert _ids(lines, "method") <= _ids(done.stdout.decode(), "jsonrpc")


def test_rules_of_as_many_levels_as_there_may_be_fit_into_a_picos_stack(
    micropython, tree, tmp_path
):
    """Each level is three arrays in the image; the reader of a board takes them without
    recursion.
    """
    rules, place = "", "rule"
    for level in range(reflexes.MAX_DEPTH):
        condition, seen = ('if = "seen > 1"', '"{seen}"') if level else ('when = "go"', 3)
        rules += f'[[{place}]]\n{condition}\ncall = "look"\narguments = {{ seen = {seen} }}\n'
        place += ".then"
    rules += f'[[{place}]]\nif = "seen > 1"\nsay = "At the last level: {{seen}}."\n'
    (tmp_path / "claw.yaml").write_text(slot_board.MANIFEST.format(version="1.0.0"))
    (tmp_path / "tools.py").write_text(
        'def look(seen: int) -> dict:\n    """Look."""\n    return {"seen": seen}\n'
    )
    (tmp_path / "clawlite.toml").write_text('reflex = "reflex.toml"\n')
    (tmp_path / "reflex.toml").write_text(rules)
    image = build.build_beside(str(tmp_path))
    done = subprocess.run(
        [pico_stack.micropython(PICO), tree / "start.py", image],
        input=b"go\n",
        capture_output=True,
        timeout=300,
        env={"MICROPYPATH": f"{tree}:.frozen"},
    )
    assert (done.returncode, done.stderr) == (0, b""), done
    assert b"At the last level: 3." in done.stdout, done


@pytest.mark.parametrize("levels", [15, 200])
def test_what_a_model_may_nest_fits_into_a_picos_stack(micropython, tree, tmp_path, levels):
    """Arguments of 16 levels run; of more, the model is told so, and the turn goes on."""
    arguments = {}
    for _ in range(levels):
        arguments = {"at": arguments}
    said = calls(("take", arguments)), say("Well, well.")
    with Server(said) as server:
        (tmp_path / "claw.yaml").write_text(
            NESTED.replace("builtin:replay", server.endpoint)
            .replace("protocol: custom", "protocol: openai-compatible, streaming: true")
            .replace("require-approval", "allow")
        )
        (tmp_path / "tools.py").write_text(
            'def take(at: dict = {}) -> dict:\n    """Take."""\n    return at\n'
        )
        done = subprocess.run(
            [pico_stack.micropython(PICO), tree / "start.py", build.build_beside(str(tmp_path))],
            input=b"go\n",
            capture_output=True,
            timeout=300,
            env={"MICROPYPATH": f"{tree}:.frozen"},
        )
        answer = server.requests[1].body["messages"][-1]["content"]
    assert (done.returncode, done.stderr) == (0, b"") and b"Well, well." in done.stdout, done
    assert ("nest too deep" in answer) is (levels == 200), answer


def _ids(lines: str, field: str) -> set:
    """Return the ids of what has *field* in *lines*, in batches, too."""

    def made(pairs):
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a name that stands twice: nobody can say which is meant")
        return dict(pairs)

    found = set()
    for line in lines.splitlines():
        try:
            said = json.loads(line, object_pairs_hook=made)
        except ValueError:
            continue
        for one in said if isinstance(said, list) else [said]:
            if isinstance(one, dict) and field in one and isinstance(one.get("id"), int | str):
                found.add(one["id"])
    return found


NESTED = """claw: "0.3.0"
kind: Claw
metadata: { name: nested, version: "1.0.0" }
spec:
  identity: { inline: { personality: "x", autonomy: autonomous } }
  providers: [ { inline: { protocol: custom, endpoint: "builtin:replay", model: none, auth: { type: none } } } ]
  tools:
    - inline: { name: take, description: "Take.", input_schema: { type: object, properties: { at: { $ref: "#/$defs/tree" } },
                $defs: { tree: { type: object, properties: { at: { $ref: "#/$defs/tree" } }, additionalProperties: false } } } }
  sandbox: { inline: { name: bare, level: none } }
  policies:
    - inline:
        rules: [ { id: asks, action: require-approval, scope: tool }, { id: all, action: allow, scope: all } ]
        audit: { destination: file, log_outputs: true }
        input_validation: { max_size_bytes: 8192, null_byte_detection: true, whitespace_analysis: true }
        secret_scanning: { enabled: true }
"""  # noqa: E501


def test_what_a_line_may_nest_fits_into_a_picos_stack(micropython, tree, tmp_path):
    """Its decoder takes 16 levels: arguments of 14 are checked against a schema that nests as
    they do, looked through for secrets, shown for an approval, run, and written to the audit.
    """
    (tmp_path / "claw.yaml").write_text(NESTED)
    (tmp_path / "tools.py").write_text(
        'def take(at: dict = {}) -> dict:\n    """Take."""\n    return at\n'
    )
    (tmp_path / "clawlite.toml").write_text('replay = "r.jsonl"\n')
    (tmp_path / "r.jsonl").write_text('{"user": null}\n{"say": "ok"}\n')
    image = build.build_beside(str(tmp_path))
    lines = [(0, "claw.initialize", INITIALIZE)]
    for levels in (14, 15):
        arguments = {}
        for _ in range(levels - 1):
            arguments = {"at": arguments}
        named = {"request_id": UUID % levels}
        call = {"name": "take", "arguments": arguments, "context": {**named, "identity": "nested"}}
        lines += [(levels, "claw.tool.call", call), (100 + levels, "claw.tool.approve", named)]
    requests = [
        json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}) + "\n"
        for id, method, params in lines
    ]
    done = subprocess.run(
        [pico_stack.micropython(PICO), tree / "start.py", image, "--stdio"],
        input="".join(requests).encode(),
        capture_output=True,
        timeout=120,
        env={"MICROPYPATH": f"{tree}:.frozen"},
    )
    assert done.returncode == 0 and done.stderr == b"", done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [a["result"]["isError"] for a in answers if a["id"] == 14] == [False], answers
    (refused,) = [a["error"] for a in answers if a["id"] is None]
    assert refused["code"] == -32700 and "at most 16 levels" in refused["message"]


@pytest.mark.parametrize("protocol, made", [row[1:] for row in heap.APIS])
def test_a_streamed_answer_over_http_fits_into_a_picos_stack(
    micropython, tree, tmp_path, protocol, made
):
    with heap.Server(*made("The garden is green. " * 10)) as server:
        heap.project(str(tmp_path), protocol, server.server_address[1])
        done = subprocess.run(
            [
                pico_stack.micropython(PICO),
                tree / "start.py",
                build.build_beside(str(tmp_path)),
            ],
            input=b"how is it?\n",
            capture_output=True,
            timeout=120,
            env={"MICROPYPATH": f"{tree}:.frozen", "BOARD_KEY": "key"},
        )
    assert (
        done.returncode == 0
        and done.stderr == b""
        and done.stdout.count(b"The garden is green.") == 10
    ), done


def test_a_stack_that_ran_out_is_no_bug_of_ours():
    error = wrap_error(RuntimeError("maximum recursion depth exceeded"))
    assert (
        error.message == "the stack of this device ran out"
        and "bug" not in error.hint
        and error.hint
    )


def test_a_stack_that_ran_out_before_an_image_is_loaded_blames_no_image():
    main = runpy.run_path(str(ROOT / "firmware-host/micropython/runtime/main.py"))
    said = main["ran_out"](RuntimeError("maximum recursion depth exceeded"))
    assert said == "the stack of this device ran out - take a board with more stack"
    assert "bug" in wrap_error(RuntimeError("something else")).hint


def test_the_whole_boot_has_a_quarter_of_a_picos_stack_free(micropython, mpy_cross, tmp_path):
    board = slot_board.Board(slot_board.contents_of_any(tmp_path), tmp_path)
    board.flash("1.0.0")
    (tmp_path / "start.py").write_text(slot_board.START)
    done = subprocess.run(
        [pico_stack.micropython(PICO), tmp_path / "start.py", board.root],
        input=b"hello\n",
        capture_output=True,
        timeout=300,
        env={"MICROPYPATH": ".frozen"},
    )
    assert (done.stdout.decode(), done.stderr) == (
        slot_board.WINDOW + slot_board.ready("1.0.0"),
        b"",
    )


def test_a_virtual_board_has_the_stack_of_the_board_that_it_stands_for(micropython, tmp_path):
    for board, least, most in (("pico", 18, 24), ("sim", 18, 24), ("esp32", 30, 60)):
        with (
            simulated(tmp_path / board, RECURSE, board=board) as running,
            Client(running.path) as client,
        ):
            depth = int(client.expect(b" maximum").split()[-1])
            assert least < depth < most, depth

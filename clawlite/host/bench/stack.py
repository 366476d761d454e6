"""The smallest stack in which a board does its work, as the unix port measures it
(host/fit/stack.py).

The target is a Pico's stack, of which a quarter must stay free.  The stack that TLS uses in C is
not counted.
"""

import json
import os
import pathlib
import shutil
import ssl
import subprocess
import sys

from clawlite.core.base.errors import ClawError
from clawlite.host.bench import agent, heap
from clawlite.host.bench.micropython import Board
from clawlite.host.bench.run import TRIES, build, find_smallest, spawn
from clawlite.host.fit import stack as board_stack

STEP, MOST = 100, 24000  # bytes
_ASK = b"is the soil dry?\n"
CONSOLE = (
    ("boot", b"", b"is ready"),
    ("first turn, with a question", _ASK, b"I would water it"),
    ("approval", _ASK + b"y\n", b"Watered for 3 s"),
    ("later turns", _ASK + b"y\n" + _ASK, b"The soil is wet enough"),
    ("why a call was decided", _ASK + b"y\n/trace 1\n", b"approval: the person approved"),
)
_CLAW = """claw: "0.3.0"
kind: Claw
metadata: { name: bench, version: "1.0.0" }
spec:
  identity: { inline: { personality: "You keep records.", autonomy: autonomous } }
  providers:
    - inline: { protocol: custom, endpoint: "builtin:reflex", model: reflex, auth: { type: none } }
  memory:
    inline: { stores: [{ name: notes, type: key-value, retention: { max_entries: 50 } }] }
  tools:
    - inline: { name: see, description: See, input_schema: { type: object, properties: { at: { type: string } } }, annotations: { readOnlyHint: true } }
  sandbox: { inline: { level: none } }
  policies:
    - inline:
        rules:
          - { id: asks, action: require-approval, scope: tool, match: { name: pour } }
          - { id: all, action: allow, scope: all }
        audit: { destination: file, log_outputs: true }
"""  # noqa: E501
_TOOLS = '''def look(at: str = "bed") -> dict:
    """Look somewhere."""
    return {"at": at, "seen": 3}


def see(at: str = "bed") -> dict:
    """See somewhere."""
    return {"at": at, "seen": 3}


def pour(seconds: int) -> str:
    """Pour."""
    return "Poured."
'''
_REFLEX = """[[rule]]
when = ["go"]
call = "look"

  [[rule.then]]
  if = "seen > 2"
  call = "look"

    [[rule.then.then]]
    if = "seen > 1"
    call = "look"

      [[rule.then.then.then]]
      say = "At the fourth level: {seen}."
"""


def stack(bench):
    """Yield a row for each kind of work: a linked agent, started from ``main``."""
    from clawlite.host.projects import new

    folder = os.path.join(bench.make("stack"), "greenhouse")
    new.new(folder, offline=True)
    board, image = Board(bench), build(folder)
    for case, typed, said in CONSOLE:
        yield _row(board, case, [image], typed + b"/quit\n", said)
    image = _recording(bench)
    yield _row(board, "a rule of four levels", [image], b"go\n/quit\n", b"At the fourth level: 3.")
    for case, requests, said in _operator():
        yield _row(board, case, [image, "--stdio"], requests, said)
    yield _audit(board, image)
    for over_tls in (False, True):
        yield _stream(bench, board, over_tls)


def _row(board, case: str, arguments: list, typed: bytes, said: bytes) -> dict:
    found = find_smallest(
        lambda free: _works(board, arguments, free, typed, said), STEP, MOST, board_stack.LEAST
    )
    target = board_stack.scale(board_stack.PICO)
    return board.row(
        f"smallest stack, {case}",
        "B",
        [found],
        f"in steps of {STEP}, {TRIES} of {TRIES} runs; {target} stand for a Pico's, a quarter free",
    )


def _works(board, arguments: list, free: int, typed: bytes, said: bytes) -> bool:
    folder = os.path.dirname(arguments[0])
    for name in os.listdir(folder):  # what the run before left
        if name.startswith(("calls.", "memory.")):
            os.remove(os.path.join(folder, name))
    words = board.within([*board_stack.arguments(free), board.start(), *arguments], 512)
    environment = board.environment(BOARD_KEY="key")
    done = subprocess.run(words, env=environment, input=typed, capture_output=True)
    return (
        done.returncode == 0 and said in done.stdout and b"stack" not in done.stdout + done.stderr
    )


def _audit(board, image: str) -> dict:
    """Return the row of a call whose arguments and result go on record in the audit, and nowhere
    else.  Raises ``ClawError`` when they have not.
    """
    case, folder = "the audit of a call", os.path.join(os.path.dirname(image), "audit-bench")
    shutil.rmtree(folder)  # the rows before left it
    arguments, lines = [image, "--stdio"], agent.opening() + _call(9, "see", {"at": "bed"})
    row = _row(board, case, arguments, lines, b'"id":9')
    records = b"".join(path.read_bytes() for path in pathlib.Path(folder).iterdir())
    if b'"see"' not in records:
        raise ClawError(f"{case}: it is not in {folder}")
    return row


def _recording(bench) -> str:
    """Return the image of an agent with rules, a store and an audit."""
    files = {"claw.yaml": _CLAW, "tools.py": _TOOLS, "reflex.toml": _REFLEX}
    files["clawlite.toml"] = 'reflex = "reflex.toml"\n'
    return build(agent.write_files(bench.make("record"), files))


def _call(id: int, name: str, arguments: dict) -> bytes:
    context = {"request_id": agent.UUID % id, "identity": "bench"}
    params = {"name": name, "arguments": arguments, "context": context}
    return agent.line("claw.tool.call", params, id)


def _operator() -> list:
    """Return [(case, lines of an operator, what its output has)]."""
    approve = agent.line("claw.tool.approve", {"request_id": agent.UUID % 3}, 4)
    batch = [json.loads(_call(id, "look", {"at": "bed"})) for id in (5, 6)]
    context = {"request_id": agent.UUID % 7, "identity": "bench"}
    entry = {"content": "The bed is dry.", "key": "bed"}
    store = {"store": "notes", "entries": [entry], "context": context}
    query = {"store": "notes", "query": {"type": "key", "key": "bed"}, "context": context}
    cases = (
        (
            "an operator's approval, on record and in the audit",
            [_call(3, "pour", {"seconds": 3}), approve],
            b"Poured.",
        ),
        ("an operator's batch", [json.dumps(batch).encode() + b"\n"], b'"id":6'),
        (
            "memory stored and found",
            [
                agent.line("claw.memory.store", store, 7),
                agent.line("claw.memory.query", query, 8),
            ],
            b"The bed is dry.",
        ),
    )
    return [(case, agent.opening() + b"".join(lines), said) for case, lines, said in cases]


def _stream(bench, board, over_tls: bool) -> dict:
    """Return the row of an answer that an OpenAI-compatible server streams."""
    name, protocol, events = heap.APIS[0]
    folder = bench.make("over-tls" if over_tls else "streamed")
    context, ca_file = _tls(bench, folder) if over_tls else (None, "")
    with heap.Server(*events("The garden is green. " * 10), context) as server:
        heap.project(folder, protocol, server.server_address[1], ca_file)
        case = f"a streamed answer, {name}{' over TLS' if over_tls else ''}"
        return _row(board, case, [build(folder)], b"how is it?\n", b"is green. The")


def _tls(bench, folder: str) -> tuple:
    """Return (context of a server, file of its authority)."""
    spawn([sys.executable, bench.script("certificate.py"), folder], dict(os.environ))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(folder, "server.pem"))
    return context, os.path.join(folder, "ca.pem")

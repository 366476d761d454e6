"""Nothing sets a field of another object, and nobody replaces a method: what an object needs comes
in when it is made, who only listens subscribes, and who may stop a call is a gate.

An assignment to ``x.field`` is admitted where *x* is ``self``; where the function has just made
*x*; where a class of the same file has that field, since it is that file's own record; and where
*x* is one of ``RECORDS`` or ``FILES``, each with its reason.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PLACES = (
    "clawlite/core",
    "clawlite/protocols",
    "clawlite/linux",
    "clawlite/scan",
    "firmware-host",
)
_OF_AN_ERROR = "an exception on its way up gets what is known there: message, hint, data"
_OF_A_TASK = "core/agent/task.py: the state of one generator, which the agent's files drive"
# what a receiver is called -> why it is plain data that several files write
RECORDS = {
    "e": _OF_AN_ERROR,
    "error": _OF_AN_ERROR,
    "task": _OF_A_TASK,
    "approval": "policy/approval.py: one question, with who asks and whether it was put",
    "form": "a question with fields",
    "history": "turns/history.py: a conversation, which the turn, its provider and its store write",
    "once": "core/idempotency: one request with an id, split over files for boards",
    "known": "the same",
    "request": "the same",
    "idempotency": "the same: the table of such requests, and the time, which the core is given",
    "message": "turns/turn.py: one message of a conversation",
    "answer": "providers/wire.py: one answer that grows while it comes",
    "reply": "turns/turn.py: one answer of a provider",
    "found": "an answer that was found",
    "result": "effect.Result: what one tool returned",
    "made": "what a function has made and returns",
    "stream": "net/stream.py, providers: the state of one connection or answer",
    "near": "one end of a tunnel",
    "far": "the other end",
    "tunnel": "two ends",
    "connection": "one connection",
    "head": "of a chain of records: its numbers",
    "place": "of a store: numbers of the entries in it",
    "log": "stores/storelog.py: the index of a board's stores, split over files that are dropped",
    "store": "the record of one store in an image",
    "profile": "image/profile.py: the limits of one sandbox, narrowed for one call",
    "part": "one piece of a task",
    "division": "one task that is divided",
    "call": "one call under way",
    "job": "one call under way",
    "record": "one record of a file",
    "event": "one event",
    "run": "schema: one check under way",
    "one": "an item of a list of such records",
}
_DEVICE = "one object, the device, in files that a board loads only for that, and drops"
# (file, receiver) -> why
FILES = {
    ("runtime/assemble.py", "device"): _DEVICE,
    ("runtime/assemble.py", "device.stdio"): _DEVICE,
    ("runtime/startup.py", "device"): _DEVICE,
    ("runtime/main.py", "device"): _DEVICE,
    ("runtime/oom_unwind.py", "device"): _DEVICE,
    ("runtime/oom_unwind.py", "device.agent"): "nothing may be allocated there, not even a frame",
    ("runtime/oom_unwind.py", "device.console"): "the same",
    ("runtime/oom_recover.py", "device"): _DEVICE,
    ("runtime/device.py", "line"): "the reliable line is the board's stdio, in a file of its own",
    ("runtime/device.py", "self.handlers"): "the same for the flag of Ctrl-C",
    ("runtime/device.py", "self.stdio"): "the same for the prompt that Enter has ended",
    ("io/settime.py", "device.clock"): _DEVICE,
    ("line/uplink.py", "device"): _DEVICE,
    ("line/line.py", "self._receiver"): "one line, in three files for boards",
    ("line/line.py", "self._sender"): "the same",
    ("providers/refusal.py", "provider"): "one provider, in a file that a board drops",
    ("providers/refusal.py", "self._history"): RECORDS["history"],
    (
        "providers/provider.py",
        "self.codec",
    ): "its own codec: a method for one flag costs boards heap",
    ("protocol/calls.py", "self.idempotency"): RECORDS["idempotency"],
    ("runtime/fast_schema.py", "tool"): "a tool is prepared once, while its image decodes it",
    ("turns/turn_output.py", "effect[APPROVAL]"): RECORDS["approval"],
    ("channels/mqtt.py", "client"): "the client of paho takes its callbacks so",
    ("channels/mqtt.py", "properties"): "paho",
    ("mcp/servers.py", "outcome[VALUE]"): _OF_AN_ERROR,
    ("sandbox/engine.py", "call.outcome[VALUE]"): _OF_AN_ERROR,
    ("local/confined.py", "function"): "ctypes: what a C function takes and returns",
    ("local/provider.py", "value"): _OF_AN_ERROR,
    ("rules/rehearsal.py", "reading"): "the engine's readings are due when the record has samples",
    ("rules/rehearsal.py", "tool"): "a call that does not run returns no output of its shape",
    ("memory/memory_journal.py", "self._log"): "the size of its own file",
    ("memory/database.py", "self._connection"): "sqlite3",
    ("doctor/doctor_agent.py", "db"): "sqlite3",
    ("net/gateway_client.py", "self._connection"): RECORDS["connection"],
    ("io/stdio.py", "sys"): "the interpreter's",
    ("memory/jsonl.py", "self._log"): "the size of its own file",
    ("runtime/call_journal.py", "self._log"): "the same",
    ("terminal/line_editor.py", "self.row"): "the row of this line alone",
}


def fields(node) -> list:
    """Return the attributes that the statement *node* sets or deletes."""
    if isinstance(node, (ast.Assign, ast.Delete)):
        targets = node.targets
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        targets = [node.target]
    else:
        return []
    found = [one for target in targets for one in ast.walk(target)]
    return [
        one for one in found if isinstance(one, ast.Attribute) and type(one.ctx) is not ast.Load
    ]


def own(tree) -> tuple[set, set]:
    """Return the names of the fields, and of the methods, of the classes in *tree*."""
    data, methods = set(), set()
    for made in ast.walk(tree):
        if isinstance(made, ast.ClassDef):
            for node in ast.walk(made):
                if isinstance(node, ast.FunctionDef):
                    methods.add(node.name)
                of_self = [one for one in fields(node) if ast.unparse(one.value) == "self"]
                data.update(one.attr for one in of_self)
            for node in made.body:
                if isinstance(node, (ast.Assign, ast.AnnAssign)):
                    names = [one for one in ast.walk(node) if isinstance(one, ast.Name)]
                    data.update(one.id for one in names if type(one.ctx) is ast.Store)
    return data, methods


def just_made(function) -> set:
    """Return the receivers to which *function* assigns what a class has made."""
    found = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            name = ast.unparse(node.value.func).rpartition(".")[2].lstrip("_")
            if name[:1].isupper() or name == "__new__":
                found.update(ast.unparse(target) for target in node.targets)
    return found


def problems(name: str, source: str) -> list:
    """Return what is wrong in the file *name*: ["line: receiver.field", ...]."""
    tree = ast.parse(source)
    (data, methods), found = own(tree), set()
    replaced = {}  # function -> the methods of its class
    for made in ast.walk(tree):
        if isinstance(made, ast.ClassDef):
            mine = [one for one in made.body if isinstance(one, ast.FunctionDef)]
            replaced.update(dict.fromkeys(mine, {one.name for one in mine}))
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        made = just_made(function)
        for node in ast.walk(function):
            for one in fields(node):
                receiver = ast.unparse(one.value)
                if receiver == "self":  # it may not become another one, either
                    is_wrong = one.attr in replaced.get(function, ())
                else:
                    is_wrong = not (
                        receiver in ("cls", *made)
                        or one.attr in data
                        and one.attr not in methods
                        or receiver.rpartition(".")[2] in RECORDS
                        or any(name.endswith(file) and receiver == who for file, who in FILES)
                    )
                if is_wrong:
                    found.add((node.lineno, receiver, one.attr))
    return [f"{line}: {receiver}.{field}" for line, receiver, field in sorted(found)]


@pytest.mark.parametrize("place", PLACES)
def test_nothing_sets_a_field_of_another_object(place):
    wrong = []
    for path in sorted((ROOT / place).rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        wrong += [f"{name}:{one}" for one in problems(name, path.read_text())]
    assert wrong == []


def test_each_exception_is_needed():
    """A file that mended its ways is taken off the list."""
    used = set()
    for place in PLACES:
        for path in (ROOT / place).rglob("*.py"):
            name, tree = path.as_posix(), ast.parse(path.read_text())
            for node in ast.walk(tree):
                for one in fields(node):
                    receiver = ast.unparse(one.value)
                    used.update(
                        (file, who)
                        for file, who in FILES
                        if name.endswith(file) and receiver == who
                    )
    assert used == set(FILES)


@pytest.mark.parametrize(
    "source, found",
    [
        ("def f(shell):\n    shell.agent.meter = 1", ["2: shell.agent.meter"]),
        ("def f(image):\n    image.guard = None", ["2: image.guard"]),
        ("class A:\n    def f(self):\n        self.agent.tick = self.f", ["3: self.agent.tick"]),
        ("class A:\n    def f(self): pass\ndef g(a):\n    a.f = 1", ["4: a.f"]),
        ("class A:\n    def f(self):\n        self.f = 1", ["3: self.f"]),
        ("def f(agent):\n    agent.on_wait += (1,)", ["2: agent.on_wait"]),
        ("def f(agent):\n    del agent.calls", ["2: agent.calls"]),
        ("def f():\n    made = Thing()\n    made.x = 1", []),
        ("class A:\n    x = None\ndef f(a):\n    a.x = 1", []),
        ("class A:\n    def f(self):\n        self.x = 1", []),
        ("def f(task):\n    task.tool = None", []),
    ],
)
def test_what_the_rule_finds(source, found):
    assert problems("a.py", source) == found

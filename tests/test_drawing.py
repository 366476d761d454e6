"""Whatever is drawn goes through one of the functions that make a stranger's words one line
(core/base/printable.py).  The sources are walked: a new place that prints cannot forget it.

A place may print without them what is its own: constants, numbers, JSON (which escapes), and what
``OWN`` lists by function.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# what makes a text harmless: printable.py, and what is made of it, or of JSON
SAFE = {
    "escape_line",
    "escape_name",
    "escape_ends",
    "join_lines",
    "printable",
    "_join",
    "document",
    "dumps",
    "json_bytes",
    "value_text",
    "quoted",
}
NAMES = {"USAGE", "HELP", "TEXT", "mark", "end"}  # texts of the project's own
# function that draws -> why what it draws is no stranger's, or is harmless already
OWN = {
    "clawlite/command.py:_mcp": "names of packages and files that this command was given",
    "clawlite/command.py:_unknown": "names of packages and files that this command was given",
    "clawlite/command.py:_missing": "names of packages and files that this command was given",
    "clawlite/command.py:_no_agents": "a verb of our own table",
    "clawlite/linux/admin/commands.py:run": "our own sentence",
    "clawlite/command.py:_unwritten": "names of packages and files that this command was given",
    "clawlite/command.py:_main": "names of packages and files that this command was given",
    "clawlite/host/base/progress.py:_write": "a bar, of numbers and our own words",
    "clawlite/host/bench/bench.py:took": "rows of a benchmark: names of suites, numbers",
    "clawlite/host/bench/bench.py:compare": "rows of a benchmark: names of suites, numbers",
    "clawlite/host/bench/bench.py:show": "rows of a benchmark: names of suites, numbers",
    "clawlite/host/board_console/log.py:_write": "made printable before, or strerror",
    "clawlite/host/board_console/screens.py:write": "made printable before, or strerror",
    "clawlite/host/build/inline.py:main": "an image, for the process that asked",
    "clawlite/host/cli/gateway.py:token": "a name of a device, which its pattern has checked",
    "clawlite/host/cli/ui.py:document": "JSON with its escapes, numbers, a port that we made",
    "clawlite/host/cli/ui.py:built": "JSON with its escapes, numbers, a port that we made",
    "clawlite/host/cli/ui.py:simulating": "JSON with its escapes, numbers, a port that we made",
    "clawlite/host/cli/ui.py:__call__": "JSON with its escapes, numbers, a port that we made",
    "clawlite/host/cli/ui.py:_tell": "JSON with its escapes, numbers, a port that we made",
    "clawlite/linux/admin/commands.py:print_failure": "escaped above, or by the agent",
    "clawlite/linux/admin/service.py:main": "escaped above, or by the agent",
    "clawlite/linux/admin/service.py:relay_lines": "escaped above, or by the agent",
    "clawlite/linux/doctor/doctor.py:main": "lines that text() has escaped",
    "clawlite/linux/files/files.py:flush": "an event of the log as JSON",
    "clawlite/linux/hardware/pins.py:_told": "names of pins of the manifest",
    "clawlite/linux/maker/maker_run.py:print_text": "to a file that tools.py opened",
    "clawlite/linux/runtime/call_journal.py:_report": "paths of our own state, and strerror",
    "clawlite/linux/runtime/meters.py:_read": "paths of our own state, and strerror",
    "clawlite/linux/runtime/meters.py:add": "paths of our own state, and strerror",
    "clawlite/linux/swarm_commands/run_task.py:run_task": "the name of a state, and a UUID",
    "clawlite/linux/terminal/console_view.py:_tell": "text that was escaped above",
    "clawlite/linux/terminal/thinking.py:_write": "text that was escaped above",
    "firmware-host/micropython/boot/bootwindow.py:_say": "own paths, and strerror",
    "firmware-host/micropython/boot/main.py:ready": "own paths, and strerror",
    "firmware-host/micropython/io/machinepins.py:off": "own paths, and strerror",
    "firmware-host/micropython/line/stopfile.py:keep": "own paths, and strerror",
    "firmware-host/micropython/runtime/device.py:failed": "own paths, and strerror",
    "firmware-host/micropython/runtime/main.py:_prepared": "own paths, and strerror",
    "firmware-host/micropython/runtime/main.py:run": "own paths, and strerror",
    "firmware-host/micropython/runtime/main.py:main": "own paths, and strerror",
    "firmware-host/micropython/runtime/startup.py:_arm": "own paths, and strerror",
    "firmware-host/micropython/stores/call_journal.py:_unread": "own paths, and strerror",
    "firmware-host/micropython/stores/call_journal.py:_compact": "own paths, and strerror",
    "firmware-host/micropython/stores/call_journal.py:keep": "own paths, and strerror",
    "firmware-host/micropython/stores/call_journal.py:_compacted": "own paths, and strerror",
    "firmware-host/micropython/stores/meters.py:_read": "own paths, and strerror",
    "firmware-host/micropython/stores/meters.py:add": "own paths, and strerror",
    "firmware-host/micropython/stores/oldturns.py:take": "own paths, and strerror",
}


def draws(call: ast.Call) -> bool:
    name = ast.unparse(call.func)
    if name in ("print", "click.echo") or name.endswith(("stderr.write", "stdout.write")):
        return True
    if name.endswith("stdout.buffer.write"):
        return True
    return name == "os.write" and ast.unparse(call.args[0]) in ("1", "2")


def is_safe(node) -> bool:
    """Return whether *node*, what is drawn, can hold no stranger's raw words."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func).rpartition(".")[2]
        if name in ("encode", "decode", "rstrip", "ljust"):
            return is_safe(node.func.value)
        return name in SAFE
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return _is_safe_format(node)
    if isinstance(node, ast.BinOp):
        return is_safe(node.left) and is_safe(node.right)
    if isinstance(node, ast.IfExp):
        return is_safe(node.body) and is_safe(node.orelse)
    if isinstance(node, ast.BoolOp):
        return all(map(is_safe, node.values))
    if isinstance(node, ast.JoinedStr):
        return all(is_safe(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return is_safe(node.value)
    if isinstance(node, ast.Subscript):
        return is_safe(node.value)
    return isinstance(node, ast.Name) and node.id in NAMES


def _is_safe_format(node) -> bool:
    """A format whose values are numbers, or safe."""
    if not isinstance(node.left, ast.Constant):
        return False
    text = node.left.value
    text = text.decode() if isinstance(text, bytes) else text
    kinds = [part.lstrip("-+ 0123456789.")[:1] for part in text.replace("%%", "").split("%")[1:]]
    values = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
    if len(kinds) != len(values):
        return False
    return all(kind in "dxc" or is_safe(value) for kind, value in zip(kinds, values))


def places(root: Path):
    """Yield (name of the function, line, what is drawn) of each place that draws."""
    for path in sorted(root.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        where = {}
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                for below in ast.walk(node):
                    where[below] = node.name
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and draws(node):
                name = "%s:%s" % (path.relative_to(ROOT), where.get(node, ""))
                drawn = node.args[1:] if ast.unparse(node.func) == "os.write" else node.args
                yield name, node.lineno, drawn


def unsafe(root: Path) -> dict:
    found = {}
    for name, line, drawn in places(root):
        if not all(map(is_safe, drawn)):
            found.setdefault(name, []).append(line)
    return found


@pytest.mark.parametrize("layer", ["clawlite", "firmware-host"])
def test_what_is_drawn_is_one_line(layer):
    found = unsafe(ROOT / layer)
    new = {name: lines for name, lines in found.items() if name not in OWN}
    assert not new, "print by linux/io/printing.py or host/cli/ui.py, or say in OWN why not"
    gone = [name for name in OWN if name.startswith(layer + "/") and name not in found]
    assert not gone, "these draw nothing raw any more: remove them from OWN"


def test_the_walk_finds_what_is_raw(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    for text, is_raw in (
        ("print('a')", False),
        ("print('%d' % n)", False),
        ("print('%s' % name)", True),
        ("print(f'{name}')", True),
        ("print(f'{escape_name(name)}')", False),
        ("print('%s %d' % (escape_line(name), n))", False),
        ("print('%s %d' % (name, n))", True),
        ("print(name)", True),
        ("import os\nos.write(2, name.encode())", True),
        ("import os\nos.write(2, escape_ends(name).encode() + b'x')", False),
        ("import sys\nsys.stderr.write('a' + name)", True),
        ("print(document(found) if x else text)", True),
        ("print(json.dumps(found))", False),
    ):
        (tmp_path / "one.py").write_text("def f(name):\n    " + text.replace("\n", "\n    "))
        assert bool(unsafe(tmp_path)) == is_raw, text

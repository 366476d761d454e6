"""Whatever a person reads goes through one of the functions that make a stranger's words one line
(core/base/printable.py).  The sources are walked: a new place that shows something cannot forget
it.  The ways out that are looked at (``drawn``):

1. what is printed: ``print``, ``click.echo``, stdout, stderr, ``os.write`` to 1 or 2, and what the
   screen of a terminal or of a board shows
2. what the core lets its shell show: the effects SAY, WRITE and PROMPT.  Each TELL is one line, as
   the two shells draw it (``test_each_tell_is_one_line``)
3. what goes to the people of a channel: ``reply``, ``source_reply``, ``tell_admins``
4. a text that is cut into lines for a function that prints lines, as in
   ``print_line(*text.split("\\n"))``: a line feed in a stranger's name would make a line more
5. what the functions of ``TEXTS`` return, which others draw as it is

A place that fails has three ways: pass lines, each by itself, to ``print_line``, ``print_note``,
``print_data`` or ``Console._say``; write a stranger's word by ``escape_name`` or ``escape_line``;
or join lines by ``join_lines``.  A place may show without them what is its own: constants, numbers,
JSON whose characters are escaped, and what ``OWN`` lists by function.
"""

import ast
from pathlib import Path

import pytest

from clawlite.core.base.effect import TELL
from clawlite.linux.terminal.console_view import ConsoleView

ROOT = Path(__file__).parent.parent
# functions that return texts of several lines, each of which is the project's own
TEXTS = {
    "clawlite/protocols/net/device_flow.py:sign_in_text",
    "clawlite/core/policy/approval.py:question",
    "clawlite/core/policy/trace.py:trace",
    "clawlite/core/policy/trace.py:trace_text",
    "clawlite/core/protocol/console.py:error_text",
    "clawlite/host/builder/tool_table.py:text",
    "clawlite/host/manifest/conformance.py:text",
    "clawlite/linux/channels/channel.py:status_lines",
    "clawlite/linux/mcp/question.py:text",
}
# what makes a text harmless: printable.py, what is made of it, and JSON with escapes
SAFE = {
    "escape_line",
    "escape_name",
    "escape_ends",
    "join_lines",
    "printable",
    "_join",
    "document",
    "_json",
    "json_bytes",
    "value_text",
    "enquote",
} | {place.rpartition(":")[2] for place in TEXTS} - {"text"}
# the functions with the name text that are in TEXTS, as they are called
SAFE_TEXT = {"conformance.text", "tool_table.text", "approval.form.text"}
SAFE_TEXT |= {"self._pieces.show"}  # protocols/base/pieces.py
NAMES = {"USAGE", "HELP", "TEXT", "mark", "end"}  # texts of the project's own
# it may have many lines; who shows it to a person does so by ``printable``
ANSWER = "an answer of a model"
# function that draws -> why what it draws is no stranger's, or is harmless already
OWN = {
    "clawlite/core/providers/gateway.py:_receive": ANSWER,
    "clawlite/core/rules/confirm.py:tell_failure": "escaped above",
    "clawlite/core/providers/provider.py:take": ANSWER,
    "clawlite/core/turns/turn.py:turn": ANSWER,
    "clawlite/host/cli/project.py:inspect": "lines that join_lines made harmless",
    "clawlite/host/board_console/screens.py:show": "made harmless by text.py",
    "clawlite/host/board_console/serial.py:_show": "made harmless by text.py",
    "firmware-host/micropython/line/uplink.py:call": "our own words, and the prompt as it was",
    "firmware-host/micropython/runtime/device.py:show_person": "made harmless above",
    "clawlite/host/board_console/text.py:flush": "an event of a board: screens.py draws it",
    "clawlite/host/board_console/text.py:_open_line": "one of the prompts that are known",
    "clawlite/linux/channels/relay.py:_end_tap": "the board's text, whose lines are its own",
    "clawlite/linux/channels/channel.py:_answer": "sentences of ours, and what show() joins",
    "clawlite/linux/channels/channel.py:_reply_end": ANSWER,
    "clawlite/linux/channels/channel.py:end_question": "of approvers.py, its names escaped",
    "clawlite/linux/channels/channel.py:put_question": "lines of policy/approval.py, and of ours",
    "clawlite/linux/channels/telegram.py:ask": "handed on: its callers are looked at",
    "clawlite/linux/channels/channel.py:_refuse": "sentences of access.py, with a code of ours",
    "clawlite/linux/channels/channels.py:tell_admins": "handed on: its callers are looked at",
    "clawlite/linux/channels/channel.py:source_reply": "handed on: its callers are looked at",
    "clawlite/linux/channels/channel.py:tell_admins": "handed on: its callers are looked at",
    "clawlite/linux/channels/relay.py:end": "a board's words, which made them harmless",
    "clawlite/linux/channels/relay.py:say": "a board's words, which made them harmless",
    "clawlite/linux/channels/webhook.py:poll": "handed on: its callers are looked at",
    "clawlite/linux/sandbox/bubblewrap.py:tell": "a plan, for the process that asked",
    "clawlite/linux/monitor/logs.py:show": "lines of event_line.py, escaped, or JSON",
    "clawlite/linux/monitor/top.py:show": "lines of usage_table.py, whose cells are escaped",
    "clawlite/linux/monitor/top.py:_write": "lines of usage_table.py, whose cells are escaped",
    "clawlite/linux/swarm_commands/commands.py:show_rights": "rules: their names were checked",
    "clawlite/command_help.py:": "docs/commands.md",
    "clawlite/command_help.py:print_script": "a script of our own",
    "clawlite/command_help.py:print_candidates": "to the shell: names of our own and of profiles",
    "clawlite/linux/admin/commands.py:run": "our own sentence",
    "clawlite/command.py:_end_unread": "names of packages and files that this command was given",
    "clawlite/command.py:run": "help, from a table of our own",
    "clawlite/command.py:_main": "names of packages and files that this command was given",
    "clawlite/host/base/progress.py:_write": "a bar, of numbers and our own words",
    "clawlite/host/bench/bench.py:took": "rows of a benchmark: names of suites, numbers",
    "clawlite/host/bench/bench.py:compare": "rows of a benchmark: names of suites, numbers",
    "clawlite/host/bench/bench.py:show": "rows of a benchmark: names of suites, numbers",
    "clawlite/host/board_console/log.py:_write": "made printable before, or strerror",
    "clawlite/host/board_console/screens.py:write": "made printable before, or strerror",
    "clawlite/host/builder/inline.py:main": "an image, for the process that asked",
    "clawlite/host/cli/gateway.py:token": "a name of a device, which its pattern has checked",
    "clawlite/host/cli/ui.py:show_build": "JSON with its escapes, numbers, a port that we made",
    "clawlite/host/cli/ui.py:show_sim": "JSON with its escapes, numbers, a port that we made",
    "clawlite/host/cli/ui.py:__call__": "JSON with its escapes, numbers, a port that we made",
    "clawlite/host/cli/ui.py:_print_marked": "a file's line, blanks for what cannot be seen",
    "clawlite/host/cli/ui.py:ask_text": "a question of ours",
    "clawlite/host/cli/ui.py:show_flash": "a board's answer has several lines, each shown as one",
    "clawlite/host/cli/ui.py:_tell": "JSON with its escapes, numbers, a port that we made",
    "clawlite/linux/admin/commands.py:print_failure": "escaped above, or by the agent",
    "clawlite/linux/admin/service.py:_print": "our own units, whose names are escaped",
    "clawlite/linux/admin/service.py:relay_lines": "escaped above, or by the agent",
    "clawlite/linux/doctor/doctor.py:show": "lines that text() has escaped",
    "clawlite/linux/hardware/pins.py:_report": "names of pins of the manifest",
    "clawlite/linux/maker/maker_run.py:print_text": "to a file that tools.py opened",
    "clawlite/linux/runtime/call_journal.py:_report": "paths of our own state, and strerror",
    "clawlite/linux/runtime/meters.py:_read": "paths of our own state, and strerror",
    "clawlite/linux/runtime/meters.py:count_use": "paths of our own state, and strerror",
    "clawlite/linux/swarm_commands/run_task.py:run_task": "the name of a state, and a UUID",
    "clawlite/linux/terminal/console_view.py:_show": "printable() made it harmless, above",
    "clawlite/linux/terminal/console_view.py:_end_word": "the rest of what Pieces made harmless",
    "clawlite/linux/terminal/console_view.py:_show_piece": "Pieces made it harmless, above",
    "clawlite/linux/terminal/console_view.py:_tell": "text that was escaped above",
    "clawlite/linux/terminal/console_view.py:show_print": "names and lines are escaped in it",
    "clawlite/linux/terminal/thinking.py:_write": "text that was escaped above",
    "clawlite/linux/terminal/progress.py:_write": "a word of our own, and numbers",
    "firmware-host/micropython/boot/bootwindow.py:_say": "own paths, and strerror",
    "firmware-host/micropython/boot/main.py:ready": "own paths, and strerror",
    "firmware-host/micropython/io/machinepins.py:off": "own paths, and strerror",
    "firmware-host/micropython/rules/boardrules.py:tell": "escaped above",
    "firmware-host/micropython/line/pairing.py:read": "own paths, and strerror",
    "firmware-host/micropython/line/stopfile.py:keep": "own paths, and strerror",
    "firmware-host/micropython/runtime/main.py:_prepare": "own paths, and strerror",
    "firmware-host/micropython/runtime/main.py:run": "own paths, and strerror",
    "firmware-host/micropython/runtime/main.py:main": "own paths, and strerror",
    "firmware-host/micropython/runtime/startup.py:_arm": "own paths, and strerror",
    "firmware-host/micropython/stores/call_journal.py:_unread": "own paths, and strerror",
    "firmware-host/micropython/stores/call_journal.py:_compact": "own paths, and strerror",
    "firmware-host/micropython/stores/call_journal.py:keep": "own paths, and strerror",
    "firmware-host/micropython/stores/call_journal.py:_try_compact": "own paths, and strerror",
    "firmware-host/micropython/stores/meters.py:_read": "own paths, and strerror",
    "firmware-host/micropython/stores/meters.py:add": "own paths, and strerror",
    "firmware-host/micropython/stores/oldturns.py:take": "own paths, and strerror",
}


def drawn(node) -> list:
    """Return what *node* shows to a person, [] when it shows nothing."""
    if isinstance(node, ast.Tuple) and len(node.elts) == 2:
        kind = ast.unparse(node.elts[0]).rpartition(".")[2]
        return node.elts[1:] if kind in ("SAY", "WRITE", "PROMPT") else []
    if not isinstance(node, ast.Call):
        return []
    name = ast.unparse(node.func)
    if name == "print" or name.endswith(("stderr.write", "stdout.write")):
        return node.args
    if name.endswith("stdout.buffer.write"):
        return node.args
    if name in ("os.write", "write_whole") and ast.unparse(node.args[0]) in ("1", "2"):
        return node.args[1:]
    if name.endswith(("screen.show", "screen.remind", "_editor.show", "stdio.write")):
        return node.args
    if name.endswith(("_source.reply", "self.reply", "source_reply")):
        return node.args[1:2]
    if name.endswith("tell_admins"):
        return node.args[:1]
    return [text for text in map(cut_text, node.args) if text is not None]


def cut_text(node):
    """Return the text that ``*text.split("\\n")`` makes arguments of, else None."""
    if isinstance(node, ast.Starred):
        node = node.value
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("split", "splitlines"):
                return node.func.value
    return None


def is_safe(node) -> bool:
    """Return whether *node*, what is drawn, can hold no stranger's raw words."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func).rpartition(".")[2]
        if name in ("encode", "decode", "rstrip", "ljust"):
            return is_safe(node.func.value)
        if ast.unparse(node.func) == "guard.text":  # it takes secrets away, and adds nothing
            return is_safe(node.args[0])
        if ast.unparse(node.func) == "json.dumps":
            return all(keyword.arg != "ensure_ascii" for keyword in node.keywords)
        return name in SAFE or ast.unparse(node.func) in SAFE_TEXT
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
            name = "%s:%s" % (path.relative_to(ROOT), where.get(node, ""))
            is_text = isinstance(node, ast.Return) and name in TEXTS
            shown = [node.value] if is_text else drawn(node)
            if shown:
                yield name, node.lineno, shown


def unsafe(root: Path) -> dict:
    found = {}
    for name, line, shown in places(root):
        if not all(map(is_safe, shown)):
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
        ("print(json.dumps(found, ensure_ascii=False))", True),
        ("print(dumps(found))", True),
        ("effects.append((SAY, '%s is here' % name))", True),
        ("effects.append((E.SAY, '%s is here' % escape_name(name)))", False),
        ("yield (WRITE, name)", True),
        ("yield (LOG, name)", False),
        ("self._source.reply(to, 'No %s.' % name)", True),
        ("self._source.reply(to, join_lines(lines))", False),
        ("self._source.reply(to, guard.text('No.') if guard else 'No.')", False),
        ("channel.tell_admins(text, more)", True),
        ("print_line(*name.split('\\n'))", True),
        ("print_line(*name.splitlines())", True),
        ("self._say(*question(name).split('\\n'))", False),
        ("print_line(name, *lines)", False),
        ("print_line(*[name])", False),
    ):
        (tmp_path / "one.py").write_text("def f(name):\n    " + text.replace("\n", "\n    "))
        assert bool(unsafe(tmp_path)) == is_raw, text


def test_a_function_that_makes_a_text_is_looked_at(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    monkeypatch.setitem(globals(), "TEXTS", {"one.py:text"})
    for returned, is_raw in (
        ("join_lines([name])", False),
        ("'a\\n' + escape_line(name)", False),
        ("'\\n'.join([name])", True),
        ("'rule %s' % name", True),
    ):
        (tmp_path / "one.py").write_text("def text(name):\n    return " + returned)
        assert bool(unsafe(tmp_path)) == is_raw, returned


def test_each_tell_is_one_line():
    shown = []

    class Shell:
        answers = None
        guard = None
        screen = type("", (), {"show": lambda self, data: shown.append(data), "edits": False})()

    ConsoleView(Shell()).table()[TELL]((TELL, "a\nApprove x?\x1b[2K\u202e\r"))
    assert shown == [b"a\\nApprove x?\\x1b[2K\\u202e\\x0d\n"]

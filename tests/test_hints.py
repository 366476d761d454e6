"""Each error that reaches a person says the next step.

Every ``ClawError`` (or subclass) that the product makes has a hint. Every ``Problem`` of a manifest
has a hint or says what was expected. A ``RequestError`` may also say what was expected: its reader
is the program that sent the request. ``EXCEPTIONS`` lists the others, each with its reason; an
exception that covers nothing fails.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("clawlite", "firmware-host/micropython")
# what says to a program what it may send
SAYS_WHAT = ("expected", "unknown", "at most")
# classes of problems, and the arguments by position that say what was expected and what to do
PROBLEMS = {"Problem": (4, 6), "add": (3, 5)}

PROGRAM = "a program reads it, by its code; the message names the field and what is wrong with it"
MODEL = "a model reads the message alone, so the next step stands in there, if there is one"
GATE = (
    "a policy or a person decided it, and the message names the decision: nothing is to be mended"
)
PROVIDER = (
    "core/providers/provider_order.py adds the next step, or a runner of the proxy has its own"
)
IMAGE = "who loads an image adds the step: linux/files/files.py, runtime/main.py, host/image"
CAUGHT = "whoever calls it catches it, and says the next step, or needs none"
PASSED_ON = "it repeats the error of another process, whose hint is in its data or its message"
MAINTAINER = "whoever changes clawlite itself reads it, at the file and the name that it says"
EXCEPTIONS = {
    PROGRAM: (
        "clawlite/core/mcp/mcp_server.py",
        "clawlite/core/memory/memory_methods.py",
        "clawlite/core/protocol/handshake.py",
        "clawlite/core/swarm/swarm_methods.py",
        "clawlite/host/board_console/board_offer.py",
        "clawlite/host/gateway/gateway.py",
        "clawlite/linux/mcp/form_fields.py",
        "clawlite/linux/mcp/http_offer.py",
        "clawlite/linux/mcp/offer.py",
        "clawlite/linux/mcp/question.py",
        "clawlite/linux/memory/file_store.py",
        "clawlite/linux/runtime/bootstrap_session.py",
        "clawlite/linux/swarm/member.py",
        "clawlite/linux/swarm/task_meter.py",
        "clawlite/linux/swarm_commands/inside.py",
        "clawlite/linux/tasks/task_methods.py",
        "firmware-host/micropython/base/jsonfault.py",
        "firmware-host/micropython/line/mediated.py",
        "firmware-host/micropython/line/swarmmember.py",
    ),
    MODEL: (
        "clawlite/core/net/service_call.py",
        "clawlite/core/turns/handlers.py: %s: %s",
        "clawlite/core/turns/tools.py: %s: %s",
        "clawlite/core/turns/turn.py: before this call gave a result",
        "clawlite/core/turns/turn.py: the arguments are not a JSON object",
        "clawlite/linux/files/path_walk.py",
        "clawlite/linux/files/quota.py",
        "clawlite/linux/sandbox/engine.py: the arguments are not JSON values",
        "clawlite/linux/tools/",
        "clawlite/scan/checks.py",
    ),
    GATE: (
        "clawlite/core/policy/approval.py: not approved",
        "clawlite/core/protocol/console.py: Interrupted",
        "clawlite/core/turns/tools.py: Policy denied",
        "clawlite/core/turns/tools.py: this agent only observes",
        "clawlite/core/turns/tools.py: the skill %s is under way",
        "clawlite/core/turns/tools.py: cannot be resolved",
        "clawlite/host/cli/ui.py: nothing was written",
        "clawlite/linux/channels/channel.py: is a viewer",
        "clawlite/linux/channels/channel_turn.py: is a viewer",
        "clawlite/linux/channels/channels.py: channel %s",
        "clawlite/scan/guard.py: a secret",
    ),
    PROVIDER: (
        "clawlite/core/agent/agent.py: it said nothing",
        "clawlite/core/net/exchange.py",
        "clawlite/core/net/http1.py",
        "clawlite/core/net/sse.py",
        "clawlite/core/providers/provider_order.py: instruction of a skill",
        "clawlite/core/providers/wire.py",
        "clawlite/host/gateway/http.py",
        "clawlite/host/mcp/remote_token.py",
        "clawlite/host/proxy/dialect.py",
        "clawlite/host/proxy/proxy.py",
        "clawlite/host/proxy/upstream.py",
        "clawlite/linux/mcp/remote_token.py",
        "clawlite/linux/net/waiting.py",
        "clawlite/linux/runtime/providers.py",
        "firmware-host/micropython/line/uplink.py: self.nobody()",
        "firmware-host/micropython/net/net.py",
    ),
    IMAGE: (
        "clawlite/core/formats/",
        "clawlite/core/image/header.py",
        "clawlite/core/image/image.py",
        "clawlite/core/image/image_signature.py",
        "firmware-host/micropython/runtime/parts.py",
    ),
    CAUGHT: (
        "clawlite/core/line/line.py",
        "clawlite/core/mcp/mcp_client.py",
        "clawlite/core/mcp/mcp_http.py",
        "clawlite/core/net/device_flow.py: has ended",
        "clawlite/host/gateway/mcp_servers.py",
        "clawlite/host/mcp/listing.py",
        "clawlite/host/mcp/remote_listing.py",
        "clawlite/linux/channels/telegram.py",
        "clawlite/linux/mcp/remote.py",
        "clawlite/linux/mcp/servers.py",
        "clawlite/linux/runtime/meters.py",
        "clawlite/linux/swarm_commands/a2a_turn.py",
        "clawlite/linux/swarm_commands/remotes.py",
        "firmware-host/micropython/net/connection.py",
        "firmware-host/micropython/net/lan.py",
        "firmware-host/micropython/net/lookup.py",
        "firmware-host/micropython/net/mqttmember.py",
        "firmware-host/micropython/stores/meters.py",
    ),
    PASSED_ON: (
        "clawlite/core/idempotency/recorded_request.py",
        "clawlite/host/cli/cli.py",
        "clawlite/linux/runtime/bootstrap_session.py: told['message']",
        "clawlite/linux/sandbox/tool_process.py",
        "clawlite/linux/swarm/replicated_bus.py",
    ),
    MAINTAINER: (
        "clawlite/host/bench/",
        "clawlite/host/firmware/firmware.py",
        "clawlite/host/firmware/link.py",
        "clawlite/host/firmware/outline.py",
        "clawlite/host/firmware/rename.py",
    ),
}


def called(node) -> str:
    """Return the name of what the call *node* calls, without the module or object before it."""
    function = node.func
    if isinstance(function, ast.Name):
        return function.id
    return function.attr if isinstance(function, ast.Attribute) else ""


def nodes_of(tree) -> list:
    """Return the calls and the classes of *tree*, which is walked once."""
    return [node for node in ast.walk(tree) if isinstance(node, (ast.Call, ast.ClassDef))]


def families(trees) -> tuple[set, set]:
    """Return the names of the classes below ``ClawError`` and below ``RequestError``; those that
    make their own message (``__init__``) are left out, because that is where their hint is.
    """
    classes = [node for nodes in trees for node in nodes if isinstance(node, ast.ClassDef)]
    found = []
    for root in ("ClawError", "RequestError"):
        names, before = {root}, 0
        while len(names) > before:
            before = len(names)
            names |= {
                one.name
                for one in classes
                if any(getattr(base, "id", None) in names for base in one.bases)
            }
        found.append(names)
    own = {
        one.name
        for one in classes
        if one.name != "ClawError"
        and any(isinstance(part, ast.FunctionDef) and part.name == "__init__" for part in one.body)
    }
    return found[0] - own, found[1]


def is_given(node, place: int, name: str) -> bool:
    """Return whether the call *node* has an argument at *place* or of *name* that is not empty."""
    if any(isinstance(one, ast.Starred) for one in node.args):
        return True
    for one in node.keywords:
        if one.arg is None or one.arg == name:
            return not (isinstance(one.value, ast.Constant) and not one.value.value)
    if len(node.args) <= place:
        return False
    value = node.args[place]
    return not (isinstance(value, ast.Constant) and not value.value)


def without_step(nodes, errors: set, requests: set) -> list[tuple[int, str]]:
    """Return (line, source) of each error or problem among *nodes* that says no next step."""
    found = []
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        name = called(node)
        if name in errors:
            said = ast.unparse(node)
            is_said = name in requests and any(word in said for word in SAYS_WHAT)
            if not is_said and not is_given(node, 1, "hint"):
                found.append((node.lineno, said))
        elif name == "Problem" or name == "add" and _is_of_problems(node):
            expected, hint = PROBLEMS[name]
            if not is_given(node, expected, "expected") and not is_given(node, hint, "hint"):
                found.append((node.lineno, ast.unparse(node)))
    return found


def _is_of_problems(node) -> bool:
    """Return whether *node* is a call of ``Problems.add``."""
    return isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value).endswith(
        "problems"
    )


def parts_of(entry: str) -> tuple[str, str]:
    path, _, text = entry.partition(": ")
    return path, text


def covers(entry: str, path: str, said: str) -> bool:
    where, text = parts_of(entry)
    return (path.startswith(where) if where.endswith("/") else path == where) and text in said


@pytest.fixture(scope="module")
def missing() -> list[tuple[str, int, str]]:
    """Return (file, line, source) of all that says no next step."""
    trees = {
        path.relative_to(ROOT).as_posix(): nodes_of(ast.parse(path.read_text()))
        for folder in FOLDERS
        for path in sorted((ROOT / folder).glob("**/*.py"))
    }
    errors, requests = families(trees.values())
    return [
        (path, line, said)
        for path, nodes in trees.items()
        for line, said in without_step(nodes, errors, requests)
    ]


def test_each_error_of_a_person_says_the_next_step(missing):
    entries = [entry for some in EXCEPTIONS.values() for entry in some]
    left = [
        f"{path}:{line}: {said[:160]}"
        for path, line, said in missing
        if not any(covers(entry, path, said) for entry in entries)
    ]
    assert not left, "no hint:\n" + "\n".join(left)


def test_each_exception_is_needed(missing):
    idle = [
        entry
        for some in EXCEPTIONS.values()
        for entry in some
        if not any(covers(entry, path, said) for path, _, said in missing)
    ]
    assert idle == []


def test_what_counts_as_a_next_step():
    tree = ast.parse(
        "ClawError('a')\n"
        "ClawError('a', 'b')\n"
        "ClawError('a', '')\n"
        "ClawError('a', hint='b')\n"
        "ClawError('a', data={})\n"
        "InvalidParams('expected b')\n"
        "InvalidParams('a')\n"
        "Problem((), 'a')\n"
        "Problem((), 'a', hint='b')\n"
        "problems.add(place, (), 'a', 'expected')\n"
        "problems.add(place, (), 'a')\n"
        "names.add('a')\n"
    )
    found = without_step(nodes_of(tree), {"ClawError", "InvalidParams"}, {"InvalidParams"})
    assert [line for line, _ in found] == [1, 3, 5, 7, 8, 11]

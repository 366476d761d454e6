"""The agent that the benchmarks run: 20 tools of 3 properties each, 30 rules, 6 skills, one
recorded turn; written as a maker would.

Rules: 60 % exact names, 10 % globs of names, 10 % a category, 10 % a category and ``path_within``,
10 % a category and ``destructiveHint``; the last denies all.  The tool ``echo`` gives its text back
and is what the calls are made to."""

import json
import os

TOOLS = 20
RULES = 30
SKILLS = 6
UUID = "123e4567-e89b-42d3-a456-%012x"
TEXT = "A plain sentence of the length that a model asks tools with, give or take a few words more."

_REGISTRY = ("adc-read", "board-info", "digital-read", "digital-write")

_CLAW = """claw: "0.3.0"
kind: Claw
metadata: { name: "bench", version: "1.0.0", description: "What the benchmarks run" }
spec:
  identity:
    inline: { name: "bench", personality: "You measure. You are brief.", autonomy: "autonomous" }
  providers:
    - inline: { name: "replay", protocol: "custom", endpoint: "builtin:replay", model: "replay", auth: { type: "none" } }
  channels:
    - inline: { name: "console", type: "cli", transport: "stdio", auth: { secret_ref: "CONSOLE" } }
  tools:
    - "./tools/*.yaml"
  skills:
    - "./skills/*.yaml"
  sandbox:
    inline: { name: "in-process", level: "none" }
  policies:
    - "./policy.yaml"
"""  # noqa: E501
_TOOL = """claw: "0.3.0"
kind: Tool
metadata:
  name: "%s"
  labels: { category: "%s" }
spec:
  description: "Tool %s of the benchmarks: takes a text, a count and a switch"
  input_schema:
    type: object
    properties:
      %s: { type: string, minLength: 1, maxLength: 4096, description: "What it works on" }
      count: { type: integer, minimum: 0, maximum: 100, description: "How often" }
      loud: { type: boolean, description: "Whether it shouts" }
    required: ["%s"]
    additionalProperties: false
  annotations: { readOnlyHint: true, destructiveHint: %s }
"""
_SKILL = """claw: "0.3.0"
kind: Skill
metadata: { name: "routine-%d" }
spec:
  description: "Routine %d of the benchmarks: what to do with a text, in a few steps"
  tools_required: ["echo", "plain-0"]
  instruction: |
    Take the text and look at it line by line. Give each line back with echo.
    Then say in one sentence what all of them have in common, and how many there were.
  input_schema: { type: object, properties: { text: { type: string, maxLength: 400 } }, required: [text] }
"""  # noqa: E501
_POLICY = """claw: "0.3.0"
kind: Policy
metadata: { name: "bench" }
spec:
  rules:
"""
_FUNCTION = '''

def %s(%s: str, count: int = 1, loud: bool = False) -> str:
    """Give the text back."""
    return %s
'''


def rules(count: int) -> list[dict]:
    """Return *count* rules in the mix above, in blocks of ten, as a Policy document has them;
    *count* >= 10, a multiple of 10.
    """
    found = []
    for block in range(count // 10):
        hint = {"category": f"hint-{block}", "annotations": {"destructiveHint": True}}
        found += [
            _rule(f"glob-{block}", "allow", "tool", {"name": f"glob-{block}-*"}),
            _rule(f"category-{block}", "allow", "category", {"category": f"plain-{block}"}),
            _rule(
                f"path-{block}",
                "allow",
                "category",
                {"category": f"files-{block}"},
                conditions={"path_within": "/workspace/notes"},
            ),
            _rule(f"hint-{block}", "deny", "category", hint, reason="not undone"),
        ]
        for i in range(6):
            name = f"exact-{block}-{i}"
            found.append(_rule(name, "allow", "tool", {"name": "echo" if block + i == 0 else name}))
    found[-1] = {"id": "default-deny", "action": "deny", "scope": "all"}
    return found


def _rule(id: str, action: str, scope: str, match: dict, **more) -> dict:
    return {"id": id, "action": action, "scope": scope, "match": match, **more}


def tools(count: int) -> list[tuple]:
    """Return *count* tools as (name, category, destructive), each met by another kind of rule;
    the first is ``echo``.
    """
    kinds = (
        ("exact-{}-1", "-", False),
        ("glob-{}-a", "-", False),
        ("plain-{}", "plain-{}", False),
        ("files-{}", "files-{}", False),
        ("hint-{}", "hint-{}", True),
        ("exact-{}-2", "-", False),
        ("other-{}", "-", False),
    )
    found = [("echo", "-", False)]
    while len(found) < count:
        block, kind = divmod(len(found) - 1, len(kinds))
        name, category, destructive = kinds[kind]
        found.append((name.format(block), category.format(block), destructive))
    return found


def write(folder: str, own_tools: bool = True, count: int = RULES, tool_count: int = TOOLS) -> str:
    """Write the project into *folder*, which exists and is empty; return it.

    own_tools  False: no tools.py, and four tools of the registry in the place of the 20
    count      of its rules
    tool_count  of its own tools
    """

    files = {
        "clawlite.toml": 'replay = "replay.jsonl"\n',
        "policy.yaml": _POLICY + "".join(f"    - {json.dumps(rule)}\n" for rule in rules(count)),
    }
    if not own_tools:
        listed = "".join('    - "claw://registry/clawlite/%s@1.0.0"\n' % name for name in _REGISTRY)
        claw = _CLAW.replace('    - "./tools/*.yaml"\n', listed)
        files["claw.yaml"] = claw.replace('  skills:\n    - "./skills/*.yaml"\n', "")
        files["replay.jsonl"] = '{"user": null}\n{"say": "Done."}\n'
        return write_files(folder, files)
    files["claw.yaml"] = _CLAW
    call = {"say": "", "call": [{"tool": "echo", "arguments": _make_arguments(TEXT)}]}
    files["replay.jsonl"] = '{"user": null}\n%s\n{"say": "Done."}\n' % json.dumps(call)
    functions = '"""The handlers of the benchmarks."""\n'
    for name, category, destructive in tools(tool_count):
        what = "path" if category.startswith("files-") else "text"
        hint = "true" if destructive else "false"
        files[f"tools/{name}.yaml"] = _TOOL % (name, category, name, what, what, hint)
        functions += _FUNCTION % (name.replace("-", "_"), what, what)
    files["tools.py"] = functions
    for number in range(1, SKILLS + 1):
        files[f"skills/routine-{number}.yaml"] = _SKILL % (number, number)
    return write_files(folder, files)


def write_files(folder: str, files: dict) -> str:
    """Write *files*, {path: text}, into *folder*; return it."""
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return folder


def _make_arguments(text: str) -> dict:
    return {"text": text, "count": 1, "loud": False}


def call_line(id: int = 7, number: int = 0, tool: str = "echo", text: str = TEXT) -> bytes:
    """Return one ``claw.tool.call`` of *tool* as a line for ``serve --stdio``; *number* makes
    its request_id: one that came before runs nothing.
    """
    context = {"request_id": UUID % number, "identity": "bench", "sandbox": "in-process"}
    params = {"name": tool, "arguments": _make_arguments(text), "context": context}
    return line("claw.tool.call", params, id)


def opening() -> bytes:
    """Return ``claw.initialize`` and ``claw.status`` (id 2), a line each."""
    hello = {
        "protocolVersion": "0.3.0",
        "clientInfo": {"name": "bench", "version": "1"},
        "capabilities": {"tools": {}},
        "manifest": {
            "claw": "0.3.0",
            "kind": "Claw",
            "metadata": {"name": "bench"},
            "spec": {"identity": "./identity.yaml", "providers": ["./provider.yaml"]},
        },
    }
    return line("claw.initialize", hello, 1) + line("claw.status", {}, 2)


def line(method: str, params: dict, id: int | str) -> bytes:
    request = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    return json.dumps(request).encode() + b"\n"

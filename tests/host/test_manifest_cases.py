"""The project's CKP cases about manifests, as data: a change of the minimal manifest, and the verdict.

set      {dotted path: value}; delete: [dotted path]; each: {dotted path: values}, every one of which gives the verdict ($DEL deletes)
files    {name: "Kind name"}, the smallest valid document of that kind; raw_yaml: the whole text
"""
import copy
import json

import pytest

from clawlite.host import manifest
from clawlite.host.problems import ManifestErrors

MINIMAL = {"claw": "0.3.0", "kind": "Claw", "metadata": {"name": "minimal-bot"}, "spec": {
    "identity": {"inline": {"personality": "You are a helpful assistant."}},
    "providers": [{"inline": {"protocol": "openai-compatible", "endpoint": "http://localhost:11434/v1", "model": "m",
                              "auth": {"type": "none"}}}]}}
SMALLEST = {"Tool": {"description": "d", "input_schema": {"type": "object"}}}

CASES = r"""
{"id": "MAN-12", "input": {"set": {"spec.identity": [{"inline": {"personality": "a"}}, {"inline": {"personality": "b"}}]}}, "expect": {"valid": false}, "ref": "5.1 exactly one Identity"}
{"id": "MAN-06", "input": {"delete": ["metadata.name"]}, "expect": {"valid": false}, "ref": "5 metadata.name MUST"}
{"id": "MAN-18", "input": {"set": {"spec.providers.0.inline.capabilities": ["text", "image"], "spec.providers.0.inline.transport": "websocket"}}, "expect": {"valid": true}, "ref": "schema.ts ProviderSpec.capabilities/transport (absent from prose)"}
{"id": "MAN-05", "input": {"set": {"kind": "Tool"}}, "expect": {"valid": false}, "ref": "6 MUST have kind: Claw"}
{"id": "MAN-47", "input": {"raw_yaml": "a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b]\nclaw: '0.3.0'\n"}, "expect": {"valid": false}, "ref": "robustness: alias expansion bounded, no crash"}
{"id": "MAN-14", "input": {"each": {"spec.providers": [[], "$DEL"]}}, "expect": {"valid": false}, "ref": "5.2, 6 at least one Provider"}
{"id": "MAN-03", "input": {"set": {"claw": "0.2.0"}}, "expect": {"valid": true}, "ref": "1.4 same major accepted"}
{"id": "MAN-11", "input": {"delete": ["spec.identity"]}, "expect": {"valid": false}, "ref": "5.1, 6 exactly one Identity"}
{"id": "MAN-25", "input": {"set": {"spec.tools": [{"inline": {"name": "t", "mcp_source": {"uri": "stdio:///bin/x"}}}]}}, "expect": {"valid": true}, "ref": "5.4 OPTIONAL with mcp_source"}
{"id": "MAN-29", "input": {"each": {"spec.tools": [[{"inline": {"name": "t", "description": "d", "input_schema": {"type": "object"}, "sandbox_ref": "nope"}}], [{"inline": {"name": "t", "description": "d", "input_schema": {"type": "object"}, "policy_ref": "nope"}}]]}}, "expect": {"valid": false}, "ref": "8 INIT 4 compatibility between primitives"}
{"id": "MAN-27", "input": {"each": {"spec.tools": [[{"inline": {"name": "t", "description": "d", "input_schema": {"type": "banana"}}}], [{"inline": {"name": "t", "description": "d", "input_schema": true}}], [{"inline": {"name": "t", "description": "d", "input_schema": {"type": "object", "properties": {"a": {"pattern": "("}}}}}]]}}, "expect": {"valid": false}, "ref": "5.4 input_schema MUST be a valid JSON Schema object"}
{"id": "MAN-20", "input": {"each": {"spec.channels": [[{"inline": {"type": "slack", "transport": "websocket", "auth": {"secret_ref": "T"}, "access_control": {"mode": "allowlist", "allowed_ids": ["u"], "roles": [{"id": "u", "role": "admin"}]}}}], [{"inline": {"type": "slack", "transport": "websocket", "auth": {"secret_ref": "T"}, "access_control": {"mode": "role-based", "roles": [{"id": "u", "role": "admin"}], "allowed_ids": ["u"]}}}], [{"inline": {"type": "slack", "transport": "websocket", "auth": {"secret_ref": "T"}, "access_control": {"mode": "open", "allowed_ids": ["u"]}}}], [{"inline": {"type": "slack", "transport": "websocket", "auth": {"secret_ref": "T"}, "access_control": {"mode": "pairing", "pairing": {"code_expiry_minutes": 5, "max_pending": 1}, "roles": [{"id": "u", "role": "admin"}]}}}], [{"inline": {"type": "slack", "transport": "websocket", "auth": {"secret_ref": "T"}, "access_control": {"mode": "allowlist", "allowed_ids": ["u"], "pairing": {"code_expiry_minutes": 5, "max_pending": 1}}}}]]}}, "expect": {"valid": false}, "ref": "5.3 normative: wrong field for a mode is a validation error"}
{"id": "MAN-43", "input": {"set": {"spec.tools": ["./tools/*.yaml"]}, "files": {"tools/a.yaml": "Tool a", "tools/b.yaml": "Tool b"}}, "expect": {"valid": true, "resolved": {"tools.names": ["a", "b"]}}, "ref": "6 globs MUST be expanded at load time (sorted)"}
{"id": "MAN-10", "input": {"set": {"spec.tools": [{"inline": {"name": "x", "description": "d", "input_schema": {"type": "object"}}}], "spec.skills": [{"inline": {"name": "x", "description": "d", "tools_required": ["x"], "instruction": "i"}}]}}, "expect": {"valid": true}, "ref": "5 uniqueness is per kind only"}
{"id": "MAN-33", "input": {"each": {"spec.memory": [{"inline": {"stores": [{"name": "a", "type": "conversation", "retention": {"max_age": "30 days"}}]}}, {"inline": {"stores": [{"name": "a", "type": "conversation", "retention": {"max_age": "P30D"}}]}}, {"inline": {"stores": [{"name": "a", "type": "conversation", "retention": {"max_age": "30"}}]}}, {"inline": {"stores": [{"name": "a", "type": "conversation", "retention": {"max_age": "-1d"}}]}}, {"inline": {"stores": [{"name": "a", "type": "conversation", "retention": {"max_age": "1.5h"}}]}}]}}, "expect": {"valid": false}, "ref": "schema.ts DurationString; JSON schema ^[0-9]+(s|m|h|d)$"}
{"id": "MAN-28", "input": {"set": {"spec.tools": [{"inline": {"name": "t", "description": "d", "input_schema": {"type": "object"}, "composite": true}}]}}, "expect": {"valid": false}, "ref": "schema.ts ToolSpec.skill_ref REQUIRED when composite"}
{"id": "INL-05", "input": {"set": {"metadata.version": "3.2.1"}}, "expect": {"valid": true, "resolved": {"identity.version": "3.2.1", "providers.0.version": "3.2.1"}}, "ref": "6.1 metadata.version defaults to the parent Claw version"}
{"id": "INL-04", "input": {"set": {"spec.tools": [{"inline": {"description": "d", "input_schema": {"type": "object"}}}, {"inline": {"name": "tool-0", "description": "d", "input_schema": {"type": "object"}}}]}}, "expect": {"valid": false, "message_contains": ["tool-0"]}, "ref": "Runtime Profile 2.4 collision SHOULD be rejected; 5 uniqueness MUST"}
{"id": "SBX-28", "input": {"set": {"spec.sandbox": {"inline": {"level": "container"}}}}, "expect": {"valid": true, "resolved": {"sandbox.runtime": "docker"}}, "ref": "Sandbox page 0.3.0: runtime SHOULD be inferred from level"}
"""


def _cases():
    for line in CASES.strip().splitlines():
        case = json.loads(line)
        each = case["input"].pop("each", None)
        if each is None:
            yield pytest.param(case, id=case["id"])
        else:
            (path, values), = each.items()
            for index, value in enumerate(values):
                one = copy.deepcopy(case)
                one["input"]["set" if value != "$DEL" else "delete"] = {path: value} if value != "$DEL" else [path]
                yield pytest.param(one, id=f"{case['id']}-{index}")


def _reach(document, path: str):
    """Return the container of the last step of a dotted path, and that step."""
    *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    for step in steps:
        document = document[step] if isinstance(step, int) else document.setdefault(step, {})
    return document, last


def _write(folder, given: dict) -> None:
    document = copy.deepcopy(MINIMAL)
    for path, value in given.get("set", {}).items():
        container, last = _reach(document, path)
        container[last] = value
    for path in given.get("delete", ()):
        container, last = _reach(document, path)
        del container[last]
    (folder / "claw.yaml").write_text(given.get("raw_yaml") or json.dumps(document))
    for name, words in given.get("files", {}).items():
        kind, own = words.split()
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps({"claw": "0.3.0", "kind": kind, "metadata": {"name": own}, "spec": SMALLEST[kind]}))


def _resolved(found, path: str):
    names = {"tools.names": lambda: [tool.name for tool in found.tools], "identity.version": lambda: found.identity.version,
             "providers.0.version": lambda: found.providers[0].version, "sandbox.runtime": lambda: found.sandbox.spec.runtime}
    return names[path]()


@pytest.mark.parametrize("case", list(_cases()))
def test_case(case, tmp_path):
    _write(tmp_path, case["input"])
    expect = case["expect"]
    if expect["valid"]:
        found = manifest.load(tmp_path)
        for path, value in expect.get("resolved", {}).items():
            assert _resolved(found, path) == value, case["ref"]
    else:
        with pytest.raises(ManifestErrors) as caught:
            manifest.load(tmp_path)
        for text in expect.get("message_contains", ()):
            assert text in str(caught.value)
        assert all(problem.line for problem in caught.value.problems), "every problem has a line"

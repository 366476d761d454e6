"""The manifests that the cases start from, and the patches that they lay over them.

conf             the folder ``fixture`` (its tools.py makes every function a tool), with hints,
                 labels and stores of its own
conf-allow-all   conf, autonomous, with one policy that allows everything; its sandbox is open:
                 level none as long as the case does not patch it, else the level of the fixture
                 with every capability granted, and the patch over that
min-l1           an Identity and a Provider, nothing else

A manifest is held resolved: {"metadata", slot: document or list of documents, "tools": {name:
document}}; a document is {"metadata": {"name", ...}, "spec": {...}}.  ``write`` makes a folder of
it."""

import copy
import json
import shutil
from pathlib import Path

import yaml

from clawlite.host.base.problems import Problems
from clawlite.host.tools import signature

FIXTURE = Path(__file__).with_name("fixture")
MCP_SERVER = Path(__file__).with_name("world") / "mcp_server.py"
READ_ONLY = (
    "sleep",
    "http-get",
    "read-file",
    "counter",
    "slow-counter",
    "audited",
    "printer",
    "big-output",
    "env-dump",
    "emit-secret",
    "ask-llm",
    "approve-default-allow",
    "flaky",
    "raise-",
)
CATEGORIES = {
    "http-get": "network",
    "read-file": "filesystem",
    "write-note": "filesystem",
    "approve-default-allow": "default-allow",
}
STORES = [
    {"name": "kv", "type": "key-value", "backend": "sqlite"},
    {"name": "conv", "type": "conversation", "backend": "sqlite"},
    {"name": "conv5", "type": "conversation", "backend": "sqlite", "retention": {"max_entries": 5}},
    {
        "name": "conv30d",
        "type": "conversation",
        "backend": "sqlite",
        "retention": {"max_age": "30d"},
    },
    {"name": "sem", "type": "semantic", "backend": "sqlite-vec"},
]
OPEN = {"network": {"mode": "allow-all"}, "filesystem": {"mode": "full"}, "shell": {"mode": "full"}}
CREDENTIAL = '\n[[credentials]]\nname = "API_KEY"\ntools = ["emit-secret"]\n'
ALLOW_ALL = [
    {
        "metadata": {"name": "allow-all"},
        "spec": {"rules": [{"id": "allow-all", "action": "allow", "scope": "all"}]},
    }
]


def resolved(setup: dict) -> dict:
    """Return the manifest that the ``setup`` of a case asks for, its patch applied."""
    patch = setup.get("patch", {})
    made = {
        "conf": _conf,
        "conf-allow-all": lambda: _conf_allow_all("sandbox" in patch),
        "min-l1": _min_l1,
    }[setup["manifest"]]()
    if "mcp_server" in setup:
        assert setup["mcp_server"] == "fixture-mcp"
        made["tools"]["mcp-echo"] = {
            "metadata": {"name": "mcp-echo"},
            "spec": {"mcp_source": {"uri": "stdio://%s" % MCP_SERVER}},
        }
    return _patched(made, patch)


def _document(path: Path) -> dict:
    read = yaml.safe_load(path.read_text())
    return {"metadata": read["metadata"], "spec": read["spec"]}


def _conf() -> dict:
    root = _document(FIXTURE / "claw.yaml")
    made = {"metadata": root["metadata"]}
    for slot, names in root["spec"].items():
        files = [
            path
            for name in ([names] if isinstance(names, str) else names)
            for path in sorted(FIXTURE.glob(name.removeprefix("./")))
        ]
        made[slot] = (
            _document(files[0]) if isinstance(names, str) else [_document(path) for path in files]
        )
    made["tools"] = dict(_extension(), **{tool["metadata"]["name"]: tool for tool in made["tools"]})
    made["memory"]["spec"]["stores"] += copy.deepcopy(STORES)
    # emit-secret alone gets one
    made["sandbox"]["spec"]["capabilities"]["secrets"] = {"injection": "environment"}
    made["policies"].insert(
        1,
        {
            "metadata": {"name": "default-allow"},
            "spec": {
                "rules": [
                    {
                        "id": "ask-then-allow",
                        "action": "require-approval",
                        "scope": "category",
                        "match": {"category": "default-allow"},
                        "approval": {"timeout_seconds": 1, "default_if_timeout": "allow"},
                    }
                ]
            },
        },
    )
    return made


def _extension() -> dict:
    """Return {name: document} of a Tool for each function of tools.py: its schema, and the hints
    and labels from above.
    """
    functions, broken = signature.read((FIXTURE / "tools.py").read_bytes(), "tools.py", Problems())
    assert not broken
    made = {}
    for function in functions:
        spec = {"description": function.description, "input_schema": function.schema}
        if function.name != "unannotated":
            spec["annotations"] = {
                "readOnlyHint": function.name in READ_ONLY,
                "destructiveHint": False,
            }
        labels = {"category": CATEGORIES.get(function.name, "utility")}
        made[function.name] = {"metadata": {"name": function.name, "labels": labels}, "spec": spec}
    return made


def _conf_allow_all(patches_sandbox: bool) -> dict:
    made = _conf()
    made["identity"]["spec"]["autonomy"] = "autonomous"
    made["policies"] = copy.deepcopy(ALLOW_ALL)
    if patches_sandbox:
        made["sandbox"]["spec"]["capabilities"] = copy.deepcopy(OPEN)
        return made
    return in_process(made)


def in_process(made: dict) -> dict:
    """Return *made* with a sandbox that isolates nothing."""
    made["sandbox"]["spec"] = {"level": "none"}
    return made


def _min_l1() -> dict:
    conf = _conf()
    return {slot: conf[slot] for slot in ("metadata", "identity", "providers")}


# -- patches


def merge(onto, patch):
    """Return *onto* with a JSON merge patch (RFC 7396) applied."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(onto) if isinstance(onto, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


def _patched(made: dict, patch: dict) -> dict:
    for slot, change in patch.items():
        if slot == "spec":
            for gone, nothing in change.items():
                assert nothing is None, (
                    "a patch of the root's spec takes slots away: the others are patched by name"
                )
                _without(made, gone)
        elif slot == "policies":
            made[slot] = [
                {"metadata": {"name": "policy-%d" % index}, "spec": spec}
                for index, spec in enumerate(change)
            ]
        # a list replaces; what an entry leaves out is the fixture's, or it would be no Provider
        elif slot == "providers":
            made[slot] = [
                {
                    "metadata": made[slot][index]["metadata"],
                    "spec": merge(made[slot][index]["spec"], spec),
                }
                for index, spec in enumerate(change)
            ]
        elif slot == "telemetry":
            made[slot] = {"metadata": {"name": "telemetry"}, "spec": change}
        elif slot in ("metadata", "identity", "sandbox", "tools"):
            made[slot] = merge(made[slot], change)
        else:
            raise AssertionError("no case patches " + slot)
    return made


def _without(made: dict, slot: str) -> None:
    """Take a slot away, and the references to what was in it."""
    del made[slot]
    assert slot == "sandbox"
    for tool in made["tools"].values():
        tool["spec"].pop("sandbox_ref", None)


# -- files


def write(folder: Path, made: dict) -> Path:
    """Write *made* to *folder*, as one claw.yaml with everything inline and a tools.py when it
    has tools; return the folder.
    """
    spec = {}
    for slot, value in made.items():
        if slot == "tools":
            spec[slot] = [_inline(document) for document in value.values()]
        elif slot != "metadata":
            spec[slot] = (
                [_inline(document) for document in value]
                if isinstance(value, list)
                else _inline(value)
            )
    folder.mkdir(parents=True, exist_ok=True)
    root = {"claw": "0.3.0", "kind": "Claw", "metadata": made["metadata"], "spec": spec}
    (folder / "claw.yaml").write_text(json.dumps(root, indent=1))
    if "tools" in made:
        shutil.copy(FIXTURE / "tools.py", folder)
        (folder / "clawlite.toml").write_text(
            (FIXTURE / "clawlite.toml").read_text() + (CREDENTIAL if _gives_secrets(made) else "")
        )
    return folder


def _gives_secrets(made: dict) -> bool:
    capabilities = made.get("sandbox", {"spec": {}})["spec"].get("capabilities", {})
    return (
        "emit-secret" in made["tools"]
        and capabilities.get("secrets", {}).get("injection") == "environment"
    )


def _inline(document: dict) -> dict:
    return {"inline": {"metadata": document["metadata"], **document["spec"]}}

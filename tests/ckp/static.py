"""Cases that need no session: manifests, URIs, secrets, and what a policy says of a call."""

import copy
import json

from clawlite.core.agent.agent_setup import Setup
from clawlite.core.base import effect as E
from clawlite.core.base import uri
from clawlite.core.base.errors import ClawError
from clawlite.core.image.image import Image
from clawlite.core.turns import tools
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.compiler import compiler
from clawlite.host.manifest import manifest
from clawlite.linux.files.workspace import resolve
from clawlite.linux.secrets import secrets

MINIMAL = {
    "claw": "0.3.0",
    "kind": "Claw",
    "metadata": {"name": "minimal-bot"},
    "spec": {
        "identity": {"inline": {"personality": "You are a helpful assistant."}},
        "providers": [
            {
                "inline": {
                    "protocol": "openai-compatible",
                    "endpoint": "http://localhost:11434/v1",
                    "model": "m",
                    "auth": {"type": "none"},
                }
            }
        ],
    },
}
SMALLEST = {"Tool": {"description": "d", "input_schema": {"type": "object"}}}
RESOLVED = {
    "tools.names": lambda found: [tool.name for tool in found.tools],
    "identity.version": lambda found: found.identity.version,
    "providers.0.version": lambda found: found.providers[0].version,
    "sandbox.runtime": lambda found: found.sandbox.spec.runtime,
}


# -- manifests: base, then set {dotted path: value}, delete [dotted path], each {dotted path:
# values, $DEL deletes}, files {name: "Kind name"}, raw_yaml: the whole text


def run_manifest(case: dict, folder) -> None:
    given = dict(case["input"])
    assert given.pop("kind") == "manifest" and given.pop("base") == "min"
    ((path, values),) = given.pop("each", {None: [None]}).items()
    for number, value in enumerate(values):
        one = copy.deepcopy(given)
        if value == "$DEL":
            one["delete"] = [path]
        elif path is not None:
            one["set"] = {path: value}
        _verdict(_written(folder / str(number), one), case["expect"])


def _verdict(folder, entries: list) -> None:
    for entry in entries:
        entry = dict(entry)
        if entry.pop("valid"):
            found = manifest.load(folder)
            for path, value in entry.pop("resolved", {}).items():
                assert RESOLVED[path](found) == value
        else:
            said = _refused(folder)
            assert all(text in said for text in entry.pop("message_contains", ())), said
        assert not entry, "a word that nobody checks: %s" % entry


def _refused(folder) -> str:
    try:
        manifest.load(folder)
    except ManifestErrors as e:
        assert all(problem.line for problem in e.problems), "every problem has a line"
        return str(e)
    raise AssertionError("expected a refusal, and it was accepted")


def _reach(document, path: str) -> tuple:
    """Return the container of the last step of a dotted path, and that step."""
    *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    for step in steps:
        document = document[step] if isinstance(step, int) else document.setdefault(step, {})
    return document, last


def _written(folder, given: dict):
    document = copy.deepcopy(MINIMAL)
    for path, value in given.pop("set", {}).items():
        container, last = _reach(document, path)
        container[last] = value
    for path in given.pop("delete", ()):
        container, last = _reach(document, path)
        del container[last]
    folder.mkdir()
    (folder / "claw.yaml").write_text(given.pop("raw_yaml", None) or json.dumps(document))
    for name, words in given.pop("files", {}).items():
        kind, own = words.split()
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(
            json.dumps(
                {"claw": "0.3.0", "kind": kind, "metadata": {"name": own}, "spec": SMALLEST[kind]}
            )
        )
    assert not given, "a word that nobody reads: %s" % given
    return folder


# -- URIs and secrets


def run_uri(case: dict, folder) -> None:
    for text in case["input"]["uris"]:
        try:
            uri.parse(text, alias=True)
            said = "ok"
        except ClawError:
            said = "rejected"
        assert case["expect"] == [{"parse": said}], text


def run_secret(case: dict, folder, monkeypatch) -> None:
    given, name = case["input"], case["input"]["ref"]
    monkeypatch.setenv("CLAWLITE_STATE", str(folder / "state"))
    monkeypatch.setenv("CLAW_SECRETS_DIR", str(folder / "mounted"))
    monkeypatch.setenv(name, given["env"])
    (folder / "mounted").mkdir()
    (folder / "mounted" / name).write_text(given["file"])
    if "store" in given:
        secrets.set_secret("test-agent", name, given["store"])
    assert case["expect"] == [{"value": secrets.resolve(name, secrets.stores("test-agent"))}]


# -- policies: the whole pipeline up to the handler, over a compiled image


def run_policy(case: dict, folder) -> None:
    given = case["input"]
    decided = _decided(_image(folder, given), given["tool"]["name"], given.get("args", {}), folder)
    for entry in case["expect"]:
        assert entry and set(entry) <= {"action", "rule_id"}
        assert {key: decided[key] for key in entry} == entry, decided


def _image(folder, given: dict) -> Image:
    tool = dict(given["tool"])
    hints = tool.pop("annotations", None)
    if "metadata_annotations" in tool:
        tool["annotations"] = tool.pop("metadata_annotations")
    schema = {
        "type": "object",
        "properties": {name: {} for name in given.get("args", {})},
        "required": list(given.get("args", {})),
    }
    inline = {"metadata": tool, "description": "d", "input_schema": schema}
    document = copy.deepcopy(MINIMAL)
    document["spec"]["identity"]["inline"]["autonomy"] = "autonomous"
    document["spec"].update(
        tools=[{"inline": inline}],
        sandbox={"inline": {"level": "none"}},
        policies=[{"inline": {"rules": rules}} for rules in given["policies"]],
    )
    (folder / "claw.yaml").write_text(json.dumps(document))
    name = tool["name"]
    (folder / "tools.py").write_text(
        'def %s(%s):\n    """Do nothing."""\n'
        % (name, ", ".join("%s: str" % one for one in given.get("args", {})))
    )
    found = manifest.load(folder)
    # also one that no manifest may hold: a server's hints can be anything
    found.tools[0].spec.annotations = hints
    data = compiler.build(found).data
    return Image(lambda offset, length: data[offset : offset + length], len(data), 16)


def _decided(image: Image, name: str, arguments: dict, folder) -> dict:
    """Return the record of the call: which rule decided, and how."""
    workspace = folder / "workspace"
    workspace.mkdir()
    (workspace / "link-to-etc").symlink_to("/etc")
    call, answer = tools.call(Setup(image), name, arguments, "operator"), None
    while True:
        effect = call.send(answer)
        answer = None
        if effect[0] == E.LOG:
            return effect[1]
        if effect[0] == E.RESOLVE:
            answer = True, resolve(effect[1], str(workspace))
        elif effect[0] == E.RUN:
            answer = True, "ran"

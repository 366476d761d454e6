"""The provider ``builtin:local``: what the image has of it, and what ``check`` says of it.

Its row is that of a remote provider whose prefix, in the section WIRE, is JSON for the process that
understands sentences (linux/local/model_process.py): the tools, the examples, and the settings."""

import json

from clawlite.core.providers.provider import EXPONENTIAL, NONE
from clawlite.host.base.document import LinePlace
from clawlite.host.base.problems import did_you_mean, enquote, value_text
from clawlite.protocols.image.features import LOCAL_API

ENDPOINT, MODEL = "builtin:local", "needle-3"
MAX_EXAMPLES, MAX_SAY = 2000, 200
DIMENSIONS = 3072  # of its vectors
ENOUGH = 4  # examples of a tool
# words of names, descriptions and categories of what a model should not move unasked
_RISKY = (
    "door garage gate lock valve heat heater heating boiler oven stove fire gas pump motor blade "
    "saw alarm siren coop window furnace iron kiln".split()
)


def is_local(provider) -> bool:
    return provider.spec.endpoint == ENDPOINT


def row(provider, prefix: list) -> list:
    """Return the record of *provider*, with the fields of ``core.provider.Provider``."""
    head = [provider.name, LOCAL_API, False, "local", 0, ENDPOINT, provider.spec.model]
    limits = [None] * 4
    times, prices = [60000, 180000], [0, 0]
    tail = [*times, prices, prefix, [prefix[0], 0, 0], []]
    return [*head, NONE, "", None, False, 1, EXPONENTIAL, 0, *limits, *tail]


def wire(manifest, provider, tools: list | None) -> bytes:
    """Return what the process gets of *manifest*; mistakes go to its problems.

    tools  Tool primitives that policy does not always deny, under the names by which models call
           them; None: it picks no calls, and makes vectors of texts alone
    """
    settings = manifest.settings.local
    offered = [_tool(tool) for tool in tools or ()]
    names = [tool["name"] for tool in offered]
    known = {name.replace("__", ".", 1): name for name in names}
    say = {}
    for name, text in (settings.say or {}).items() if tools is not None else ():
        if name not in known:
            _report(
                manifest,
                ("local", "say", name),
                f"no tool is named {enquote(name)}",
                did_you_mean(name, known),
            )
        say[known.get(name, name)] = text
    said = {
        "do": "setup",
        "timeout_ms": settings.timeout_ms,
        "idle_ms": settings.idle_s * 1000,
        "warm": settings.warm,
        "say": say,
        "tools": offered,
        "examples": [] if tools is None else read_examples(manifest, known),
    }
    return json.dumps(said, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()


def _report(manifest, path: tuple, message: str, hint: str):
    manifest.problems.add(manifest.settings.place, path, message, hint=hint, key=True)


def _tool(tool) -> dict:
    schema = tool.spec.input_schema or {"type": "object"}
    return {
        "name": tool.name,
        "description": (tool.spec.description or tool.name)[:400],
        "parameters": {
            "type": "object",
            "properties": {
                name: rule
                for name, rule in schema.get("properties", {}).items()
                if isinstance(rule, dict)
            },
            "required": list(schema.get("required", [])),
        },
        "reads": (tool.spec.annotations or {}).get("readOnlyHint") is True and not tool.served,
    }


def read_examples(manifest, known: dict) -> list:
    """Return [{"say", "tool"}, ...] of the file of examples; mistakes go to the problems of
    *manifest*.

    known  {a tool's name in the manifest: its name for models}
    """
    text, file = manifest.settings.sentences, manifest.settings.sentences_file
    found, at = [], 0
    for number, line in enumerate((text or "").splitlines(), 1):
        if not line.strip():
            continue
        wrong, hint = "", 'write {"say": "water for 10 seconds", "tool": "water"}'
        try:
            one = json.loads(line)
        except ValueError as e:
            one, wrong = None, f"no JSON: {e}"
        if not wrong and (not isinstance(one, dict) or set(one) - {"say", "tool"}):
            wrong = f"expected an object with say and tool, found {value_text(one)}"
        elif not wrong and not (isinstance(one.get("say"), str) and 0 < len(one["say"]) <= MAX_SAY):
            wrong = f"say: expected 1 to {MAX_SAY} characters, found {value_text(one.get('say'))}"
        elif not wrong and one.get("tool") is not None and one["tool"] not in known:
            wrong = f"no tool that may be called is named {value_text(one['tool'])}"
            hint = did_you_mean(str(one["tool"]), known) or "tools here: " + ", ".join(
                sorted(known)
            )
        if wrong:
            manifest.problems.add(LinePlace(file, number), (), wrong, hint=hint)
            continue
        at += 1
        if at > MAX_EXAMPLES:
            manifest.problems.add(
                LinePlace(file, number),
                (),
                f"more than {MAX_EXAMPLES} examples",
                hint="keep the four or five best ones of each tool",
            )
            break
        tool = one.get("tool")
        found.append({"say": one["say"], "tool": None if tool is None else known[tool]})
    return found


def notes(manifest, decided: list) -> list:
    """Return [(where, message), ...] of what the local model makes worth a look.

    decided  [(Tool primitive, action of the rule that always decides it; "" when that depends on
             its arguments), ...] of those that policy may allow
    """
    found: list = []
    counts: dict = {}
    for line in (manifest.settings.sentences or "").splitlines():
        try:
            name = json.loads(line)["tool"]
        except (ValueError, KeyError, TypeError):
            continue
        counts[name] = counts.get(name, 0) + 1
    autonomy = manifest.identity.spec.autonomy or "supervised"
    for tool, action in decided:
        if autonomy == "autonomous" and action in ("allow", "audit-only") and _is_risky(tool):
            said = f"policy lets the local model run {tool.name} unasked, and it misunderstands "
            said += "one sentence in fifty - require-approval for it asks a person first"
            found.append((tool.where(), said))
        count = counts.get(tool.name, 0)
        if count < ENOUGH:
            said = f"{tool.name} has {count} example sentences for the local model - write "
            said += f"{ENOUGH} or more into {manifest.settings.local.examples}"
            found.append((tool.where(), said))
    return found


def _is_risky(tool) -> bool:
    """Return whether *tool* moves what can harm: a door, a heater, or what says so of itself."""
    hints = tool.spec.annotations or {}
    if hints.get("readOnlyHint") is True:
        return False
    category = (tool.labels or {}).get("category") or ""
    said = " ".join([tool.name, tool.spec.description or "", category]).lower()
    return hints.get("destructiveHint") is True or any(word in said for word in _RISKY)

"""Every tool that an agent has, for ``clawlite tools``: how a model sees it, where it runs, and
what stops it.

Rules and limits are read from the compiled image, as a device reads them.  An image does not hold
the schemas as they were written.  They come from the manifest; for an image alone, they come from
the registry or from the requests to its remote providers.  Otherwise no schema is shown."""

import json
import os
import types

from clawlite.core.base.errors import ImageError
from clawlite.core.base.printable import join_lines
from clawlite.core.image import header
from clawlite.core.image import image as layout
from clawlite.core.image.image import (
    HANDLER_KIND,
    OBSERVER,
    RULE_ACTION,
    RULE_ID,
    RULE_RATE,
    RULE_ROOT,
    SUPERVISED,
)
from clawlite.core.policy.policy import ALLOW, APPROVE, DENY
from clawlite.core.policy.policy_preview import preview
from clawlite.host.base.kinds import LIMITS
from clawlite.host.documents import registry
from clawlite.host.image import image_reader
from clawlite.host.skills import show as skills
from clawlite.host.tools import show as tools
from clawlite.protocols.mcp.tool_definitions import HINTS, find_sent
from clawlite.protocols.sandbox import profile as P
from clawlite.protocols.sandbox.defaults import find_defaults, sentence

_DECISIONS = ("deny", "ask", "allow", "allow")  # by action; audit-only lets it run


def default_manifest() -> str:
    """Return the default when no file is named, as for ``run``: the manifest in the current
    folder, else the only image there.
    """
    alone = not any(os.path.lexists(name) for name in ("claw.yaml", "claw.yml", "claw.json"))
    return "claw.cbor" if alone and os.path.isfile("claw.cbor") else "."


def rows(name: str) -> list[dict]:
    """Return a row for each tool of the manifest or image *name*, in its order.

    Keys: name, description, category, input_schema and output_schema (None where they are not
    known), annotations, sandbox ({name, level, refuses, limits, default_limits}: why the sandbox
    always refuses it, or None; what a call may use, and the names of those limits that nobody
    declared), handler, timeout_ms, max_output_bytes, decision (allow, ask, deny or depends), rule
    (of a decision that is always the same, or None), policy (a sentence), skill (None, or what
    ``skills.show.skills`` says of it). Raises ``ManifestErrors``, ``ImageError``."""
    if image_reader.is_image(name):
        image = image_reader.open_image(name)
        schemas = _read_sent(image)
    else:
        from clawlite.host.tools import skill_tools

        loaded, image = _build(name)
        schemas = {
            skill_tools.name_of_call(tool): (tool.spec.input_schema, tool.spec.output_schema)
            for tool in loaded.tools + skill_tools.as_tools(loaded)
        }
    profile = P.profile_of(image) if image.names else None
    found = skills.skills(image)
    return [
        dict(_row(image, image.tool(tool), profile, schemas), skill=found.get(tool))
        for tool in image.names
    ]


def _build(name: str) -> tuple:
    """Return (the manifest *name*, its image).  Raises ``ManifestErrors``."""
    from clawlite.host.compiler import compiler
    from clawlite.host.manifest import manifest

    loaded = manifest.load(name)
    data = compiler.build(loaded, at_use=True).data
    return loaded, layout.Image(lambda at, length: data[at : at + length], len(data), 1024)


def decision_of(name: str, tool: str) -> dict:
    """Return the policy's decision about *tool*, which the agent need not have: {name, known,
    decision, rule, policy}, as in ``rows``.  *known* is False when the agent does not have the
    tool; then its name alone decides.

    name  a manifest; or an image, which knows only its own tools
    Raises ``ManifestErrors``, ``ImageError``."""
    loaded = None
    if image_reader.is_image(name):
        image = image_reader.open_image(name)
    else:
        loaded, image = _build(name)
    found = image.tool(tool)
    is_known = found is not None
    if not is_known:
        if loaded is None:
            raise ImageError(
                f"{name}: the image has no tool {tool}, and rules for other names are in its "
                "manifest alone",
                "name the manifest: clawlite tools claw.yaml --may " + tool,
            )
        from clawlite.host.policy import folding
        from clawlite.host.sandbox import sandboxes

        rules = folding.NameDecisions(folding.flatten(loaded.policies, sandboxes.workspace(loaded)))
        found = types.SimpleNamespace(
            name=tool, entry=rules.entry(tool), bound=None, flags=layout.HAS_SIDE_EFFECTS
        )
    decision, rule = decide(image, found)
    return {
        "name": found.name,
        "known": is_known,
        "decision": decision,
        "rule": rule,
        "policy": preview(image, found),
    }


def _row(image, tool, profile, schemas: dict) -> dict:
    builtin = tool.handler[HANDLER_KIND] == layout.BUILTIN
    given, returned = schemas.get(tool.name) or (_look_up(tool.name) if builtin else (None, None))
    decision, rule = decide(image, tool)
    return {
        "name": tool.name,
        "description": image.prose(tool.about),
        "category": tool.category,
        "input_schema": given,
        "output_schema": returned,
        "annotations": {hint: bool(tool.flags & flag) for hint, flag in HINTS.items()},
        "sandbox": {
            "name": profile.name or None,
            "level": ("none", "process")[profile.level],
            "refuses": _refuses(tool, profile),
            **_limits(image, profile),
        },
        "handler": tools.handler(tool),
        "timeout_ms": tool.timeout_ms or None,
        "max_output_bytes": tool.max_output,
        "decision": decision,
        "rule": rule,
        "policy": preview(image, tool),
    }


def decide(image, tool) -> tuple:
    """Return (decision, id of the rule that makes it or None): "depends" where arguments, the
    day or several rules have a say.
    """
    if image.agent.autonomy == OBSERVER:
        return "deny", None
    action, rule = ALLOW + 1, None
    for entry in [tool.entry] + (tool.bound or []):
        number = (
            entry[0]
            if isinstance(entry, list) and len(entry) == 1 and not _conditional(image, entry[0])
            else entry
        )
        if isinstance(number, list):
            return "depends", None
        decision = DENY if number is None else image.rule(number)[RULE_ACTION]
        if decision < action:
            action, rule = decision, None if number is None else image.rule(number)[RULE_ID]
    if (
        action > APPROVE
        and image.agent.autonomy == SUPERVISED
        and tool.flags & layout.HAS_SIDE_EFFECTS
    ):
        return "ask", rule
    return _DECISIONS[action], rule


def _conditional(image, number: int) -> bool:
    return image.rule(number)[RULE_ROOT] is not None or image.rule(number)[RULE_RATE] is not None


def _refuses(tool, profile) -> str | None:
    """Return why the sandbox refuses every call of a built-in tool, or None."""
    modes = {"filesystem": profile.files, "shell": profile.shell, "network": profile.network}
    needs = tool.category if tool.handler[HANDLER_KIND] == layout.BUILTIN else None
    return f"capabilities.{needs} is deny" if modes.get(needs) == P.DENY else None


def _limits(image, profile) -> dict:
    """Return {limits: {name: what a call has, or None for no limit}, default_limits: names of
    those that nobody declared}.
    """
    local = image.section(layout.LOCAL)
    if local is not None:
        header.check_shape(
            local[:1] if isinstance(local, list) else local, ([str],), "what is local"
        )
    default = (
        find_defaults(profile, local[0] if local else ()) if profile.level == P.PROCESS else {}
    )
    return {
        "limits": {name: default.get(name, getattr(profile, name)) for name in LIMITS},
        "default_limits": sorted(default),
    }


def _look_up(name: str) -> tuple:
    """Return the schemas of the registry's tool *name*; (None, None) where the package that
    reads them is missing.
    """
    try:
        return registry.schemas(name)
    except ImportError:
        return None, None


def _read_sent(image) -> dict:
    """Return {tool: (input schema, None)} from the requests to an image's remote providers.

    Raises ``ImageError`` when the image was not written by our compiler.
    """
    try:
        found = find_sent(image, json.JSONDecoder().raw_decode)
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        raise ImageError(
            "image: what it sends to a provider has another shape than this runtime knows",
            "build it again with this version of clawlite",
        ) from None
    return {name: (schema, None) for name, schema in found.items()}


def text(found: list[dict]) -> str:
    """Return the rows for people."""
    if not found:
        return "this agent has no tools"
    sandbox = found[0]["sandbox"]
    lines = [f"sandbox {sandbox['name'] or 'none declared'}, level {sandbox['level']}"]
    if sandbox["default_limits"]:
        lines.append(
            "  not declared, so each call has "
            + sentence({name: sandbox["limits"][name] for name in sandbox["default_limits"]})
        )
    for row in found:
        hints = [hint[:-4] for hint, on in row["annotations"].items() if on]
        lines += [
            f"{row['name']:18} {row['decision']:8} {row['policy']}",
            "  " + " ".join(row["description"].split()),
            f"  "
            f"{row['handler']}{', ' + row['category'] if row['category'] else ''}{', ' + ', '.join(hints) if hints else ''}"  # noqa: E501
            f"{', ends after %d ms' % row['timeout_ms'] if row['timeout_ms'] else ''}",
        ]
        if row["skill"]:
            lines.append("  " + skills.describe(row["skill"]))
        if row["sandbox"]["refuses"]:
            lines.append(f"  always refused: {row['sandbox']['refuses']}")
        lines += [f"    {line}" for line in _arguments(row["input_schema"])]
    return join_lines(lines)


def _arguments(schema: dict | None) -> list[str]:
    """Return a line for each argument of a schema."""
    if schema is None:
        return ["(its arguments are not in the image: name the manifest to see them)"]
    needed = schema.get("required", [])
    return [
        f"{name}: "
        f"{_kind(part)}{'' if name in needed else ', optional'}{' - ' + ' '.join(str(part['description']).split()) if part.get('description') else ''}"  # noqa: E501
        for name, part in schema.get("properties", {}).items()
        if isinstance(part, dict)
    ]


def _kind(part: dict) -> str:
    if "enum" in part:
        return " | ".join(str(value) for value in part["enum"])
    kind = part.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)

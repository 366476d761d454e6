"""Show the contents of an image, for people and for ``--json``."""

from clawlite.core.base.errors import ImageError
from clawlite.core.base.printable import join_lines
from clawlite.core.image import header, image_signature, memories, pins
from clawlite.core.image import image as layout
from clawlite.core.image.image import (
    HANDLER_KIND,
    HANDLER_NAME,
    MAKER,
    RULE_ACTION,
    RULE_ALLOWS,
    RULE_ID,
    RULE_POLICY,
    RULE_RATE,
    RULE_REASON,
    RULE_ROOT,
    RULE_TIMEOUT_S,
)
from clawlite.core.image.scan_config import AUDIT_DESTINATION, AUDIT_KEPT_S, ScanConfig
from clawlite.core.image.skill import PREFIX, SHAPE, Skill
from clawlite.core.image.skill import skills as core_skills
from clawlite.core.policy.policy import ACTIONS
from clawlite.core.policy.policy_preview import condition, preview
from clawlite.host.base.regular_file import open_regular
from clawlite.host.image import services
from clawlite.host.image.image_file import AUTONOMY, SECTION_NAMES
from clawlite.protocols.image.features import audit_mb

# by what answers a tool
HANDLERS = (
    "built in: ",
    "tools.py: ",
    "skill: ",
    "composite, by the skill ",
    "MCP server: ",
    "service: ",
)


def handler(tool) -> str:
    """Return what answers *tool* (``image.Tool``), for a person."""
    kind, name = tool.handler[HANDLER_KIND], tool.handler[HANDLER_NAME]
    if kind == MAKER:  # without the pin of a tool provider's
        name = "/".join(name.split("/")[:2])
    return HANDLERS[kind] + name


def is_image(path: str) -> bool:
    """Return whether *path* is an image, or calls itself one: its errors are an image's then."""
    try:
        with open(path, "rb", opener=open_regular) as file:
            return path.endswith(".cbor") or file.read(3) == header.MAGIC
    except OSError:
        return path.endswith(".cbor")


def inspect_file(path: str) -> dict:
    """Return what the image in the file *path* holds (see ``inspect``).  Raises ``ImageError``,
    which names the file.
    """
    return _read_named(path, inspect)


def open_image(path: str) -> layout.Image:
    """Return the image in the file *path*, its digest checked.  Raises ``ImageError``, which
    names the file.
    """
    return _read_named(path, read_checked)


def _read_named(path: str, work):
    try:
        with open(path, "rb", opener=open_regular) as file:
            data = file.read(header.MAX_IMAGE + 1)
    except OSError as e:
        raise ImageError(
            f"{path}: {e.strerror}", "name an image; make one with: clawlite build"
        ) from None
    try:
        return work(data)
    except ImageError as e:
        raise type(e)(f"{path}: {e.message}", e.hint or "build it again") from None


def read_checked(data: bytes) -> layout.Image:
    """Return the image *data*, its digest checked.  Raises ``ImageError``."""

    def read(offset: int, length: int) -> bytes:
        return data[offset : offset + length]

    image = layout.Image(read, len(data), 1024)
    image_signature.check(read, len(data), image.seal_at)
    return image


def inspect(data: bytes) -> dict:
    """Return what the image *data* holds, its digest checked.  Raises ``ImageError``.

    Keys: agent, version, compiler, format, bytes, signed, autonomy, level, tool_calls_per_minute,
    requires, sections, companions, audit, tools, services, mcp_servers, skills, rules, stores,
    pins.
    """
    image = read_checked(data)
    agent = image.agent
    return {
        "agent": agent.name,
        "version": agent.version,
        "identity": agent.identity,
        "compiler": image.compiler,
        "format": header.FORMAT,
        "bytes": len(data),
        "signed": len(data) - image.seal_at == image_signature.SIGNED,
        "autonomy": AUTONOMY[agent.autonomy],
        "level": f"level-{agent.level}",
        "sandbox": agent.sandbox or None,
        "tool_calls_per_minute": agent.calls_per_minute,
        "requires": image.requires,
        "sources": image.sources.hex(),
        "companions": [{"file": name, "sha256": digest.hex()} for name, digest in image.companions],
        "sections": [
            {"name": SECTION_NAMES.get(number, f"section {number}"), "bytes": image.size_of(number)}
            for number in image.sections()
        ],
        "stores": [_store(store) for store in memories.stores(image)]
        if image.size_of(layout.MEMORY)
        else [],
        "pins": [_pin(row) for row in image.section(layout.PINS) or ()],
        "audit": _audit(image),
        "tools": [_tool(image, name) for name in image.names],
        "services": services.services(image),
        "mcp_servers": services.servers(image),
        "skills": [dict({"name": name}, **skill) for name, skill in skills(image).items()],
        "rules": [_rule(image.rule(number)) for number in range(_rows(image))],
    }


def _rows(image) -> int:
    """Return how many rows the table of rules has: its first offset says where the offsets end."""
    return int.from_bytes(image.part(layout.RULES, 0, 4), "big") // 4 - 1


def _audit(image) -> dict | None:
    """Return what is kept of calls, or None; "max_size_mb" is of agents on Linux, 0: no bound."""
    found = ScanConfig(image.section(layout.GUARD)).audit if image.size_of(layout.GUARD) else None
    if found is None:
        return None
    return {
        "destination": found[AUDIT_DESTINATION],
        "retention_s": found[AUDIT_KEPT_S],
        "max_size_mb": audit_mb(found),
    }


def _store(store) -> dict:
    return {
        "name": store.name,
        "type": memories.TYPES[store.type],
        "scope": memories.SCOPES[store.scope],
        "max_age_s": store.max_age_s,
        "max_entries": store.max_entries,
        "compaction": memories.STRATEGIES[store.compaction],
        "promise": "power-safe" if store.lasting else "kill-safe",
        "wear_saving": store.saves_wear,
        "encrypted": store.secret is not None,
    }


def _pin(row: list) -> dict:
    name, number, kind, _, _, _, _, safe, _ = row
    return {
        "name": name,
        "pin": number,
        "kind": pins.KINDS[kind],
        "safe": safe if pins.KINDS[kind] in ("output", "pwm") else None,
    }


def _tool(image, name: str) -> dict:
    tool = image.tool(name)
    return {
        "name": name,
        "description": image.prose(tool.about),
        "category": tool.category,
        "read_only": bool(tool.flags & layout.READ_ONLY),
        "timeout_ms": tool.timeout_ms or None,
        "max_attempts": tool.retry[0] if tool.retry else 1,
        "handler": handler(tool),
        "record_bytes": image.row(name)[2],
        "policy": preview(image, tool),
    }


def skills(image) -> dict:
    """Return {name of its tool: {"uses": [tool], "asks": bool, "estimates": {"tokens",
    "seconds", "tool_calls"}}} of each skill; None where the manifest gives no estimate.
    """
    return {
        PREFIX + skill.name: {
            "uses": skill.names,
            "asks": _asks(image, skill.name),
            "estimates": dict(zip(("tokens", "seconds", "tool_calls"), skill.estimates)),
        }
        for skill in map(
            Skill, header.check_shape(core_skills(image), SHAPE, "the section of skills")
        )
    }


def _asks(image, name: str) -> bool:
    tool = image.tool(PREFIX + name)
    if tool is None:
        raise ImageError("image: the skill %s has no tool record" % name, "build it again")
    return bool(tool.flags & layout.ASKS)


def estimates(skill: dict) -> str:
    """Return the declared estimates of a skill: "about 100 tokens, 2 tool calls", or ""."""
    said = [
        f"{number} {name.replace('_', ' ')}"
        for name, number in skill["estimates"].items()
        if number is not None
    ]
    return "about " + ", ".join(said) if said else ""


def _rule(rule: list) -> dict:
    tokens, nano_dollars = rule[RULE_RATE] or (None, None)
    return {
        "id": rule[RULE_ID],
        "action": ACTIONS[rule[RULE_ACTION]],
        "reason": rule[RULE_REASON],
        "policy": rule[RULE_POLICY],
        "path_within": rule[RULE_ROOT],
        "tokens_per_day": tokens,
        "cost_per_day_usd": None if nano_dollars is None else nano_dollars / 1e9,
        "approval_timeout_s": rule[RULE_TIMEOUT_S] or None,
        "default_if_timeout": "allow" if rule[RULE_ALLOWS] else "deny",
        "condition": condition(rule) or None,
    }


def _of_audit(found: dict) -> list:
    kept = "for ever" if found["retention_s"] is None else f"for {found['retention_s']} s"
    most = f"at most {found['max_size_mb']} MiB on Linux" if found["max_size_mb"] else "of any size"
    return ["audit", f"  {found['destination']}, kept {kept}, {most}"]


def text(found: dict) -> str:
    """Return ``inspect``'s answer for people."""
    lines = [
        f"{found['agent']} {found['version']}".rstrip() + f" - {found['bytes']} bytes, "
        f"format {found['format']}, "
        f"built by {found['compiler']}, {'signed' if found['signed'] else 'not signed'}",
        f"  {found['level']}, {found['autonomy']}, sandbox "
        f"{found['sandbox'] or 'none declared'}, "
        f"needs: {', '.join(found['requires']) or 'nothing special'}",
        "sections",
    ]
    lines += [f"  {part['name']:14}{part['bytes']:7} bytes" for part in found["sections"]]
    lines += ["files that travel with it"] if found["companions"] else []
    lines += [f"  {one['file']}, SHA-256 {one['sha256'][:16]}..." for one in found["companions"]]
    lines += ["stores"] if found["stores"] else []
    lines += [
        f"  {store['name']:20} {store['type']}, {store['scope']}, "
        f"{store['promise']}{', wear-saving' if store['wear_saving'] else ''}{', encrypted' if store['encrypted'] else ''}"  # noqa: E501
        for store in found["stores"]
    ]
    lines += ["pins"] if found["pins"] else []
    lines += [
        f"  {one['name']:20} {one['pin']}, {one['kind']}"
        f"{'' if one['safe'] is None else ', safe: ' + str(one['safe'])}"
        for one in found["pins"]
    ]
    lines += _of_audit(found["audit"]) if found["audit"] else []
    lines += ["tools"] if found["tools"] else []
    for tool in found["tools"]:
        lines.append(f"  {tool['name']:20} {tool['policy']}")
        lines.append(f"  {'':20} {tool['handler']}, record of {tool['record_bytes']} bytes")
    lines += services.inspection_lines(found)
    lines += ["skills"] if found["skills"] else []
    for skill in found["skills"]:
        lines.append(
            f"  {skill['name']:20} uses "
            f"{', '.join(skill['uses'])}{'; ' * bool(estimates(skill))}{estimates(skill)}"
        )
    lines += ["rules, first match wins"] if found["rules"] else []
    for rule in found["rules"]:
        lines.append(
            f"  {rule['id']:20} "
            f"{rule['action']}{', ' + rule['condition'] if rule['condition'] else ''}"
            f"{': ' + rule['reason'] if rule['reason'] else ''}"
        )
    return join_lines(lines)

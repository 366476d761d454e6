"""The Skills of a manifest (CKP 0.2.0, 5.5) to the section of the image that core/image/skill.py
reads (docs/skills.md).

1. A model begins a skill by a tool ``skill__NAME``, which only reads: rules of scope ``skill`` and
   ``all`` decide about it.
2. While a skill is under way, its tools may be called, composite ones among them, and skills that
   use no other tools.
3. ``permissions`` that a required tool exceeds are refused here.  What a tool does is known from
   its category, its hints, and what its sandbox allows.
"""

import json

from clawlite.core.image.image import SKILLS
from clawlite.core.image.skill import PREFIX
from clawlite.host.base.problems import enquote
from clawlite.host.documents import registry
from clawlite.host.models.feature import Feature
from clawlite.host.providers import provider_order
from clawlite.host.sandbox import sandboxes
from clawlite.host.skills.model import SkillSpec
from clawlite.host.tools import skill_tools
from clawlite.protocols.sandbox.profile import FULL

MAX_NAME = 64 - len(PREFIX)  # providers take names of 64 characters
MAX_TEXT = 32768  # bytes of an instruction
_FRAME = (
    "Follow this instruction for the input below it (skill %s). Call no tools but these: "
    "%s.\n\n%s\n\n"
)
_OUTPUT = (
    "End with an answer that is one JSON value, without any other text, and fits this JSON "
    "Schema: %s\n\n"
)


def compile_sections(manifest, work) -> dict:
    """Compile the rows of ``skill.Skill``; None without skills."""
    work.texts.append(_system)
    needed = {one.name for skill in manifest.skills for one in find_tools(manifest, skill)}
    # no model is shown internal tools that no skill needs
    work.hide({tool.name for tool in manifest.tools if tool.is_internal} - needed)
    rows = []
    for skill in manifest.skills:
        spec, names = skill.spec, _fence(manifest, skill)
        text = _FRAME % (skill.name, ", ".join(names), spec.instruction.strip())
        if spec.output_schema is not None:
            text += _OUTPUT % json.dumps(spec.output_schema, ensure_ascii=False)
        estimates = spec.estimates
        rows.append(
            [
                skill.name,
                work.prose.add(text + "Input: "),
                names,
                field(skill_tools.input_schema_of(skill)),
                _defaults(skill_tools.input_schema_of(skill)),
                None
                if spec.output_schema is None
                else work.compile_schema(manifest, skill, "output_schema", spec.output_schema),
                [
                    estimates and getattr(estimates, name)
                    for name in ("avg_tokens", "avg_duration_seconds", "avg_tool_calls")
                ],
            ]
        )
    return {SKILLS: rows or None}


def find_tools(manifest, skill) -> list:
    """Return the tools that *skill* names, each once."""
    found = []
    for reference in skill.spec.tools_required:
        found += [tool for tool in manifest.resolve_all("Tool", reference) if tool not in found]
    return found


def _fence(manifest, skill) -> list[str]:
    """Return the names that may be called while *skill* is under way."""
    names = [tool.name for tool in find_tools(manifest, skill)]
    return names + [
        skill_tools.name_of_call(other)
        for other in manifest.skills
        if other.name != skill.name
        and {tool.name for tool in find_tools(manifest, other)} <= set(names)
    ]


def field(schema: dict) -> str | None:
    """Return the argument that plain text becomes: the only one that is required, or the only
    one at all, when it may be a string.
    """
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    names = schema.get("required") or list(properties)
    one = properties.get(names[0]) if len(names) == 1 else None
    return names[0] if isinstance(one, dict) and "string" in types(one) else None


def types(schema: dict, default: str = "string") -> list:
    """Return the types that *schema* allows, or *default* when it names none."""
    kinds = schema.get("type", default)
    return kinds if isinstance(kinds, list) else [kinds]


def _defaults(schema: dict) -> list:
    properties = schema.get("properties")
    return [
        [name, part["default"]]
        for name, part in (properties if isinstance(properties, dict) else {}).items()
        if isinstance(part, dict) and "default" in part
    ]


def _system(manifest, offered: list) -> str:
    """Return the system prompt: the personality, its locale, and the skills among the *offered*
    tools (under the names by which they are called), which a model may begin."""
    identity = manifest.identity.spec
    text = identity.personality
    if identity.locale:
        text = (
            "%s\n\nThe locale is %s: answer in its language, unless you are spoken to in another."
            % (text.rstrip(), identity.locale)
        )
    lines = [
        "- %s: %s" % (tool.name, " ".join((tool.spec.description or "").split()))
        for tool in offered
        if tool.kind == "Skill"
    ]
    if lines:
        text = (
            "%s\n\nSkills: call one to get its instruction, before you do yourself what it is "
            "for.\n%s" % (text.rstrip(), "\n".join(lines))
        )
    return text


# -- what is refused


def check(manifest, at_use: bool) -> None:
    """Add a problem for each skill and composite tool whose declaration cannot be fulfilled."""
    for skill in manifest.skills:
        if len(skill.name) > MAX_NAME:
            manifest.problem(
                skill,
                (),
                f"the name of a skill has at most {MAX_NAME} characters: "
                f"a model calls it {PREFIX}NAME",
                hint="give it a shorter one",
            )
        if len(skill.spec.instruction.encode()) > MAX_TEXT:
            manifest.problem(
                skill,
                ("instruction",),
                "",
                f"at most {MAX_TEXT} bytes",
                f"{len(skill.spec.instruction.encode())}",
            )
        for number, reference in enumerate(skill.spec.tools_required):
            for needed in manifest.resolve_all("Tool", reference):
                for said, tool in _exceeding(manifest, skill.spec.permissions, needed):
                    manifest.problem(
                        skill,
                        ("tools_required", number),
                        f"permissions.{said}, and {tool} does more",
                        hint="grant it, or leave the tool out",
                    )
    models = any(
        provider_order.is_remote(provider) for provider in provider_order.providers(manifest)
    )
    for tool in manifest.tools:
        spec = tool.spec
        if spec.skill_ref is not None and not spec.composite:
            manifest.problem(
                tool,
                ("skill_ref",),
                "only a composite tool runs a skill",
                hint="add composite: true, or remove it",
                key=True,
            )
        if spec.composite and not models:
            manifest.problem(
                tool,
                ("composite",),
                "no provider here is a model: built-in ones "
                "cannot follow the instruction of a skill",
                hint="add a provider that is a model, or remove the tool",
                key=True,
            )
        for name in ("retry", "sandbox_ref", "mcp_source") if spec.composite else ():
            if getattr(spec, name) is not None:
                manifest.problem(
                    tool,
                    (name,),
                    "a composite tool is a turn of a model: the tools "
                    "that it calls have this, not it",
                    hint="remove it",
                    key=True,
                )


def _exceeding(manifest, permissions, tool):
    """Yield (permission, name of a tool) for each action of *tool* beyond *permissions*.  A
    composite tool does what its skill's tools do.
    """
    if permissions is None:
        return
    if tool.spec.composite:
        for inner in find_tools(manifest, manifest.resolve("Skill", tool.spec.skill_ref)):
            yield from _exceeding(manifest, permissions, inner)
        return
    hints, category = tool.spec.annotations or {}, (tool.labels or {}).get("category")
    ability = registry.ability(tool.name) if tool.origin == "registry" else ""
    can = manifest.sandbox.spec.capabilities if manifest.sandbox else None
    if permissions.network is False and (
        category == "network"
        or ability == "web"
        or hints.get("openWorldHint") is True
        or ability == "shell"
        and can
        and can.network
        and can.network.mode != "deny"
    ):
        yield "network is false", tool.name
    files, writes = permissions.filesystem, hints.get("readOnlyHint") is not True
    touches = category == "filesystem" or ability == "shell"
    mode, mounts, _ = sandboxes.files_of(can and can.filesystem)
    beyond = mode == FULL or any(writable and path != "/workspace" for path, writable in mounts)
    if touches and (
        files == "none"
        or files == "read-only"
        and writes
        or files == "write-workspace"
        and writes
        and beyond
    ):
        yield f"filesystem is {enquote(files)}", tool.name


def warn(manifest, work) -> list:
    """Return a warning for each skill that no model can begin, and for each tool of one that
    policy always denies.
    """

    rules, entries = work.rules, work.entries

    def is_denied(entry) -> bool:
        return entry is None or isinstance(entry, int) and rules[entry].rule.action == "deny"

    denied = [tool.name for tool, entry in zip(manifest.tools, entries) if is_denied(entry)]
    found = []
    for skill, entry in zip(manifest.skills, entries[len(manifest.tools) :]):
        if manifest.policies and is_denied(entry):
            found.append(
                (
                    skill.where(),
                    f"policy lets no model begin the skill {skill.name}: a person can, with "
                    f"/{skill.name} (a rule of scope skill or all allows it)",
                )
            )
        for number, reference in enumerate(skill.spec.tools_required):
            for tool in manifest.resolve_all("Tool", reference):
                if manifest.policies and tool.name in denied:
                    found.append(
                        (
                            skill.where("tools_required", number),
                            f"the skill {skill.name} needs {tool.name}, which policy always denies",
                        )
                    )
    return found


FEATURE = Feature("Skill", SkillSpec, check=check, compile=compile_sections, warn=warn)

"""How a skill is offered as a tool, and what both are called."""

import dataclasses

from clawlite.core.image.image import COMPOSITE, SKILL
from clawlite.core.image.skill import PREFIX
from clawlite.host.tools.model import ToolSpec

_ANY_INPUT = {
    "type": "object",
    "properties": {"input": {"type": "string", "description": "What it is about, in words"}},
}


def as_tools(manifest) -> list:
    """Return the skills of *manifest* as Tool specs, each under its own name: what policy and
    providers see of them.
    """
    hints = {"readOnlyHint": True, "idempotentHint": True}
    return [
        dataclasses.replace(
            skill,
            spec=ToolSpec(
                description=skill.spec.description,
                input_schema=input_schema_of(skill),
                annotations=hints,
            ),
        )
        for skill in manifest.skills
    ]


def input_schema_of(skill) -> dict:
    return _ANY_INPUT if skill.spec.input_schema is None else skill.spec.input_schema


def name_of_call(tool) -> str:
    """Return the name by which *tool*, or a skill, is called."""
    return PREFIX + tool.name if tool.kind == "Skill" else tool.name


def alias(name: str) -> str:
    """Return the name of a tool in the form that providers' APIs accept: they refuse dots."""
    return name.replace(".", "__", 1)


def handler(manifest, tool) -> list | None:
    """Return the handler of a skill or a composite tool, as its record has it; None for other
    tools.
    """
    if tool.kind == "Skill":
        return [SKILL, tool.name]
    return (
        [COMPOSITE, manifest.resolve("Skill", tool.spec.skill_ref).name]
        if tool.spec.composite
        else None
    )


def asks(manifest, tool) -> bool:
    """Return whether the skill behind *tool* asks a person before it begins."""
    found = handler(manifest, tool)
    permissions = manifest.resolve("Skill", found[1]).spec.permissions if found else None
    return permissions is not None and permissions.approval_required is True

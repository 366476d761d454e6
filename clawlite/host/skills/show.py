"""What ``clawlite inspect`` shows of an image's skills."""

from clawlite.core.base.errors import ImageError
from clawlite.core.image import header
from clawlite.core.image import image as layout
from clawlite.core.image.skill import PREFIX, SHAPE, Skill
from clawlite.core.image.skill import skills as core_skills


def show(image) -> tuple:
    """Return ([{"name", and what ``skills`` has of it}], lines of them)."""
    found = [{"name": name, **skill} for name, skill in skills(image).items()]
    return found, [f"{one['name']:20} {describe(one)}" for one in found]


def describe(skill: dict) -> str:
    """Return "uses TOOLS", and its declared estimates: "; about 100 tokens, 2 tool calls"."""
    numbers = [
        f"{number} {name.replace('_', ' ')}"
        for name, number in skill["estimates"].items()
        if number is not None
    ]
    return f"uses {', '.join(skill['uses'])}" + "; about " * bool(numbers) + ", ".join(numbers)


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

"""Skills and composite tools, as the compiler sees them."""

from clawlite.core.image.image import SKILLS
from clawlite.host.models.feature import Feature
from clawlite.host.skills import skills


def check(manifest, at_use: bool) -> None:
    skills.check(manifest)


def compile_sections(manifest, work) -> dict:
    work.texts.append(skills.system)
    work.hide(_find_internal(manifest))
    return {
        SKILLS: skills.section(
            manifest, lambda *what: work.compile_schema(manifest, *what), work.prose
        )
    }


def _find_internal(manifest) -> set:
    """Return the names of internal tools that no skill needs: no model is shown them."""
    needed = {one.name for skill in manifest.skills for one in skills.find_tools(manifest, skill)}
    return {tool.name for tool in manifest.tools if tool.is_internal} - needed


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


FEATURE = Feature("skill", check=check, compile=compile_sections, warn=warn)

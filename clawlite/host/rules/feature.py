"""Readings and rules that begin by themselves, what is taught, and what must follow a call, as the
compiler sees them.
"""

from clawlite.core.rules import table
from clawlite.core.teach.draft import TEACH
from clawlite.host.base.problems import enquote
from clawlite.host.models.feature import Feature, Requirement
from clawlite.host.rules import confirms, rules, samples


def compile_sections(manifest, work) -> dict:
    tools = list(zip(work.names, work.tools))
    triggers = rules.section(manifest, tools)
    readings = triggers[table.READINGS] if triggers else []
    return {
        table.SECTION: triggers,
        TEACH: rules.teach_section(manifest, tools),
        table.CONFIRMS: confirms.section(manifest, tools, readings, work.timeouts),
    }


def find_needs(manifest) -> list[Requirement]:
    if not rules.is_declared(manifest):
        return []
    return [Requirement(rules.ABILITY, manifest.settings.place, ("reflex",))]


def fit(manifest, board, other, problems) -> None:
    if board.runtime != "micropython":
        return
    # while a function runs in one piece, a board reads nothing
    for path, tool in confirms.find_one_piece(manifest):
        problems.add(
            manifest.settings.place,
            path,
            f"{tool.name} runs in one piece, and {board.name} reads nothing meanwhile",
            hint=f"let {tool.name} in tools.py yield while its effect lasts",
            key=True,
        )
    # a board lists and keeps its Channels of type cron as rules, so each has a name of its own
    names = rules.names(manifest)
    for channel in manifest.channels:
        if channel.spec.type == "cron" and channel.name in names:
            problems.add(
                channel.place,
                ("name",),
                f"a rule is called {enquote(channel.name)}, too, and {board.name} lists and keeps "
                "both alike",
                hint="rename one",
            )


def find_notes(manifest, board, free_bytes) -> list:
    if board.runtime != "micropython" or free_bytes is None:
        return []
    return samples.notes(manifest, board, free_bytes)


FEATURE = Feature("rule", compile=compile_sections, needs=find_needs, fit=fit, note=find_notes)

"""Tools, as the compiler sees them: built-in ones, and those of tools.py."""

from clawlite.host.documents import registry
from clawlite.host.firmware import firmware
from clawlite.host.models.feature import Feature, Requirement
from clawlite.host.sandbox import sandboxes
from clawlite.host.tools import handlers, imports, tool_providers, tool_records
from clawlite.host.tools.model import ToolSpec
from clawlite.protocols.mcp.tool_provider import is_provided
from clawlite.protocols.sandbox.profile import NONE

_MENDS = (
    "use a sandbox of level process, let it yield between its steps (yield MILLISECONDS), or "
    "remove this"
)


def check(manifest, at_use: bool) -> None:
    for tool in manifest.tools:
        _check_time(manifest, tool)
        if tool.origin == "registry" and not at_use:
            _check_builtin(manifest, tool)
    _check_pins(manifest)
    tool_providers.refuse(manifest)
    handlers.missing(manifest.tools, manifest.functions, manifest.problems)


def _check_time(manifest, tool) -> None:
    """Add a problem for each time that *tool* could not be held to: what runs in one piece in the
    agent's own process cannot be ended.
    """
    if not tool.function or tool.function.is_generator or sandboxes.level(manifest) != NONE:
        return
    message = (
        f"{tool.function.name} in tools.py runs in one piece, so nothing could stop it in time"
    )
    if tool.spec.timeout_ms:
        manifest.problem(tool, ("timeout_ms",), message, hint=_MENDS, key=True)
    if manifest.settings.budget.timeout_per_tool_ms:
        path = ("budget", "timeout_per_tool_ms")
        manifest.problems.add(manifest.settings.place, path, message, hint=_MENDS, key=True)


def _check_builtin(manifest, tool) -> None:
    """A built-in tool that would refuse every call: -32010 at use."""
    if tool.name == "web-search" and manifest.settings.search is None:
        manifest.problem(
            tool,
            (),
            "nothing says where web-search searches",
            hint="add [search] with endpoint to clawlite.toml",
        )
    if registry.ability(tool.name) == "shell" and sandboxes.level(manifest) == NONE:
        manifest.problem(
            tool,
            (),
            f"{tool.name} needs a sandbox of level process: at level none "
            f"nothing would contain what it runs",
            hint="declare a Sandbox of level process with capabilities.shell",
        )


def _check_pins(manifest) -> None:
    """Refuse functions that take ``board`` where they run in another process than the agent."""
    tools = [tool for tool in manifest.tools if tool.function and tool.function.has_board]
    if not tools or sandboxes.level(manifest) == NONE:
        return
    names = [f"{tool.function.function} (tools.py:{tool.function.line})" for tool in tools[:3]]
    more = f" and {len(tools) - 3} more" if len(tools) > 3 else ""
    said = (
        f"{', '.join(names)}{more} needs board, and at level process functions of tools.py run in "
        "a process of their own, which reaches no pin"
    )
    manifest.problem(
        manifest.sandbox or tools[0],
        ("level",) if manifest.sandbox else (),
        said,
        hint="use level: none for the Sandbox, or built-in tools for the pins",
    )


def find_needs(manifest) -> list[Requirement]:
    found = [
        Requirement(registry.ability(tool.name), tool.report_place)
        for tool in manifest.tools
        if not (tool.function or tool.spec.composite or tool.served or tool.service)
    ]
    found += [Requirement("tools", tool.report_place) for tool in manifest.tools[:1]]
    functions = [tool for tool in manifest.tools if tool.function]
    found += [Requirement("tools.py", tool.report_place) for tool in functions[:1]]
    instead = "write them as plain functions of tools.py"
    provided = [tool for tool in functions if is_provided(tool.function.function)]
    return found + [Requirement("tool-providers", one.place, (), instead) for one in provided[:1]]


def fit(manifest, board, other, problems) -> None:
    if manifest.imports:
        sources = dict(manifest.sources)
        imports.add_board_problems(manifest.imports, sources, board, firmware.sources(), problems)


def find_notes(manifest, board, free_bytes) -> list:
    if board.runtime == "cpython" and not board.pins.simulated and manifest.imports:
        return imports.kernel_notes(manifest.imports, board)
    return []


FEATURE = Feature(
    "Tool",
    ToolSpec,
    check=check,
    compile=tool_records.compile_sections,
    needs=find_needs,
    fit=fit,
    note=find_notes,
)

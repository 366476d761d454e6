"""Tools and skills to the records of an image, one for each, which core/image/image.py decodes when
that tool is called.
"""

import inspect

from clawlite.core.image import image as layout
from clawlite.core.turns.builtin import HANDLERS
from clawlite.host.documents import registry
from clawlite.host.image.image_file import encode
from clawlite.host.policy import folding
from clawlite.host.providers.remotes import BACKOFF, MAX_ATTEMPTS
from clawlite.host.tools import skill_tools
from clawlite.protocols.mcp.tool_definitions import HINTS
from clawlite.protocols.services.service_call import MAX_RESULT, TIMEOUT_MS

MAX_OUTPUT = 65536  # bytes of a tool's result (clawft: results are truncated to 64 KB)


def compile_sections(manifest, work) -> dict:
    work.timeouts = {
        skill_tools.name_of_call(tool): timeout_ms(manifest, tool) for tool in work.tools
    }
    records, index = b"", []
    for name, tool, decided in zip(work.names, work.tools, work.decided):
        record = _compile_one(manifest, tool, decided, work)
        index.append([name, len(records), len(record), decided[0]])
        records += record
    return {layout.TOOLS: index, layout.RECORDS: records}


def _compile_one(manifest, tool, decided, work) -> bytes:
    spec = tool.spec
    schema = spec.input_schema or {"type": "object"}
    program = work.compile_schema(manifest, tool, "input_schema", schema)
    output = (
        work.compile_schema(manifest, tool, "output_schema", spec.output_schema)
        if spec.output_schema
        else None
    )
    _, alone, bound = decided
    limits = manifest.sandbox.spec.resource_limits if manifest.sandbox else None
    budget = manifest.settings.budget
    handler = skill_tools.handler(manifest, tool)
    is_mediated = tool.service or tool.served and tool.served.server.is_mediated
    record = [
        skill_tools.name_of_call(tool),
        _flags(tool, handler)
        | (
            layout.ASKS
            if skill_tools.asks(manifest, tool) or tool.service and tool.service.confirms
            else 0
        ),
        (tool.labels or {}).get("category"),
        program,
        output,
        work.timeouts[skill_tools.name_of_call(tool)],
        min(
            limits and limits.max_output_bytes or MAX_OUTPUT,
            budget.max_tool_result_bytes or (MAX_RESULT if is_mediated else MAX_OUTPUT),
            MAX_OUTPUT,
        ),
        handler or _handler(tool),
        folding.path_arguments(schema),
        alone,
        bound,
        work.prose.add(spec.description or ""),
        _retry(manifest, tool),
    ]
    return encode(record)


def timeout_ms(manifest, tool) -> int:
    """Return when *tool* is ended: as it says, and not later than the budget; 0 for never."""
    most = manifest.settings.budget.timeout_per_tool_ms
    if tool.service:
        return most or TIMEOUT_MS
    own = tool.spec.timeout_ms or 0
    is_ended = tool.function or tool.served or tool.spec.composite
    if most and (is_ended or registry.ability(tool.name) != "pins"):
        return min(own or most, most)
    return own


def _retry(manifest, tool) -> list | None:
    """Return [attempts, backoff] (core/turns/retry.py), None for one attempt.  Only what may run
    twice is run again (5.4).
    """
    retry, hints = tool.spec.retry, tool.spec.annotations or {}
    if retry is None:
        return None
    if hints.get("readOnlyHint") is not True and hints.get("idempotentHint") is not True:
        manifest.note(
            tool,
            ("retry",),
            f"{tool.name} is never tried again: it does not say that it may run twice "
            "(annotations: { idempotentHint: true } does)",
        )
        return None
    attempts = MAX_ATTEMPTS if retry.max_attempts is None else retry.max_attempts
    return [attempts, BACKOFF[retry.backoff or "exponential"]] if attempts > 1 else None


def _flags(tool, handler) -> int:
    hints = tool.spec.annotations or {}
    read_only = hints.get("readOnlyHint") is True
    # no annotation means side effects (MCP's default)
    flags = 0 if read_only else layout.HAS_SIDE_EFFECTS
    for name, flag in HINTS.items():
        flags |= flag if hints.get(name) is True else 0
    if tool.served is not None:
        # a stranger's hint may make it stricter, never looser
        theirs = tool.served.definition.get("annotations")
        if isinstance(theirs, dict) and theirs.get("destructiveHint") is True and not read_only:
            flags |= layout.DESTRUCTIVE
        return flags
    if handler is not None or tool.service is not None:
        return flags
    if tool.function is None:
        stepped = inspect.isgeneratorfunction(HANDLERS.get(tool.name)) or registry.ability(
            tool.name
        ) in ("buses", "delegate")
        return (
            flags
            | (layout.HAS_BOARD if registry.ability(tool.name) in ("pins", "buses") else 0)
            | (layout.GENERATOR if stepped else 0)
        )
    return (
        flags
        | (layout.GENERATOR if tool.function.is_generator else 0)
        | (layout.HAS_BOARD if tool.function.has_board else 0)
    )


def _handler(tool) -> list:
    if tool.served is not None:
        server = tool.served.server
        if server.is_mediated:
            return [layout.SERVICE, f"{server.name}.{tool.served.tool}"]
        return [layout.SERVED, f"{server.name}/{tool.served.tool}"]
    if tool.service is not None:
        return [layout.SERVICE, tool.name]
    return (
        [layout.BUILTIN, tool.name]
        if tool.function is None
        else [layout.MAKER, tool.function.function]
    )

"""What a handler's outcome becomes: the ``effect.Result`` of a tool call, checked against the
output schema of the tool, scanned for secrets and cut to ``max_output``.

1. A handler that fails gives a result with ``is_error``.
2. A timeout, a provider's error, and what a sandbox or a later check refuses are raised as errors:
   the call is refused.
3. Text that is not Unicode is mended, and the log event says so.
"""

from clawlite.core.base.effect import Result
from clawlite.core.base.errors import (
    InvalidParams,
    InvalidRequest,
    ProviderError,
    SandboxDenied,
    ToolTimeout,
)
from clawlite.core.formats.schema import check

# bytes behind the cut that are scanned too: a secret may lie across it
_BEYOND = 16384


def result_of(tool, outcome, setup, event) -> Result:
    """Return the ``Result`` of a handler's *outcome*.  Raises ``ToolTimeout``, ``ProviderError``,
    ``SandboxDenied``, ``InvalidParams`` or ``InvalidRequest``.
    """
    done, value = outcome
    if not done:
        return _of_failure(setup, tool, value, event)
    try:
        return _of_value(tool, value, setup, event)
    except UnicodeError:  # a file name that is no UTF-8, for one
        return _of_value(tool, _mend(value, event), setup, event)


def _of_value(tool, value, setup, event) -> Result:
    if type(value) is str:
        value.encode()
    if tool.output is not None:
        wrong = check(tool.output, value, setup.image.automaton, "result")
        if wrong:
            return _report_wrong(tool, value, wrong, setup, event)
    text, failed, part_of = value, False, 0
    if type(value) is not str:
        # a handler may say that it failed, and how long the full text was when it returns a part
        failed = getattr(value, "is_error", False)
        part_of = getattr(value, "original_bytes", 0)
        if not isinstance(value, str):
            from clawlite.core.base.render import canonical

            text = canonical(value)
    data = text.encode()
    size = len(data)
    if setup.guard is not None:
        text, value = setup.guard.result(
            tool.name,
            _cut(data, tool.max_output + _BEYOND) if size > tool.max_output + _BEYOND else text,
            value,
            event,
        )
        data = text.encode()
    if not part_of and size <= tool.max_output and len(data) <= tool.max_output:
        return Result(text, failed, value, 0, len(data))
    return Result(_cut(data, tool.max_output), failed, value, part_of or size)


def _report_wrong(tool, value, wrong: str, setup, event: dict) -> Result:
    """Return the result of a tool that returned *value*, which its schema refuses: *wrong*."""
    from clawlite.core.base.render import canonical

    canonical(value)  # raises for half of a character, which is mended before it is judged
    said = "%s returned what its output_schema does not allow: %s" % (tool.name, wrong)
    return _fail(setup, tool, said, event)


def _mend(value, event: dict):
    """Return *value*, a result or a text in it, with U+FFFD for what is no Unicode."""
    from clawlite.core.base.text_repair import mend_value

    event["is_mended"] = True
    return mend_value(value)


def _of_failure(setup, tool, e, event: dict):
    if isinstance(e, (ToolTimeout, ProviderError, SandboxDenied, InvalidParams, InvalidRequest)):
        if isinstance(e, ToolTimeout) and (not e.data or "tool" not in e.data):
            e.data = {"tool": tool.name}
            e.message = tool.name + ": " + e.message
        if isinstance(e, ToolTimeout) and tool.timeout_ms:
            e.data["timeout_ms"] = tool.timeout_ms
        raise e
    return _fail(setup, tool, "%s failed: %s" % (tool.name, e), event)


def _fail(setup, tool, text: str, event: dict):
    """Return the result of a tool that failed.  Its text may be untrusted, so it is scanned."""
    try:
        text.encode()
    except UnicodeError:
        text = _mend(text, event)
    return Result(
        setup.guard.result(tool.name, text, None, event)[0] if setup.guard is not None else text,
        True,
    )


def _cut(data: bytes, end: int) -> str:
    """Return the first *end* bytes of the text *data*, never cut inside a character."""
    while 0 < end < len(data) and data[end] & 0xC0 == 0x80:
        end -= 1
    return str(data[:end], "utf-8")

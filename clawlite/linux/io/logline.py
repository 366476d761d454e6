"""One event of the log as a line of JSON: the text that ``jsontext.dumps`` gives, but made faster
for tool calls, which are most events.

The text that all plain calls of one tool have in common is kept, so only arguments are encoded."""

from clawlite.linux.io.jsontext import dumps

_PLAIN = (
    "event",
    "tool",
    "caller",
    "arguments",
    "image",
    "request_id",
    "action",
    "rule_id",
    "trace",
    "status",
    "duration_ms",
    "timestamp",
)
_MOST = 256  # how many such texts are kept
_known = {}


def line(event: dict) -> str:
    """Return *event*, a dict that ``dumps`` takes, as JSON.  Raises what ``dumps`` raises."""
    if tuple(event) == _PLAIN:
        (
            _,
            tool,
            caller,
            arguments,
            image,
            request_id,
            action,
            rule_id,
            trace,
            status,
            duration_ms,
            stamp,
        ) = event.values()
        if len(trace) == 1:
            key = (tool, caller, image, action, rule_id, trace[0][0], trace[0][1], status)
            known = _known.get(key)
            if known is None:
                known = _parts(key, event)
            head, before_id, before_ms = known
            return "".join(
                (
                    head,
                    dumps(arguments),
                    before_id,
                    request_id,
                    before_ms,
                    str(duration_ms),
                    ',"timestamp":"',
                    stamp,
                    '"}',
                )
            )
    return dumps(event)


def _parts(key: tuple, event: dict) -> tuple:
    """Return, and keep, the texts before the arguments, the request_id (a UUID) and the
    duration.
    """
    if len(_known) >= _MOST:
        _known.clear()
    before = dumps({name: event[name] for name in _PLAIN[:3]})[:-1] + ',"arguments":'
    between = ',"image":%s,"request_id":"' % dumps(event["image"])
    after = '",' + dumps({name: event[name] for name in _PLAIN[6:10]})[1:-1] + ',"duration_ms":'
    _known[key] = before, between, after
    return _known[key]

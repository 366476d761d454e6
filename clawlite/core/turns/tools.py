"""The one pipeline: the only way to run a tool.

    known? -> allowed in the skill that is active? -> the gates of the tool (gates.py) -> log

1. ``call`` is a generator of effects; the code that drives it performs them.
2. A handler that fails gives a result with ``is_error``; a gate that refuses raises.
3. Every call is logged, however it ends.
"""

from clawlite.core.base.effect import LOG, Result
from clawlite.core.base.errors import ClawError, InvalidParams, PolicyDenied, ToolTimeout
from clawlite.core.turns.gates import ToolCall, find_way


def call(setup, name: str, arguments, caller: str, override=None, once=None, within=None):
    """Run one tool call; a generator of effects that returns a ``Result``.

    setup      ``agent_setup.Setup``: the image, and what this process adds to it
    name       str, as the caller wrote it
    arguments  as the caller sent them, of any type
    caller     "operator", "provider", or a channel and who writes there.  For a skill that a person
               begins: PERSON, perhaps with a name; the person's own wish is not judged by policy
    override   name of a policy that may tighten, or None
    once       ``IdempotentRequest`` of a request with an id, or None
    within     ``skill.Skill`` that is active: only the tools that it names may be called; or None
    Raises ``InvalidParams``, ``PolicyDenied``, ``SandboxDenied``, ``ApprovalTimeout``,
    ``ApprovalDenied``,
    ``ToolTimeout``.  Source  CKP 0.2.0, 5.1, 5.4, 5.8, 9.3.2.
    """
    event = {
        "event": "tool.call",
        "tool": name,
        "caller": caller,
        "arguments": arguments,
        "image": setup.image.id,
    }
    if once is not None:
        event["request_id"] = once.id
    try:
        tool = find(setup, name)
        event["tool"] = name = tool.name
        if within is not None and name not in within.names:
            raise _refuse_outside(name, within)
        if not isinstance(arguments, dict):
            raise _refuse_arguments(name, arguments)
        way = setup.ways and setup.ways.get(name) or find_way(setup, tool)
        asked = ToolCall(setup, tool, arguments, override, once, within, event)
        at, step = 0, None
        while type(step) is not Result:
            if step is None:
                gate = way[at]
                at += 1
                step = gate(asked, None)
            elif type(step) is tuple:
                step = gate(asked, (yield step))
            else:
                step = yield from step
    except ClawError as e:
        fail(event, e)
        yield (LOG, event)
        raise
    event["status"] = "error" if step.is_error else "ok"
    yield (LOG, event)
    return step


def _refuse_outside(name: str, skill):
    return PolicyDenied(
        "%s: the skill %s is under way, which uses only: %s"
        % (name, skill.name, ", ".join(skill.names)),
        "",
        {"tool": name, "action": "deny", "skill": skill.name},
    )


def _refuse_arguments(name: str, arguments):
    from clawlite.core.base.render import canonical

    return InvalidParams(
        "%s: expected arguments as an object, got %s" % (name, canonical(arguments, 40))
    )


def _refuse_name(setup, name):
    from clawlite.core.base.render import canonical

    # the name is untrusted text, perhaps a secret that a model was talked into; it is scanned
    # before canonical doubles a backslash
    if setup.guard is not None and isinstance(name, str):
        name = setup.guard.text(name)
    quoted = canonical(name)
    return InvalidParams(
        "unknown tool %s" % (quoted[:40] + "..." if len(quoted) > 40 else quoted),
        "this agent has: %s" % (", ".join(setup.image.names) or "none"),
    )


def fail(event: dict, e):
    """Record in *event* that the call ended with the ``ClawError`` *e*."""
    event["status"] = "refused" if not isinstance(e, ToolTimeout) else "timeout"
    event["code"] = e.code


def find(setup, name):
    """Return the tool *name*; raises ``InvalidParams`` (-32602) for one that the image does not
    have.
    """
    tool = setup.image.tool(name) if isinstance(name, str) else None
    if tool is None:
        raise _refuse_name(setup, name)
    return tool

"""The one pipeline: the only way to run a tool.

    known? -> arguments fit? -> again? -> autonomy -> policy -> links resolved? -> approval? ->
    stopped? -> handler -> output bound -> log

1. ``call`` is a generator of effects; the code that drives it performs them.
2. A gate that cannot decide denies.
3. A handler that fails gives a result with ``is_error``; a gate that refuses raises.
4. Every call is logged, however it ends.
5. Each gate has its name in ``_gated`` and its entry in gates.py.  A shell may take a shorter path
   when it is known that every gate will pass the call.
"""

from clawlite.core.policy import policy
from clawlite.core.base.effect import (
    APPROVE,
    ASK,
    ASKS_PROVIDER,
    IS_OK,
    LOG,
    RESOLVE,
    RESUME,
    RUN,
    RUN_SKILL,
    STORE,
    VALUE,
    Result,
)
from clawlite.core.base.errors import (
    ClawError,
    InvalidParams,
    InvalidRequest,
    PolicyDenied,
    ProviderError,
    SandboxDenied,
    ToolTimeout,
)
from clawlite.core.image.image import (
    ASKS,
    COMPOSITE,
    HANDLER_KIND,
    HANDLER_NAME,
    HAS_SIDE_EFFECTS,
    OBSERVER,
    RULE_ID,
    RULE_REASON,
    SKILL,
    SUPERVISED,
)
from clawlite.core.formats.schema import check

PERSON = "a person"  # no channel has a name that begins like this
# bytes behind the cut that are scanned too: a secret may lie across it
_BEYOND = 16384


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
        tool = known(setup, name)
        event["tool"] = name = tool.name
        if within is not None and name not in within.names:
            raise PolicyDenied(
                "%s: the skill %s is under way, which uses only: %s"
                % (name, within.name, ", ".join(within.names)),
                "",
                {"tool": name, "action": "deny", "skill": within.name},
            )
        result = yield from _gated(setup, tool, arguments, override, event, once, within)
    except ClawError as e:
        refused(event, e)
        yield (LOG, event)
        raise
    event["status"] = "error" if result.is_error else "ok"
    yield (LOG, event)
    return result


def refused(event: dict, e):
    """Record in *event* that the call ended with the ``ClawError`` *e*."""
    event["status"] = "refused" if not isinstance(e, ToolTimeout) else "timeout"
    event["code"] = e.code


def known(setup, name):
    """Return the tool *name*; raises ``InvalidParams`` (-32602) for one that the image does not
    have.
    """
    tool = setup.image.tool(name) if isinstance(name, str) else None
    if tool is None:
        from clawlite.core.base.render import canonical

        # the name is untrusted text, perhaps a secret that a model was talked into; it is scanned
        # before canonical doubles a backslash
        if setup.guard is not None and isinstance(name, str):
            name = setup.guard.text(name)
        said = canonical(name)
        raise InvalidParams(
            "unknown tool %s" % (said[:40] + "..." if len(said) > 40 else said),
            "this agent has: %s" % (", ".join(setup.image.names) or "none"),
        )
    return tool


def _gated(setup, tool, arguments, override, event, once, within):
    image, guard = setup.image, setup.guard
    # gate arguments
    if not isinstance(arguments, dict):
        from clawlite.core.base.render import canonical

        raise InvalidParams(
            "%s: expected arguments as an object, got %s" % (tool.name, canonical(arguments, 40))
        )
    # gate guard
    if guard is not None:
        arguments = event["arguments"] = guard.arguments(tool.name, arguments, event)
    wrong = (
        None
        if tool.fits and tool.fits(arguments)
        else check(tool.schema, arguments, image.automaton)
    )
    # gate arguments
    if wrong:
        raise InvalidParams("%s: %s" % (tool.name, wrong), "", {"tool": tool.name})
    # gate request
    if once is not None:
        first = once.admit(tool)
        if first is not None:
            event["again"] = True
            return (yield from first.again())
    autonomy = image.agent.autonomy
    # gate autonomy
    if autonomy == OBSERVER:
        raise PolicyDenied(
            "%s: this agent only observes; it runs no tools" % tool.name,
            "",
            {"tool": tool.name, "action": "deny", "autonomy": "observer"},
        )
    # gate policy
    if event["caller"].startswith(PERSON) and tool.handler[HANDLER_KIND] == SKILL:
        decision = policy.ALLOW, None, [], False
    elif tool.constant and override is None:
        decision = tool.decision or policy.decide(image, tool.entry, [])
    else:
        decision = yield from _decide(setup, tool, arguments, override)
    action, rule = decision[policy.DECISION_ACTION], decision[policy.DECISION_RULE]
    event["action"] = policy.ACTIONS[action]
    event["rule_id"] = rule[RULE_ID] if rule else None
    event["trace"] = decision[policy.DECISION_TRACE]
    decision = None  # frees memory: many calls may wait for a person
    # gate policy
    if action == policy.DENY:
        raise _denied(tool, rule)
    # gate limit
    if image.agent.calls_per_minute is not None:
        from clawlite.core.policy.ledger import admit

        yield from admit(image.agent.calls_per_minute, tool, event)
    # (whether a world model wants a person to look, what it foresees)
    seen = None
    # gate world
    if within is not None and setup.worlds is not None:
        seen = yield from setup.worlds.look(setup, within, tool, arguments)
    # gate approval
    if (
        action == policy.APPROVE
        or autonomy == SUPERVISED
        and tool.flags & HAS_SIDE_EFFECTS
        or tool.flags & ASKS
        or seen
        and seen[0]
    ):
        from clawlite.core.policy.approval import Approval

        event["approval"] = yield (
            APPROVE,
            Approval(tool, arguments, rule if action == policy.APPROVE else None, seen),
        )
    # gate stop
    if setup.stop is not None and tool.flags & HAS_SIDE_EFFECTS:
        yield from setup.stop(tool)  # after the approval: a person may take long to give it
    # gate record
    if once is not None and once.is_kept(tool):
        first = yield from once.begin()
        if first is not None:
            return first.outcome()
    # gate handler
    if tool.handler[HANDLER_KIND] == SKILL:
        from clawlite.core.image.skill import begun

        return begun(image, tool.handler[HANDLER_NAME], arguments, Result)
    # gate handler
    if tool.handler[HANDLER_KIND] == COMPOSITE:
        outcome = yield (RUN_SKILL, tool, arguments)
    elif tool.retry is None:
        outcome = yield (RUN, tool, arguments)
        if outcome[IS_OK] >= ASKS_PROVIDER:
            outcome = yield from _asked(tool, arguments, outcome)
    else:
        from clawlite.core.turns.retry import attempts

        outcome = yield from attempts(_run, setup, tool, arguments, event)
    result = result_of(tool, outcome, setup, event)
    # gate guard
    if guard is not None and guard.asks:
        yield from guard.asked(tool.name, result, event)
    return result


def _run(setup, tool, arguments):
    if setup.stop is not None and tool.flags & HAS_SIDE_EFFECTS:
        yield from setup.stop(tool)  # it may have come between two attempts
    return (yield from _asked(tool, arguments, (yield (RUN, tool, arguments))))


def _asked(tool, arguments, outcome):
    """Return the outcome of a handler that asks the agent's provider, or a person, before it
    continues.
    """
    while outcome[IS_OK] >= ASKS_PROVIDER:
        if outcome[IS_OK] == ASKS_PROVIDER:
            said = yield (ASK,) + outcome[VALUE] + (None,)
        else:
            said = yield from outcome[VALUE].put(tool, arguments)
        if len(said) > 2:  # the handler is gone: its time was over before the answer came
            return said[:2]
        outcome = yield (RESUME, said)
    return outcome


def _decide(setup, tool, arguments, override):
    image = setup.image
    entries = [tool.entry]
    if tool.bound is not None:
        entries.append(tool.bound[0])
    if override is not None:
        entries.append(policy.entry_of(tool, override))
    paths = policy.paths_of(tool.paths, arguments, setup.workspace)
    used = None
    if image.agent.rates:  # some rule asks how much of the day is spent; None denies
        done, used = yield (STORE, [])
        used = used if done else None
    decision = policy.decide_all(image, entries, paths, used)
    if decision[policy.DECISION_RESTS] and decision[policy.DECISION_ACTION] != policy.DENY:
        # The text of the path allows it, but the place where its links lead decides (a link out of
        # the root is the oldest trick).  A root may be a link too: a rule about /var/run also means
        # /run.  This can only tighten: it never allows more than the text of a root does.
        resolved = yield from _real(tool, paths, True)
        named = policy.roots_of(image, entries)
        roots = dict(zip(named, (yield from _real(tool, named, False))))
        decision = policy.strictest(
            [
                decision,
                policy.decide_all(image, entries, resolved, used),
                policy.decide_all(image, entries, resolved, used, roots),
            ]
        )
    return decision


def _real(tool, paths: list, opens: bool):
    """Return where the links of *paths* lead; a generator of effects.  *opens*: the paths are
    arguments of the call.
    """
    found = []
    for path in paths:
        done, real = (True, None) if path is None else (yield (RESOLVE, path, opens))
        if not done:
            raise SandboxDenied(
                "%s: the path %s cannot be resolved" % (tool.name, path), "", {"tool": tool.name}
            )
        found.append(real)
    return found


def _denied(tool, rule):
    data = {"tool": tool.name, "action": "deny", "rule_id": rule[RULE_ID] if rule else None}
    if rule is None:
        return PolicyDenied(
            "Policy denied: no rule allows %s" % tool.name, "add a rule that matches it", data
        )
    return PolicyDenied(
        "Policy denied: rule %s blocks %s%s"
        % (rule[RULE_ID], tool.name, ": " + rule[RULE_REASON] if rule[RULE_REASON] else ""),
        "",
        data,
    )


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
    return _told(setup, tool, said, event)


def _mend(value, event: dict):
    """Return *value*, a result or a text in it, with U+FFFD for what is no Unicode."""
    from clawlite.core.base.mended import mended_value

    event["is_mended"] = True
    return mended_value(value)


def _of_failure(setup, tool, e, event: dict):
    if isinstance(e, (ToolTimeout, ProviderError, SandboxDenied, InvalidParams, InvalidRequest)):
        if isinstance(e, ToolTimeout) and (not e.data or "tool" not in e.data):
            e.data = {"tool": tool.name}
            e.message = tool.name + ": " + e.message
        if isinstance(e, ToolTimeout) and tool.timeout_ms:
            e.data["timeout_ms"] = tool.timeout_ms
        raise e
    return _told(setup, tool, "%s failed: %s" % (tool.name, e), event)


def _told(setup, tool, text: str, event: dict):
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

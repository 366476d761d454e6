"""The gates of the pipeline (tools.py), in their order, and which of them a tool's calls pass.

    arguments fit? -> again? -> autonomy -> policy -> limit -> world model -> approval -> stopped?
    -> on record (request, audit) -> what must follow -> handler

1. A gate is a function of a ``ToolCall`` and of an answer, and one row in ``find_way``, which says
   for which tools it stands in the way.
2. It returns None: the call goes on to the next gate; an effect (core/base/effect.py): it is called
   again, with what came of the effect as the answer, which is None at first; a generator of
   effects, whose value is what the gate returns; or an ``effect.Result``, which ends the call.
3. It raises a ``ClawError`` when it refuses the call.  A gate that cannot decide refuses.
4. The last gate of each way runs the handler, and ends with a result.
"""

from clawlite.core.base.effect import (
    APPROVE,
    ASK,
    ASKS_PROVIDER,
    ENDED,
    IS_OK,
    RECORD,
    RESOLVE,
    RESUME,
    RUN,
    RUN_SKILL,
    STORE,
    VALUE,
    Result,
)
from clawlite.core.base.errors import InvalidParams, PolicyDenied, SandboxDenied
from clawlite.core.formats.schema import check
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
from clawlite.core.policy import policy
from clawlite.core.turns.tool_result import result_of

PERSON = "a person"  # no channel has a name that begins like this


class ToolCall:
    """One call of a tool, on its way through the gates.

    setup      ``agent_setup.Setup``
    tool       ``image.Tool``
    arguments  dict, as the caller sent them
    override   name of a policy that may tighten, or None
    once       ``IdempotentRequest`` of a request with an id, or None
    within     ``skill.Skill`` that is active, or None
    event      the log event of the call, which gates add to
    rule       the rule that asks for a person, or None
    seen       (whether a world model asks for a person, what it foresees), or None
    """

    rule = seen = None

    def __init__(self, setup, tool, arguments, override, once, within, event):
        self.setup = setup
        self.tool = tool
        self.arguments = arguments
        self.override = override
        self.once = once
        self.within = within
        self.event = event


def find_way(setup, tool) -> list:
    """Return the gates that each call of *tool* passes, in their order.  ``Setup.ways`` keeps them
    where there is room.
    """
    image, kind = setup.image, tool.handler[HANDLER_KIND]
    changes = tool.flags & HAS_SIDE_EFFECTS
    last = begin_skill if kind == SKILL else run_composite if kind == COMPOSITE else run_handler
    rows = (
        setup.guard is not None and scan_arguments,
        check_arguments,
        find_request,
        image.agent.autonomy == OBSERVER and refuse_observer,
        decide_skill if kind == SKILL else decide,
        image.agent.calls_per_minute is not None and count_call,
        setup.worlds is not None and foresee,
        ask_person,
        setup.stop is not None and changes and check_stop,
        record_begin,
        # A skill's tool runs no handler: each call of the skill has its own record.  So has each
        # attempt of a tool that is tried again (_run_again).
        setup.is_recorded and changes and last is run_handler and not tool.retry and record_run,
        setup.confirm is not None and setup.confirm.concerns(tool) and confirm_effect,
        last,
    )
    way = list(filter(None, rows))
    if setup.ways is not None:
        setup.ways[tool.name] = way
    return way


def scan_arguments(call, _):
    """Refuse or mask secrets and orders of strangers in the arguments."""
    call.arguments = call.event["arguments"] = call.setup.guard.arguments(
        call.tool.name, call.arguments, call.event
    )


def check_arguments(call, _):
    """Refuse arguments that the tool's schema does not allow."""
    tool = call.tool
    if not (tool.fits and tool.fits(call.arguments)):
        wrong = check(tool.schema, call.arguments, call.setup.image.automaton)
        if wrong:
            raise InvalidParams("%s: %s" % (tool.name, wrong), "", {"tool": tool.name})


def find_request(call, _):
    """Give a request that is known the result that it had, or has when the first one ends."""
    first = call.once and call.once.admit(call.tool)
    if first:
        call.event["again"] = True
        return first.again()


def refuse_observer(call, _):
    """Refuse all calls of an agent that only observes (CKP 0.2.0, 5.1)."""
    raise PolicyDenied(
        "%s: this agent only observes; it runs no tools" % call.tool.name,
        "",
        {"tool": call.tool.name, "action": "deny", "autonomy": "observer"},
    )


def decide(call, decision):
    """Obey policy (CKP 0.2.0, 5.8): its *decision*, which is asked for when it is None."""
    tool = call.tool
    if decision is None:
        if not tool.constant or call.override is not None:
            return _decide_by_paths(call)
        decision = tool.decision or policy.decide(call.setup.image, tool.entry, [])
    action, rule, trace, _ = decision
    event = call.event
    event["action"] = policy.ACTIONS[action]
    event["rule_id"] = rule[RULE_ID] if rule else None
    event["trace"] = trace
    if action == policy.DENY:
        raise _refuse(tool, rule)
    if action == policy.APPROVE:
        call.rule = rule


def decide_skill(call, _):
    """Ask policy about a skill, unless a person begins it, whose own wish is not judged."""
    begins = call.event["caller"].startswith(PERSON)
    return decide(call, (policy.ALLOW, None, [], False) if begins else None)


def _decide_by_paths(call):
    """A generator of effects: decide by all policies that have a say, and by where links lead."""
    image, tool = call.setup.image, call.tool
    entries = [tool.entry]
    if tool.bound is not None:
        entries.append(tool.bound[0])
    if call.override is not None:
        entries.append(policy.entry_of(tool, call.override))
    paths = policy.paths_of(tool.paths, call.arguments, call.setup.workspace)
    used = None
    if image.agent.rates:  # some rule asks how much of the day is spent; None denies
        done, used = yield (STORE, [])
        used = used if done else None
    decision = policy.decide_all(image, entries, paths, used)
    if decision[policy.DECISION_RESTS] and decision[policy.DECISION_ACTION] != policy.DENY:
        # The text of the path allows it, but the place where its links lead decides (a link out of
        # the root is the oldest trick).  A root may be a link too: a rule about /var/run also means
        # /run.  This can only tighten: it never allows more than the text of a root does.
        resolved = yield from _resolve(tool, paths, True)
        named = policy.roots_of(image, entries)
        roots = dict(zip(named, (yield from _resolve(tool, named, False))))
        decision = policy.strictest(
            [
                decision,
                policy.decide_all(image, entries, resolved, used),
                policy.decide_all(image, entries, resolved, used, roots),
            ]
        )
    return decide(call, decision)


def _resolve(tool, paths: list, opens: bool):
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


def _refuse(tool, rule):
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


def count_call(call, _):
    """Refuse a call beyond the calls of a minute that policy allows."""
    from clawlite.core.policy.ledger import admit

    return admit(call.setup.image.agent.calls_per_minute, call.tool, call.event)


def foresee(call, _):
    """Ask the world model of the skill that is active, if it has one."""
    if call.within is not None:
        return _foresee(call)


def _foresee(call):
    call.seen = yield from call.setup.worlds.look(
        call.setup, call.within, call.tool, call.arguments
    )


def ask_person(call, answer):
    """Wait for a person where policy, autonomy, a skill or a world model wants one to look."""
    tool = call.tool
    if answer is not None:
        call.event["approval"] = answer
    elif (
        call.rule
        or call.setup.image.agent.autonomy == SUPERVISED
        and tool.flags & HAS_SIDE_EFFECTS
        or tool.flags & ASKS
        or call.seen
        and call.seen[0]
    ):
        from clawlite.core.policy.approval import Approval

        return APPROVE, Approval(tool, call.arguments, call.rule, call.seen)


def check_stop(call, _):
    """Refuse side effects while the swarm is stopped.  It stands after the approval, because a
    person may take long to give it.
    """
    return call.setup.stop(call.tool)


def record_begin(call, _):
    """Put on record that a call begins that may not run twice."""
    if call.once is not None:
        return call.once.begin(call.tool)


def record_run(call, outcome):
    """Wait until the log and the audit are written so far, and say that this tool begins: its
    handler may never return.
    """
    return (RECORD, call.tool, call.arguments) if outcome is None else None


def confirm_effect(call, _):
    """Run the handler, and look whether what must follow does (core/rules/confirm.py)."""
    watch = call.setup.confirm.begin(call)
    if watch is not None:
        return watch.work(run_handler)


def begin_skill(call, _):
    """Return the instruction of a skill, which is its tool's result."""
    from clawlite.core.image.skill import apply

    return apply(call.setup.image, call.tool.handler[HANDLER_NAME], call.arguments, Result)


def run_composite(call, outcome):
    """Run the skill of a composite tool in a turn of its own, and return its result."""
    if outcome is None:
        return RUN_SKILL, call.tool, call.arguments
    return run_handler(call, outcome)


def run_handler(call, outcome):
    """Run the handler, and return its result."""
    tool = call.tool
    if outcome is None:
        return (RUN, tool, call.arguments) if tool.retry is None else _retry(call)
    if outcome[IS_OK] >= ASKS_PROVIDER:
        return _answer_handler(call, outcome)
    result = result_of(tool, outcome, call.setup, call.event)
    if call.setup.guard is not None and call.setup.guard.asks:
        return _judge_result(call, result)
    return result


def _retry(call):
    from clawlite.core.turns.retry import attempts

    return run_handler(call, (yield from attempts(_run_again, call)))


def _run_again(call):
    """Run one attempt of the handler; a generator of effects that returns its outcome."""
    if call.setup.stop is not None and call.tool.flags & HAS_SIDE_EFFECTS:
        yield from call.setup.stop(call.tool)  # it may have come between two attempts
    if call.setup.is_recorded and call.tool.flags & HAS_SIDE_EFFECTS:
        yield (RECORD, call.tool, call.arguments)
    outcome = yield (RUN, call.tool, call.arguments)
    return (yield from _answer(call, outcome))


def _answer_handler(call, outcome):
    return run_handler(call, (yield from _answer(call, outcome)))


def _answer(call, outcome):
    """Return the outcome of a handler that asks the agent's provider, or a person, before it
    continues.
    """
    while outcome[IS_OK] >= ASKS_PROVIDER:
        if outcome[IS_OK] == ASKS_PROVIDER:
            answer = yield (ASK,) + outcome[VALUE] + (None,)
        else:
            answer = yield from outcome[VALUE].put(call.tool, call.arguments)
        if answer[IS_OK] == ENDED:  # its time was over before the answer came
            return answer[VALUE]
        outcome = yield (RESUME, answer)
    return outcome


def _judge_result(call, result):
    """Ask a model whether *result* has orders of strangers in it."""
    yield from call.setup.guard.ask_model(call.tool.name, result, call.event)
    return result

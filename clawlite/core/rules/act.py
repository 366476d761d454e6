"""The calls of readings and rules: each goes through the one pipeline (core/turns/tools.py), with
the caller ``reading/NAME`` or ``rule/NAME``, and what the pipeline yields is looked at here.

1. A reading asks nobody.  Its calls are logged when its state changes, when they fail or are
   refused, and each one where a rule of the policy says ``audit-only``.
2. A rule's question is on record while it waits, so it is asked again after a restart.  When it is
   approved, the condition, the policy and the schema are looked at again: the call begins anew,
   and is not asked twice for the same.  An answer that did not come is no, whatever
   ``default_if_timeout`` says.
3. A call with side effects begins only once that is on record.
4. On a board a generator yields those that it waits for (host/firmware/README.md); so ``advance``
   keeps them in a list, the outermost first.
"""

from clawlite.core.base.effect import (
    APPROVAL,
    APPROVE,
    EVENT,
    KIND,
    LOG,
    RUN,
    RUN_SKILL,
    SLEEP,
    TOOL,
)
from clawlite.core.base.errors import ClawError, PolicyDenied
from clawlite.core.image.image import HAS_SIDE_EFFECTS, IDEMPOTENT, READ_ONLY, RULE_ID
from clawlite.core.providers.reflex import NUMBER
from clawlite.core.providers.reflex import read as read_number
from clawlite.core.rules import table
from clawlite.core.turns.tools import call

# of a value: what is beyond is no measurement, and no JSON or no number of a data base
_MOST_VALUE, _MOST_TEXT = 1e15, 200
_TURN_MS = 100  # between two looks whether another run has ended


def read(setup, record: list, state: dict):
    """Read once; a generator of effects that returns the value, None for none.

    record  of the reading in the image
    state   {"status": how the last call ended}, changed here
    Raises ``ClawError``.
    """
    work = [call(setup, record[table.TOOL], {}, "reading/" + record[table.NAME])]
    value = error = None
    while True:
        try:
            effect = advance(work, value, error)
        except StopIteration as e:
            return _field(e.value, record[table.FIELD])
        value = error = None
        if effect[KIND] == APPROVE:
            close(work)
            error = PolicyDenied(
                "reading %s: a rule of the policy asks a person first, and a reading asks nobody"
                % record[table.NAME],
                "let the policy allow it",
                {"tool": record[table.TOOL], "action": "require-approval"},
            )
            if state.get("status") != "refused":
                state["status"] = "refused"
                yield (LOG, _refusal(setup.image, record, error))
            raise error
        if effect[KIND] == LOG and not _is_news(effect[EVENT], state):
            continue
        value = yield effect


def advance(work: list, value, error) -> tuple:
    """Return the next effect of *work*, after handing in *value* or *error*.  Raises
    ``StopIteration`` with the result at the end, or the error that ended it.
    """
    while True:
        try:
            effect = work[-1].throw(error) if error else work[-1].send(value)
        except BaseException as e:
            if len(work) < 2:
                raise
            work.pop()
            value, error = (e.value, None) if isinstance(e, StopIteration) else (None, e)
            continue
        if type(effect) is tuple:
            return effect
        value = error = None
        work.append(effect)


def close(work: list):
    while work:
        work.pop().close()


def _is_news(event: dict, state: dict) -> bool:
    """Return whether the *event* of a reading is logged."""
    if event.get("event") != "tool.call":
        return True
    before, state["status"] = state.get("status"), event["status"]
    return event["status"] != before or event.get("action") == "audit-only"


def _refusal(image, record: list, error) -> dict:
    return {
        "event": "tool.call",
        "tool": record[table.TOOL],
        "caller": "reading/" + record[table.NAME],
        "arguments": {},
        "image": image.id,
        "action": "require-approval",
        "status": "refused",
        "code": error.code,
    }


def _field(result, field):
    if result.is_error:
        raise ClawError(result.text[:300], "look at the sensor, or at its tool")
    value = result.value
    if field is not None:
        value = value.get(field) if isinstance(value, dict) else None
    if isinstance(value, str):  # many tools answer with text
        number = read_number(NUMBER, value.strip())
        value = value if number is None else number
    if isinstance(value, str):
        is_sane = len(value) <= _MOST_TEXT
    elif isinstance(value, (int, float)):
        is_sane = -_MOST_VALUE <= value <= _MOST_VALUE  # not so for nan
    else:
        return None
    if not is_sane:
        shown = "a number beyond 1e15" if isinstance(value, int) else str(value)[:40]
        raise ClawError(
            "it returned %s, which no sensor measures" % shown,
            "look at the sensor, or at its tool",
        )
    return value


def may_repeat(image, name: str) -> bool:
    """Return whether the tool *name* may run twice."""
    tool = image.tool(name)
    return tool is not None and bool(tool.flags & (IDEMPOTENT | READ_ONLY))


class Act:
    """The call of one run.

    run        ``engine.Run``
    arguments  of the call
    obstacle   function(run) -> why it may not run any more, ""
    suspend    function(run, approval): keep the question, and let others run
    resume     function(run) -> whether it is its turn again, once it is approved
    begin      function(run, has effects) -> whether that it begins is on record
    left_s     seconds that a question of an earlier process has left, or None
    """

    def __init__(self, setup, run, arguments: dict, obstacle, suspend, resume, begin, left_s=None):
        self._setup, self._run, self._arguments = setup, run, arguments
        self._obstacle, self._suspend, self._begin = obstacle, suspend, begin
        self._resume = resume
        self._left_s = left_s
        # the id of the policy's rule that was answered, "" for another
        self._approved = None
        self.has_begun = False

    def work(self):
        """A generator of effects that returns a ``Result``.  Raises ``ClawError``."""
        name, work = self._run.rule[table.CALL], [self._call()]
        value = error = None
        try:
            while True:
                try:
                    effect = advance(work, value, error)
                except StopIteration as e:
                    return e.value
                value = error = None
                if effect[KIND] == APPROVE:
                    if self._approved == _rule_of(effect[APPROVAL]):
                        value = "approved"
                        continue
                    try:
                        yield from self._ask(effect)
                        why = self._obstacle(self._run)
                        if why:
                            raise PolicyDenied(
                                "%s: approved, but by now %s" % (name, why),
                                "/rules why %s says more" % self._run.name,
                            )
                    except Exception as e:  # the pipeline puts it on record
                        error = e
                        continue
                    close(work)
                    work.append(self._call())
                    continue
                if effect[KIND] in (RUN, RUN_SKILL) and not self.has_begun:
                    acts = bool(effect[TOOL].flags & HAS_SIDE_EFFECTS)
                    self.has_begun = self._begin(self._run, acts)
                    if not self.has_begun:
                        error = ClawError(
                            "%s: that it begins cannot be put on record, so it does not" % name,
                            "make room where this agent keeps its state",
                        )
                        continue
                try:
                    value = yield effect
                except Exception as e:
                    error = e
        finally:
            close(work)

    def _call(self):
        rule = self._run.rule
        return call(self._setup, rule[table.CALL], self._arguments, "rule/" + rule[table.NAME])

    def _ask(self, effect: tuple):
        approval = effect[APPROVAL]
        approval.asker = "rule/" + self._run.name
        left_s, self._left_s = self._left_s, None
        approval.keep_for(approval.timeout_s if left_s is None else left_s)
        self._suspend(self._run, approval)
        yield effect
        self._approved = _rule_of(approval)
        while not self._resume(self._run):
            yield (SLEEP, _TURN_MS)


def _rule_of(approval) -> str:
    return approval.rule[RULE_ID] if approval.rule else ""

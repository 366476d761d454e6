"""Rules taught by talking: a person's sentence, the form ``/teach``, the tools of a model, and the
methods of an operator become a draft (teaching.py), which an admin approves.

1. Only a person's own message drafts, at the console or in a channel of a person
   (``History.speaker``), in a turn in which nothing but list-rules has answered yet.  What a tool,
   a sensor, a page, a skill or another agent says never does.
2. Who approves sees the sentence that is made from the row, and what it would have done; an
   approval of the rule is none of its calls.
3. A sentence is read by the grammar in code (protocols/teach/grammar.py).  What it does not
   understand is asked, and the next message may be the answer.
"""

from weakref import WeakKeyDictionary

from clawlite.core.base.effect import APPROVAL, APPROVE, KIND, LOG, RUN
from clawlite.core.base.errors import (
    ClawError,
    InvalidParams,
    InvalidRequest,
    PolicyDenied,
    ProviderError,
)
from clawlite.core.rules import table
from clawlite.core.turns.turn import Reply
from clawlite.protocols.teach.reader import ADD, FORGET, LIST, OWN, REMIND, Reader

FORM = """Teach a rule with a sentence, or as a row of the rules file:
  /teach every day at 7:00 water for 5 seconds, if the soil is below 30, at most twice a day
  /teach at = "07:00", if = "soil < 30", call = "water", arguments = { seconds = 5 }
  begins    at = "07:00" | cron = "0 7 * * 1-5" | every = "2h" | pin = "door", edge = "rise"
            | on = "soil", below = 30, again_above = 35, for = "5m"
  and       if, call, arguments, at_most = "2/day", least_pause = "1h", once = true, say = "..."
  /rules taught lists what was taught, /rules forget NAME forgets it"""
_NOBODY = "only a person's own message teaches a rule"


class _Asked:
    """What an approval of a draft names in the place of a tool."""

    flags = 0

    def __init__(self, name: str):
        self.name = name


class Lessons:
    """What teaches one agent.

    image      ``image.Image``
    get_rules  function() -> ``rules.Rules``, made when it is first asked for
    propose, reads, get_local   as protocols/teach/reader.py has them
    """

    def __init__(self, image, get_rules, propose, reads: int, get_local=None):
        self._image, self._get_rules = image, get_rules
        get_readings = lambda: self.rules().own_section[table.READINGS]
        self._reader = Reader(image, propose, reads, get_readings, self._now, get_local)
        self._open = WeakKeyDictionary()  # History -> the sentence whose question was asked

    def _now(self):
        rules = self.rules()
        times, engine = rules.times(), rules.engine
        if not engine.is_set:
            return None
        local_s = times.wall_s + engine.zone.offset(times.wall_s)
        return local_s // 86400, local_s // 60 % 1440

    def rules(self):
        """Return the ``Rules``, once this process runs them.  Raises ``InvalidRequest``."""
        rules = self._get_rules()
        if not rules.is_owner():
            raise InvalidRequest(
                "the rules of this agent run in %s" % (rules.owner or "no process yet"),
                "teach it there",
            )
        rules.begin_teaching()
        return rules

    # -- sentences

    def reply(self, history):
        """Return the ``Reply`` to a message that teaches, None for another; a generator of
        effects.
        """
        if len(history.turn) != 1 or history.is_nested:
            return None
        text = history.turn[0].text.strip()
        before = self._open.pop(history, None)
        is_form = text == "/teach" or text.startswith("/teach ")
        text = text[6:].strip() if is_form else text
        try:
            if is_form and not text:
                return Reply(FORM, [])
            if is_form and "=" in text and '"' in text:
                row = _read_row(text)
            else:
                row, said, whole = yield from self._reader.hear(text, before, is_form)
                if whole:
                    self._open[history] = whole
                if said:
                    return Reply(said, [])
                if row is None:
                    return Reply("That teaches no rule.\n" + FORM, []) if is_form else None
                text = text if before is None else before + " " + text
            return Reply((yield from self._teach(row, text, history.speaker)), [])
        except ClawError as e:
            if e.__class__ in (InvalidParams, InvalidRequest):
                return Reply(_say_error(e), [])
            raise

    # -- from a row to a rule

    def draft(self, row, text, by: str) -> tuple:
        """Return (the ``Draft`` of *row*, or of the sentence *text*, "") or (None, what has to be
        asked first), for an operator.  Raises ``ClawError``.
        """
        from clawlite.linux.rules.teaching import make_draft

        if (row is None) == (text is None) or text is not None and not isinstance(text, str):
            raise InvalidParams("expected one of row, an object, and text, a sentence")
        if text is not None:
            row, question = _run_alone(self._reader.read(text[:500], None, True))
            if row is None:
                return None, question or "That teaches no rule: say when, and what to do."
        return make_draft(self.rules(), row, by, text or ""), ""

    def _teach(self, row: dict, said: str, speaker: tuple):
        """Draft *row*, let an admin approve it, and take it up; a generator of effects that returns
        what the person is told.  Raises ``ClawError``.
        """
        from clawlite.linux.rules.teaching import make_draft

        made = make_draft(self.rules(), row, speaker[0], said)
        arguments = dict(made.entry["row"], name=made.name)
        event = {
            "event": "tool.call",
            "tool": REMIND if "call" not in row else ADD,
            "caller": speaker[0],
            "arguments": arguments,
            "image": self._image.id,
            "status": "refused",
        }
        try:
            if needs_approval(row, speaker):
                event["approval"] = yield from self._put(made, event["tool"])
            text = self.finish(made)
        except Exception as e:  # not when the turn is dropped: nobody carries out effects then
            event["code"] = getattr(e, "code", ClawError.code)
            yield (LOG, event)
            raise
        event["status"] = "ok"
        yield (LOG, event)
        return text

    def _put(self, made, name: str):
        from clawlite.core.policy.approval import Approval

        approval = Approval(_Asked(name), dict(made.entry["row"], name=made.name), None, _WHY)
        approval.tell(question_lines(made))
        return (yield (APPROVE, approval))

    def finish(self, made) -> str:
        """Take up a draft; return what the person is told."""
        from clawlite.linux.rules.teaching import adopt

        adopt(self.rules(), made)
        return "Taught: %s /rules forget %s forgets it." % (made.lines[0], made.name)

    # -- the tools of a model

    def watch(self, run, history):
        """Return *run*, which runs the tool calls of a turn of *history*, with the tools that teach
        carried out here.
        """

        def run_call(setup, name, arguments, *more):
            work = run(setup, name, arguments, *more)
            own = name.replace("_", "-") if isinstance(name, str) else ""
            if own not in OWN:
                return (yield from work)
            return (yield from self._carry(work, own, history, more[-1] if more else None))

        return run_call

    def _carry(self, work, name: str, history, skill):
        """Carry on the pipeline's *work* of a call of the tool *name*: what its handler would do is
        done here, and an approval shows the draft.
        """
        made: _Lesson | None = None
        value = error = None
        is_approved = False
        try:
            while True:
                try:
                    effect = work.throw(error) if error else work.send(value)
                except StopIteration as e:
                    return e.value
                value = error = None
                try:
                    if made is None:
                        if effect[KIND] not in (APPROVE, RUN):
                            value = yield effect
                            continue
                        arguments = (
                            effect[APPROVAL].arguments if effect[KIND] == APPROVE else effect[2]
                        )
                        made = self._prepare(name, arguments, history, skill)
                    if effect[KIND] == APPROVE and made.draft:
                        effect[APPROVAL].tell(question_lines(made.draft))
                    if effect[KIND] == RUN:
                        if made.asks and not is_approved:
                            yield from self._put_own(made, name)
                        value = (True, made.finish())
                        continue
                    value = yield effect
                    # nobody's silence approves a rule, whatever the policy says of calls
                    is_asked = effect[KIND] == APPROVE
                    is_approved = is_approved or is_asked and effect[APPROVAL].how == "approved"
                except Exception as e:
                    error = e
        finally:
            work.close()

    def _put_own(self, made, name: str):
        from clawlite.core.policy.approval import Approval

        approval = Approval(_Asked(name), made.arguments, None, _WHY)
        approval.tell(made.lines)
        yield (APPROVE, approval)

    def _prepare(self, name: str, arguments: dict, history, skill):
        """Return the ``_Lesson`` of a call of the tool *name*.  Raises ``ClawError``."""
        if name == LIST:
            return _Lesson(arguments, lambda: "\n".join(self.list_lines()))
        others = [one.tool for one in history.turn if one.role == "tool"]
        others = [one for one in others if one.replace("_", "-") != LIST]
        if history.speaker is None or skill is not None:
            raise PolicyDenied("%s: %s" % (name, _NOBODY), "let a person say it", {"tool": name})
        if others:
            raise PolicyDenied(
                "%s: %s has answered in this turn already, and what a tool says teaches nothing"
                % (name, others[-1]),
                "let the person say it again",
                {"tool": name},
            )
        said, speaker = history.turn[0].text, history.speaker
        if name == FORGET:
            return self._prepare_forget(arguments, speaker)
        row = dict(arguments)
        if name == REMIND:
            row["say"] = "Reminder: " + str(row.pop("text", ""))
            if "in" in row:
                row["every"], row["once"] = row.pop("in"), True
        from clawlite.linux.rules.teaching import make_draft

        made = make_draft(self.rules(), row, speaker[0], said)
        asks = needs_approval(made.entry["row"], speaker)
        return _Lesson(arguments, lambda: self.finish(made), asks, question_lines(made), made)

    def _prepare_forget(self, arguments: dict, speaker: tuple):
        from clawlite.linux.rules.taught_store import forget

        name, rules = str(arguments.get("name")), self.rules()
        entry = rules.taught.find(name)

        def finish() -> str:
            forget(rules, name, "%s said so" % speaker[0])
            return "Forgotten: %s" % name

        if entry is None:
            return _Lesson(arguments, finish)  # its error says what there is
        lines = ("Forget the taught rule %s?" % name,)
        is_own = entry["by"] == speaker[0] or speaker[1]
        return _Lesson(arguments, finish, not is_own, lines)

    def list_lines(self) -> list:
        """Return the lines that say what was taught, and what the rules file has."""
        from clawlite.linux.rules.taught_store import describe_taught

        rules = self.rules()
        lines = []
        for one in describe_taught(rules):
            rests = " It rests: %s." % one["rests"] if one["rests"] else ""
            off = rules.engine.row(one["name"]).get("off") if not rests else None
            rests = rests or (" It is off: %s." % off if off else "")
            lines.append("%s: %s%s" % (one["name"], one["sentence"], rests))
        own = ", ".join(rule[table.NAME] for rule in rules.own_section[table.RULES])
        lines += ["Nothing was taught yet."] * (not lines)
        return lines + (["In the rules file: " + own] if own else [])


class _Lesson:
    """What a call of a tool that teaches comes to."""

    def __init__(self, arguments: dict, finish, asks=False, lines: tuple = (), draft=None):
        self.draft = draft
        self.arguments, self.finish, self.asks, self.lines = arguments, finish, asks, lines


# what an approval says of its reason
_WHY = (True, "an admin approves what is taught; each call is judged when it comes")


def needs_approval(row: dict, speaker: tuple) -> bool:
    """Return whether an admin is asked before *row* becomes a rule: a reminder of an admin's own
    calls nothing.
    """
    return "call" in row or not speaker[1]


def question_lines(made) -> tuple:
    return ("Teach this rule?", *("  " + line for line in made.lines))


def _read_row(text: str) -> dict:
    """Return the row of the form: ``at = "07:00", call = "water"``.  Raises ``InvalidParams``."""
    import tomllib

    try:
        return tomllib.loads("row = { %s }" % text)["row"]
    except tomllib.TOMLDecodeError as e:
        message = "the rule: this is no row of TOML: %s" % e
        raise InvalidParams(message, "/teach shows how it is written") from None


def _say_error(error) -> str:
    from clawlite.core.protocol.console import error_text

    return error_text(error)


def _run_alone(work):
    """Return the value of *work*, a generator of effects, of which none can be carried out here."""
    try:
        while True:
            next(work)
            work.throw(ProviderError("no model is asked here"))
    except StopIteration as e:
        return e.value

"""Channels of type cron on a board (CKP 0.2.0, 5.3): the scheduler of rules begins their turns.
Loaded for images that require ``cron``.

1. Each is a rule of the engine whose call is a turn (core/rules/cron.py), so it is listed, switched
   and kept as a rule is, and a wrong clock is the same to both.
2. That a turn begins is in flash before it does, and so is that its first tool with side effects
   begins.  A turn that a reset has cut off begins again, at most ``_MOST_TRIES`` times.  Once a
   tool with side effects had begun it does so only with ``interrupted = "repeat"``.
3. While a turn is under way, or waits for a person, rules go on.  The next times of its own
   schedule wait with ``overlap_policy: queue``, and are skipped without.
"""

from clawlite.core.base.effect import KIND, LOG, RUN, RUN_SKILL, SLEEP, TOOL
from clawlite.core.base.errors import ClawError, PolicyDenied, StoreError, wrap_error
from clawlite.core.image.image import CHANNELS, HAS_SIDE_EFFECTS, SKILLS
from clawlite.core.rules import table
from clawlite.core.rules.cron import GIVES_UP, make_clock, make_rule, make_text
from boardrules import BoardRules

_CRON = 1  # the number of the kind (protocols/image/features.py)
_NAME, _KIND, _PROCESSING, _OVERLAP, _OWN = 0, 1, 3, 4, 5  # of the record of a channel
_MOST_TRIES = 3
_MOST_WAITING = 100
_MOST = 4096  # characters of an answer


class CronRules(BoardRules):
    """As ``BoardRules``, with the Channels of type cron of its image."""

    def __init__(self, device):
        own = device.image.section(table.SECTION) or ([], [], None)
        records = device.image.section(CHANNELS)
        self._crons = {one[_NAME]: one for one in records if one[_KIND] == _CRON}
        rules, clock = list(own[table.RULES]), own[table.CLOCK]
        for name in self._crons:
            rules.append(make_rule(name, self._crons[name][_OWN]))
            clock = clock or make_clock(self._crons[name][_OWN])
        self._buckets = {}  # of the channels with a rate
        self._ready = []  # runs on record, whose turns ``tick`` begins
        super().__init__(device, [own[table.READINGS], rules, clock])

    def tick(self, now_ms: int):
        super().tick(now_ms)
        while self._ready:  # here, because deeper in the loop the stack would not be enough
            if self._device.prepare:
                self._device.prepare()
            self._begin_turn(self._ready[0])  # and again, where memory runs out
            self._ready.pop(0)

    def may_repeat(self, record: list) -> bool:
        cron, row = self._crons.get(record[table.NAME]), self.engine.row(record[table.NAME])
        if record[table.CALL] is not None or not cron:
            return super().may_repeat(record)
        return row.get("tries", 0) < _MOST_TRIES and (
            not row.get("acted") or cron[_OWN][GIVES_UP] is False
        )

    def _rest(self, caller: str, text: str) -> bool:
        if caller in self._crons:
            self.engine.rest(caller, text)
            return True
        return super()._rest(caller, text)

    # -- what is due

    def _begin_due(self, times):
        for name in self._crons:
            rule, row = self.engine.find(name), self.engine.row(name)
            queue = row.get("queue") or []
            most = _MOST_WAITING if self._crons[name][_OVERLAP][1] == 1 else 0  # 1: queue
            if rule.is_held and len(queue) > most:
                row["queue"] = queue[len(queue) - most :]
                self._tell_log("skipped", name)
        super()._begin_due(times)

    def _begin(self, run, arguments=None, left_s=None):
        """Put on record that the turn of *run* begins; ``tick`` begins it."""
        if run.name not in self._crons:
            return super()._begin(run, arguments, left_s)
        row = self.engine.row(run.name)
        row["tries"] = row.get("tries", 0) + 1
        self.engine.begin(run, self.times(), True)
        if self.save(True):
            self.engine.find(run.name).hold(True)
            self._ready.append(run)
            return
        row.pop("began", None)
        self._end_turn(run, "error", "that it begins cannot be put on record, so it does not")

    def _begin_turn(self, run):
        from clawlite.core.turns.turn_output import TurnOutput, keep_output

        agent, name = self.agent, run.name
        into, done = TurnOutput(_MOST), []

        def finish(_, error, now_ms: int):
            for number in done:
                self._runs.pop(number, None)
                if agent.setup.channels:
                    agent.setup.channels.end_run(number)
            done.append(0)
            self.engine.find(name).hold(False)
            self.look_soon()
            error = wrap_error(error) if error and not isinstance(error, ClawError) else error
            if error and self._is_cut(error):
                return  # what is on record says enough
            said = into.text()
            if error:
                why = "%s.%s" % (error.message.rstrip("."), error.hint and " Next: " + error.hint)
                said = said + "\n" + why if said else why
                self._tell_log("failed", name, why)
            self._end_turn(run, "error" if error else "ok", said)

        try:
            work = keep_output(self._work(run), name, into, lambda effect: self._act(name, effect))
            number = agent.begin(work, finish, self.now_ms(), agent.image.agent.turn_ms)
        except ClawError as e:
            if not done:
                finish(None, e, 0)
            return
        if not done:
            done.append(number)
            self._runs[number] = run
            if agent.setup.channels:
                agent.setup.channels.add_run(number)

    def _work(self, run):
        """Return the generator of the turn of *run*.  Raises ``ClawError`` where it may not
        begin.
        """
        from clawlite.core.turns.turn_output import call_for
        from clawlite.core.turns.history import History
        from clawlite.core.turns.turn import turn

        agent, (most, per_minute, burst) = self.agent, self._crons[run.name][_PROCESSING][:3]
        own = self._crons[run.name][_OWN]
        text = make_text(own, run.at_s, self.engine.zone.offset(run.at_s))
        if len(text) > most or per_minute and not self._admit(run.name, per_minute, burst):
            self._tell_log("refused", run.name, "length" if len(text) > most else "rate")
            raise PolicyDenied("the Channel refuses it: too long, or too many in a minute")
        self._tell_log("turn", run.name)
        history, how = History(agent.setup.keep_bytes), call_for(run.name)
        if text.startswith("/") and agent.image.size_of(SKILLS):
            from clawlite.core.agent.skillturn import begin, parse
            from clawlite.core.turns.gates import PERSON

            asked, person = parse(agent.image, text), "%s (%s)" % (PERSON, run.name)
            if asked:
                return begin(agent.setup, asked, agent.chain(), history, how, person)
        return turn(agent.setup, text, agent.chain(), history, how)

    def _admit(self, name: str, per_minute: int, burst) -> bool:
        from clawlite.core.policy.access import Bucket

        if name not in self._buckets:
            self._buckets[name] = Bucket(per_minute, burst)
        return not self._buckets[name].take(self.now_ms())

    def _act(self, name: str, effect: tuple):
        """The turn of *name* comes to *effect* (``turn_output.keep_output``)."""
        if self.engine.row(name).get("acted"):
            return True
        acts = effect[KIND] in (RUN, RUN_SKILL) and effect[TOOL].flags & HAS_SIDE_EFFECTS
        return self._note_act(name, effect[TOOL].name) if acts else False

    def _note_act(self, name: str, tool: str):
        """A generator: put on record that *tool* begins."""
        row = self.engine.row(name)
        row["acted"] = tool
        if not self.save(True):
            row.pop("acted")
            raise StoreError(
                "%s may not begin: it cannot be recorded that it does" % tool,
                "make room in the flash",
            )
        yield (SLEEP, 0)

    def _end_turn(self, run, status: str, text: str):
        row = self.engine.row(run.name)
        row.pop("tries", None)
        row.pop("acted", None)
        if text:
            self.tell("[%s] %s" % (run.name, text))
        self._finish(run, status, text)

    def _tell_log(self, what: str, name: str, reason: str = ""):
        event = {"event": "channel." + what, "channel": name, "actor": ""}
        if reason:
            event["reason"] = reason
        self.agent.emit((LOG, event))

"""Rules that people teach a board: by the form ``/teach``, or by a sentence that its gateway reads
(linux/local/shared.py) and sends as a call of ``add-rule``.  Loaded for images with ``[teach]``.

1. Only a person's own message teaches, in a turn in which nothing else has answered yet.
2. What comes is checked here, by what the image has; an admin approves the sentence that is made
   from the row.  That approves none of the rule's calls.
3. Each rule is a file of the folder ``taught``, with who said what and when.  One that does not fit
   the image any more rests: it is kept, and told at each start.
4. What checks rows (teachrows.py) is loaded for one look, and dropped.
"""

from clawlite.core.base.effect import APPROVE, LOG, Result
from clawlite.core.base.errors import ClawError, InvalidRequest, PolicyDenied
from clawlite.core.policy.access import VIEWER
from clawlite.core.policy.approval import Approval
from clawlite.core.rules import table
from clawlite.core.teach.open_engine import OpenEngine
from clawlite.core.turns.turn import Reply
from unload import drop

_ADD, _FORM = "add-rule", "/teach"
_HELP = """  /teach ROW   teach a rule, as the rules file has it; /rules taught, /rules forget NAME:
            /teach at = "07:00", if = "soil < 30", call = "water", arguments = { seconds = 5 }
            begins: at, cron, every, pin, on; and at_most, least_pause, once, say"""
_WHY = (True, "an admin approves what is taught; each call is judged when it comes")
_LOOKS = "teachrows draft row_text row_words cron_fields agent_setup rulestate"


class _Asked:
    """What an approval names in the place of a tool."""

    flags = 0
    name = _ADD


class _Engine(OpenEngine):
    """The engine of rules, some of which were taught; *teaching*: ``Teaching``."""

    def __init__(self, teaching, section: list, state: dict, times):
        super().__init__(section, state, times, True)
        self._teaching = teaching

    def find_obstacle(self, record: list, values: dict, times) -> str:
        return super().find_obstacle(record, values, times) or self._teaching.find_obstacle(
            record[table.NAME]
        )

    def next_run(self, times):
        run = super().next_run(times)
        while run is not None and self._teaching.is_reminder(run):
            self.begin(run, times, False)
            self.end(run, "ok", "", times)
            self._teaching.remind(run)
            run = super().next_run(times)
        return run

    def end(self, run, status: str, text: str, times):
        super().end(run, status, text, times)
        self._teaching.note_end(run.name, status)


class Teaching:
    """What the agent of *device* was taught, and how (``agent_setup.Setup.teach``).

    Attributes: ``entries``, {name: {"row", "by", "said", "at_s"}}; ``resting``: {name: why it does
    not fit}
    """

    def __init__(self, device):
        # before the rules, whose commands are asked behind these
        self._device, self._path, self._marks = device, device.folder + "/taught", {}
        self.entries, self.resting, self._over = {}, {}, []
        device.agent.commands.append(self.command)
        if device.channels:
            device.channels.add_command(self.command)

    # -- what runs

    def open_engine(self, rules, state: dict):
        """Return the engine of *rules*, which get those that were taught."""
        from rulestate import read_files

        self.entries, damaged = read_files(self._path, self._marks)
        del read_files
        if self.entries:
            from teachrows import compile_all

            compile_all(self, rules)
            del compile_all
        for name in damaged:
            rules.tell("[rule %s] it was taught, and is damaged: it is forgotten" % name, True)
        for name in self.resting:
            rules.tell(
                "[rule %s] it was taught, and does not fit this agent any more, so it rests: %s. "
                "/rules forget %s forgets it" % (name, self.resting[name], name),
                True,
            )
        drop(_LOOKS)
        return _Engine(self, rules.section, state, rules.times())

    def find_obstacle(self, name: str) -> str:
        """Return why who taught the rule *name* could not call its tool by hand, "" else."""
        by = self.entries[name]["by"] if name in self.entries else ""
        place, slash, actor = by.partition("/")
        channels = self._device.channels
        for channel in channels.all if slash and channels else ():
            if channel.name == place:
                role = channel.access.role(actor)
                if role is not None and role != VIEWER:
                    return ""
        return "%s, who taught it, may call no tools here any more" % by if slash else ""

    def is_reminder(self, run) -> bool:
        """Return whether *run* calls nothing: it says something."""
        return run.rule[table.CALL] is None and run.name in self.entries

    def remind(self, run):
        self._device.rules.say(run, Result("", False, ""), "", False)

    def note_end(self, name: str, status: str):
        """A rule that runs once is forgotten, when the loop comes by."""
        if name in self.entries and self.entries[name]["row"].get("once") and status != "void":
            self._over.append(name)

    def tick(self, now_ms: int):
        """Forget what is over."""
        while self._over:
            self.forget(self._over.pop(), "it has run")

    def deadline(self):
        """Return None: what ends a rule is done in the same round of the loop."""

    # -- how it is taught

    def reply(self, history):
        """Return the ``Reply`` to a row that a person writes, None for other messages; a generator
        of effects.  Raises ``ClawError``.
        """
        text = history.turn[0].text.strip()
        if len(history.turn) != 1 or text != _FORM and not text.startswith(_FORM + " "):
            return None
        text = text[len(_FORM) :].strip()
        if not text:
            return Reply(_HELP, [])
        if "=" not in text and "{" not in text:
            return None  # a sentence
        from teachrows import read_form

        by, _ = history.speaker
        said = yield from self._teach(read_form(text), text, by)
        return Reply(said, [])

    def watch(self, run, history):
        """Return *run*, which runs the tool calls of a turn of *history*, with ``add-rule`` carried
        out here.
        """

        def run_call(setup, name, arguments, *more):
            if name != _ADD:
                return run(setup, name, arguments, *more)
            return self._add(arguments, history, more[-1])

        return run_call

    def _add(self, row: dict, history, skill):
        if history.speaker is None or skill is not None or len(history.turn) != 2:
            raise PolicyDenied(
                "add-rule: only a person's own message teaches a rule", "let a person say it"
            )
        (message, _), (by, _) = history.turn, history.speaker
        said = yield from self._teach(row, message.text, by)
        return Result(said, False, said)

    def _teach(self, row: dict, said: str, by: str):
        """Check *row*, let an admin approve it, and take it up; a generator of effects that returns
        what the person is told.  Raises ``ClawError``.
        """
        from teachrows import make_entry

        rules = self._device.rules
        entry, record, sentence = make_entry(rules, self, row, by, said)
        del make_entry
        drop(_LOOKS)
        name = record[table.NAME]
        approval = Approval(_Asked, dict(entry["row"], name=name), None, _WHY)
        approval.tell(("Teach this rule?", "  %s: %s" % (name, sentence)))
        event = {"event": "tool.call", "tool": _ADD, "caller": by, "status": "refused"}
        event["arguments"], event["image"] = approval.arguments, self._device.image.id
        try:
            event["approval"] = yield (APPROVE, approval)
            self._adopt(entry, record)
        except Exception as e:  # not when the turn is dropped: nobody carries out effects then
            event["code"] = getattr(e, "code", ClawError.code)
            yield (LOG, event)
            raise
        event["status"] = "ok"
        yield (LOG, event)
        return "Taught: %s: %s /rules forget %s forgets it." % (name, sentence, name)

    def _adopt(self, entry: dict, record: list):
        rules, name = self._device.rules, record[table.NAME]
        if name in self.entries or rules.engine.find(name):
            raise InvalidRequest("rule %s: another one was taught meanwhile" % name, "say it again")
        self.entries[name] = entry
        wrong = self._keep()
        if wrong:
            del self.entries[name]
            raise ClawError("rule %s: %s" % (name, wrong), "make room in the flash")
        rules.section[table.RULES].append(record)
        rules.engine.add(record, rules.times())
        self._look_at_pins()
        rules.log({"event": "rule.taught", "rule": name, "by": entry["by"]})

    def forget(self, name: str, why: str) -> str:
        """Forget the taught rule *name*; return "", or what is wrong."""
        rules = self._device.rules
        if name not in self.entries:
            return "There is no taught rule %s; taught here: %s." % (
                name[:40],
                ", ".join(sorted(self.entries)) or "none",
            )
        rules.withdraw(name, "its rule was forgotten")
        rules.engine.remove(name)
        self._look_at_pins()
        records = rules.section[table.RULES]
        records[:] = [record for record in records if record[table.NAME] != name]
        del self.entries[name]
        self.resting.pop(name, None)
        wrong = self._keep()
        rules.save(True)
        rules.log({"event": "rule.forgotten", "rule": name, "reason": why})
        return wrong

    def _look_at_pins(self):
        """The engine has other rules now, which may begin at other pins."""
        rules = self._device.rules
        rules.pins[:] = [[name, None, False] for name in rules.engine.pins]
        rules.look_soon()

    def _keep(self) -> str:
        from rulestate import keep_files

        return keep_files(self._path, self.entries, self._marks)

    def _takes(self, words: list) -> bool:
        """Return whether the command ``/rules ...`` is about what was taught."""
        name, *more = words
        return name == "/rules" and more[:1] in (["taught"], ["forget"])

    def command(self, words: list, is_admin: bool = True):
        """Return the lines that answer a command about what was taught, None for another."""
        if words == ["/help"]:
            return [_HELP]
        if not self._takes(words):
            return None
        _, what, *names = words
        if what == "forget" and not is_admin:
            return ["Only an admin forgets rules."]
        if what == "forget":
            name = " ".join(names)
            return [self.forget(name, "a person said so") or "Rule %s is forgotten." % name]
        from teachrows import list_lines

        lines = list_lines(self, self._device.rules)
        del list_lines
        drop(_LOOKS)
        return lines

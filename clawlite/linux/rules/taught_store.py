"""The rules that people have taught this agent: ``rules/taught.json`` in the state folder
(io/state_file.py), apart from those of its manifest, with who said what and when.

    {"rules": [{"name", "row", "by", "said", "at_s", "is_known"}, ...], "told": {name: why}}

``row``: core/teach/draft.py; ``is_known``: ``by`` is an operator of ``clawlite people``.  A rule
whose row does not fit the agent any more rests: it is kept, and people are told why, once.
"""

from clawlite.core.base.clock import iso8601
from clawlite.core.base.errors import ClawError, InvalidParams
from clawlite.core.base.printable import escape_line
from clawlite.core.base.render import canonical
from clawlite.core.policy.access import VIEWER
from clawlite.core.rules import table
from clawlite.core.teach.draft import MOST_ROW, TEACH, World, compile_row
from clawlite.core.teach.row_words import describe
from clawlite.linux.io.state_file import StateFile

FILE = "taught"
MOST = 32
CONSOLE = "console"
_OPERATOR = "operator"
_FIELDS = {"name": str, "row": dict, "by": str, "said": str, "at_s": int, "is_known": bool}


class TaughtRules:
    """The taught rules of one agent.

    folder   that of its rules, or None: they live as long as the process
    limits   (tools or None, [count, seconds] or None) of ``[teach]``
    Attributes: ``entries``; ``resting``: {name: why it does not fit this agent}
    """

    def __init__(self, folder, limits: tuple = (None, None)):
        self._state, self.limits = StateFile(folder, FILE, "the taught rules"), limits
        rows = self._state.data.get("rules")
        self.entries = [one for one in rows if _is_entry(one)] if isinstance(rows, list) else []
        self.dropped = len(rows) - len(self.entries) if isinstance(rows, list) else 0
        self.resting = {}

    def compile(self, image, section: list) -> list:
        """Return the records of the rules that fit *image*; the others rest from now on."""
        names = [rule[table.NAME] for rule in section[table.RULES]]
        records = []
        self.resting = {}
        for entry in self.entries:
            try:
                world = World(image, section, self.limits, names)
                records.append(compile_row(dict(entry["row"], name=entry["name"]), world))
                names.append(entry["name"])
            except ClawError as e:
                self.resting[entry["name"]] = e.message
        return records

    def take_news(self) -> list:
        """Return [(name, why), ...] of the rules that rest, and whose reason nobody was told."""
        told = self._state.data.get("told")
        told = told if isinstance(told, dict) else {}
        news = [(name, why) for name, why in self.resting.items() if told.get(name) != why]
        if news or set(told) != set(self.resting):
            self._state.data["told"] = dict(self.resting)
            self._save()
        return news

    def find(self, name: str):
        """Return the entry of the rule *name*, None for one that nobody has taught."""
        for entry in self.entries:
            if entry["name"] == name:
                return entry
        return None

    def keep(self, entry: dict) -> str:
        """Keep *entry*; return "", or why that is not possible."""
        self.entries.append(entry)
        wrong = self._save()
        if wrong:
            self.entries.remove(entry)
        return wrong

    def remove(self, name: str) -> str:
        """Forget the rule *name*; return "", or why that is not on the disk."""
        self.entries = [entry for entry in self.entries if entry["name"] != name]
        self.resting.pop(name, None)
        return self._save()

    def _save(self) -> str:
        self._state.data["rules"] = self.entries
        return self._state.save(True)


def _is_entry(value) -> bool:
    return (
        isinstance(value, dict)
        and all(type(value.get(key)) is _FIELDS[key] for key in _FIELDS)
        and len(canonical(value["row"])) <= MOST_ROW
    )


def find_teacher_obstacle(entry: dict, channels, people) -> str:
    """Return why the teacher of *entry* could not call a tool by hand now, "" when they could.

    channels  the agent's ``Channels``, or None
    people    function() -> {name: role} of those of ``clawlite people``
    """
    place, slash, actor = entry["by"].partition("/")
    if not slash or entry["by"] == CONSOLE:
        return ""
    if place == _OPERATOR:
        role = people().get(actor) if entry["is_known"] else "user"
        if role is None or role == "viewer":
            return "%s, who taught it, may call no tools here any more" % entry["by"]
        return ""
    for channel in channels.all if channels else ():
        if channel.name == place:
            role = channel.access.role(actor)
            if role is not None and role != VIEWER:
                return ""
    return "%s, who taught it, may call no tools here any more" % entry["by"]


def limits_of(image) -> tuple:
    """Return what ``[teach]`` of clawlite.toml allows: (tools or None, [count, s] or None)."""
    section = image.section(TEACH)
    return tuple(section) if section else (None, None)


def roles_of(folder) -> dict:
    """Return {name: role} of the people of the agent whose state is in *folder*."""
    from clawlite.linux.secrets import people

    return {one.name: one.role for one in people.read(folder)} if folder else {}


def open_taught(rules, folder):
    """Let *rules* have what people have taught, kept in *folder*."""
    image, own = rules.agent.image, rules.own_section
    taught = TaughtRules(folder, limits_of(image))
    records, times = taught.compile(image, own), rules.times()
    rules.hold_taught(taught, [own[table.READINGS], own[table.RULES] + records, own[table.CLOCK]])
    for record in records:
        rules.engine.add(record, times)
    if taught.dropped:
        rules.tell("%d taught rules were damaged and are dropped" % taught.dropped, True)
    for name, why in taught.take_news():
        rules.log({"event": "rule.rests", "rule": name, "reason": why})
        rules.tell(
            "[rule %s] it was taught, and does not fit this agent any more, so it rests: %s. "
            "/rules forget %s forgets it" % (name, why, name),
            True,
        )


def forget(rules, name: str, why: str):
    """Forget the taught rule *name*.  Raises ``ClawError``."""
    taught = rules.taught
    if taught is None or taught.find(name) is None:
        known = [entry["name"] for entry in taught.entries] if taught else []
        raise InvalidParams(
            "there is no taught rule %s" % escape_line(str(name), 40),
            "taught here: %s; others are in the rules file" % (", ".join(known) or "none"),
        )
    rules.withdraw(name, "its rule was forgotten")
    rules.engine.remove(name)
    records = rules.section[table.RULES]
    records[:] = [record for record in records if record[table.NAME] != name]
    wrong = taught.remove(name)
    rules.save(True)
    rules.log({"event": "rule.forgotten", "rule": name, "reason": why})
    if wrong:
        raise ClawError("rule %s: %s" % (name, wrong), "make room, and forget it again")


def describe_taught(rules) -> list:
    """Return [{"name", "sentence", "by", "at", "said", "rests"}, ...] of the taught rules."""
    taught, zone = rules.taught, rules.own_section[table.CLOCK][table.ZONE_NAME]
    return [
        {
            "name": entry["name"],
            "sentence": describe(entry["row"], zone),
            "by": entry["by"],
            "at": iso8601(entry["at_s"]),
            "said": entry["said"],
            "rests": taught.resting.get(entry["name"], ""),
        }
        for entry in (taught.entries if taught else ())
    ]

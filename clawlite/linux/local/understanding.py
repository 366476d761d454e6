"""A sentence becomes proposed calls, a question, or nothing: ``Understanding.propose``.

    text made clean -> negation, time, question -> nearest examples -> the model -> its arguments
    traced to the sentence -> act, ask, or abstain

Nothing is called here: who gets a proposal runs it through the one pipeline, where autonomy, policy
and approval decide as ever.
"""

from typing import Any

from clawlite.linux.local import grounding, sentence
from clawlite.linux.local.examples import NONE, Vectors, read_none
from clawlite.linux.local.quantities import find_quantities
from clawlite.linux.local.words import Vocabulary
from clawlite.linux.local.words import content as words_content

ACT, ASK, NOTHING, RULE, REFUSE = "act", "ask", "nothing", "rule", "refuse"
MAX_TOOLS = 12  # that are shown to the model at once
LEAST_SURE = 0.3
SURE = 0.6  # with a word that no example has
LEAST_MARGIN = 0.1  # of an actuator without arguments, over the next tool
BONUS, WORDS = 0.15, 0.35  # what the model's choice, and known words, add to a score
SLACK = 0.1
NEAR = 0.25  # a sentence that is not so near to any example means none of the tools


class Proposal:
    """What a sentence asks for.

    kind        ACT: ``calls`` may run; ASK: a person must confirm them, or say what is missing;
                NOTHING: no tool is meant; RULE: it speaks of a time or a condition, which is for
                rules; REFUSE: it denies, or wants what cannot be
    calls       [[tool, arguments], ...]; of ASK with ``missing``: all but what is missing
    missing     name of the argument that a question asks for, or ""
    text        the question, or why nothing is done
    confidence  0 .. 1, of the model
    """

    def __init__(self, kind: str, calls=(), text: str = "", confidence: float = 0, missing=""):
        self.kind, self.calls, self.text = kind, [list(call) for call in calls], text
        self.confidence, self.missing = confidence, missing

    def to_json(self) -> dict:
        return {
            "kind": self.kind,
            "calls": self.calls,
            "text": self.text,
            "confidence": round(self.confidence, 3),
            "missing": self.missing,
        }


class Understanding:
    """The tools of one agent, as sentences ask for them.

    tools     [{"name", "description", "parameters", "reads": bool}, ...]; *reads*: no side effects
    examples  [{"say", "tool"}, ...]; without "tool" (or null) a sentence that means none
    engine    function() -> ``engine.Engine``, made anew for each set of tools
    """

    def __init__(self, tools: list, examples: list, engine, folder: str = ""):
        self.tools = {tool["name"]: tool for tool in tools if _is_flat(tool)}
        self.examples = [
            (one["say"], one.get("tool") or NONE)
            for one in examples
            if not one.get("tool") or one["tool"] in self.tools
        ]
        self._own = {}
        for said, tool in self.examples:
            self._own.setdefault(tool, []).append(said)
        lines = {
            name: [name.replace("-", " ").replace("_", " "), tool["description"]]
            + self._own.get(name, [])
            for name, tool in self.tools.items()
        }
        self._words = Vocabulary({**lines, NONE: self._own.get(NONE, []) + read_none()})
        self._make, self._folder = engine, folder
        self._engine: Any = None
        self._shown: Any = None  # names of the tools that the model knows
        self._vectors: Any = None

    def close(self):
        """End the engine."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def prepare(self):
        """Start the engine and compute what is not computed yet, before a sentence comes."""
        if len(self.tools) <= MAX_TOOLS:
            self._show(list(self.tools))
        self._near()

    def embed(self, text: str):
        """Return the vector of *text*."""
        return self._start_engine().embed(text)

    def twins(self) -> list:
        """Return [(tool, tool, how near their examples are), ...], the nearest first."""
        return self._near().twins()

    def _start_engine(self):
        if self._engine is None:
            self._engine, self._shown = self._make(), None
        return self._engine

    def _near(self) -> Vectors:
        if self._vectors is None:
            shipped = [(said, NONE) for said in read_none()]
            self._vectors = Vectors(
                self.examples + shipped, lambda text: self._start_engine().embed(text), self._folder
            )
        return self._vectors

    def _show(self, names: list):
        """Make the model know the tools *names*, in a new process if it knows others."""
        if self._engine is None or self._shown not in (None, names):
            self.close()
        engine = self._start_engine()
        if self._shown is None:
            engine.set_tools(
                [
                    {key: self.tools[name][key] for key in ("name", "description", "parameters")}
                    for name in names
                ]
            )
            self._shown = names

    def propose(self, text: str, is_clause: bool = False) -> Proposal:
        """Return the ``Proposal`` of a sentence.

        is_clause  it is the part of a rule that says what to do: a time in it is none of a rule's
        Raises ``LocalError``.
        """
        said = sentence.clean(text)
        if not said or not self.tools:
            return Proposal(NOTHING)
        if len(said) > sentence.MAX_TEXT:
            return Proposal(NOTHING, text="it is longer than %d characters" % sentence.MAX_TEXT)
        if sentence.is_negated(said):
            return Proposal(REFUSE, text="I did nothing: you said what is not to be done.")
        if not is_clause and sentence.has_time(said):
            return Proposal(RULE, text="That speaks of a time or a condition: it is for a rule.")
        asks = sentence.question(said)
        parts = [] if _cuts_number(said) else sentence.split(said)
        if 1 < len(parts) <= 4:
            found = [self._clause(part, asks) for part in parts]
            if all(one.kind in (ACT, ASK) and not one.missing for one in found):
                calls = [call for one in found for call in one.calls]
                if all(calls.count(call) == 1 for call in calls):
                    return _join(found)
        return self._clause(said, asks)

    def _clause(self, said: str, asks: str) -> Proposal:
        scores = self._rank(said, asks)
        if not any(tool in self.tools for _, tool in scores):
            return Proposal(NOTHING)
        names = list(self.tools)
        if len(names) > MAX_TOOLS:
            names = sorted([tool for _, tool in scores if tool in self.tools][:MAX_TOOLS])
        self._show(names)
        calls, sure = self._engine.complete(said)
        calls = [(name, given) for name, given in calls if name in self.tools]
        nearest = next(tool for _, tool in scores if tool in self.tools)
        chosen = nearest
        if len(calls) == 1:
            raised = [(score + BONUS * (tool == calls[0][0]), tool) for score, tool in scores]
            chosen = max(one for one in raised if one[1] in self.tools)[1]
        mine = next(score for score, tool in scores if tool == chosen)
        none = next((score for score, tool in scores if tool == NONE), 0)
        least = max(none, NEAR)
        if self.tools[chosen]["reads"] and asks and [name for name, _ in calls] == [chosen]:
            least -= SLACK  # both say so, and it changes nothing
        if mine < least:
            return Proposal(NOTHING)
        others = [score for score, tool in scores if tool != chosen]
        agrees = len(calls) == 1 and calls[0][0] == chosen == nearest
        given = next((given for name, given in calls if name == chosen), {})
        margin = mine - max(others, default=0)
        return self._judge(said, asks, chosen, given, sure if calls else 0, margin, agrees)

    def _rank(self, said: str, asks: str) -> list:
        """Return [(score, tool), ...] of the tools that the sentence may mean, the nearest first:
        the vectors of their examples, and their words.
        """
        found = []
        for score, name in self._near().scores(said):
            tool = self.tools.get(name)
            if tool and asks == sentence.ASKS_STATE and not tool["reads"]:
                continue
            if tool and grounding.contradicts(tool, said, {}, self._own.get(name, ())):
                continue
            found.append((score + WORDS * self._words.coverage(name, said), name))
        return sorted(found, reverse=True)

    def _judge(self, said, asks, name: str, given: dict, sure, margin, agrees) -> Proposal:
        tool = self.tools[name]
        found = grounding.ground(tool, given, said, self._own.get(name, ()))
        if found.wrong:
            return Proposal(REFUSE, text="%s: %s." % (name, found.wrong))
        if len(found.missing) > 1:
            text = "%s needs %s." % (name, " and ".join(found.missing))
            return Proposal(REFUSE, text=text)
        call = [[name, found.arguments]]
        if found.missing:
            text = question_for(tool, found.missing[0])
            return Proposal(ASK, call, text, sure, found.missing[0])
        unknown, words = self._words.unknown(name, said), words_content(said)
        if tool["reads"] and not found.doubts:
            if not asks and (sure < 0.1 or len(unknown) * 3 >= len(words) * 2 > 0):
                return Proposal(NOTHING)
            return Proposal(ACT, call, "", sure)
        is_plain = agrees and not asks and not found.doubts and sure >= LEAST_SURE
        if unknown:  # what is not known may be another thing than the tool's
            is_plain = is_plain and sure >= SURE and found.arguments
            is_plain = is_plain and len(unknown) * 2 <= len(words)
        if is_plain and (found.arguments or margin >= LEAST_MARGIN):
            return Proposal(ACT, call, "", sure)
        return Proposal(ASK, call, confirm(call), sure)

    def answer(self, calls: list, missing: str, text: str) -> Proposal:
        """Return what becomes of a question when a person has answered *text* to it.

        NOTHING  the text is no answer: it is a sentence of its own
        """
        said = sentence.clean(text)
        if not missing:
            yes = sentence.read_yes_no(said)
            if yes is None:
                return Proposal(NOTHING)
            return (
                Proposal(ACT, calls, "", 1) if yes else Proposal(REFUSE, text="Nothing was done.")
            )
        name, arguments = calls[-1]
        if name not in self.tools or sentence.read_yes_no(said) is False:
            return Proposal(REFUSE, text="Nothing was done.")
        value, wrong = grounding.complete(self.tools[name], missing, said)
        if wrong:
            return Proposal(REFUSE, text="%s: %s." % (name, wrong))
        if value is None or len(grounding.words_of(said)) > 6:
            return Proposal(NOTHING)
        return Proposal(ACT, calls[:-1] + [[name, dict(arguments, **{missing: value})]], "", 1)

    def abilities(self) -> str:
        """Return what the agent can do, for a person whose sentence meant none of it."""
        said = [self._own[name][0] for name in self.tools if name in self._own][:6]
        return "I did not understand that as one of my tools. Try: %s." % "; ".join(said)


def _cuts_number(said: str) -> bool:
    """Return whether an "and" in *said* belongs to a number: two hundred and fifty."""
    return any(len(sentence.split(said[one.start : one.end])) > 1 for one in find_quantities(said))


def _join(found: list) -> Proposal:
    """Return one proposal of those of several clauses."""
    calls = [call for one in found for call in one.calls]
    sure = min(one.confidence for one in found)
    if all(one.kind == ACT for one in found):
        return Proposal(ACT, calls, "", sure)
    return Proposal(ASK, calls, confirm(calls), sure)


def _is_flat(tool: dict) -> bool:
    """Return whether each required argument of *tool* can be said in words."""
    schema = tool["parameters"]
    rules = schema.get("properties", {})
    return all(
        rules.get(name, {}).get("type") in ("integer", "number", "string", "boolean")
        or "enum" in rules.get(name, {})
        for name in schema.get("required", ())
    )


def question_for(tool: dict, missing: str) -> str:
    """Return the question for the one argument that was not said."""
    rule = tool["parameters"]["properties"][missing]
    words = missing.replace("_", " ").replace("-", " ")
    if "enum" in rule:
        return "%s: which %s, %s?" % (tool["name"], words, " or ".join(map(str, rule["enum"])))
    if rule.get("type") == "boolean":
        return "%s: on or off?" % tool["name"]
    if rule.get("type") == "string":
        return "%s: which %s?" % (tool["name"], words)
    return "%s: how many %s?" % (tool["name"], words)


def confirm(calls: list) -> str:
    """Return the question whether *calls* are meant."""
    return "Did you mean: %s? [y/N]" % " and ".join(describe(*call) for call in calls)


def describe(name: str, arguments: dict) -> str:
    """Return a call in words: water, seconds 60."""
    said = ["%s %s" % (key, grounding.show(value)) for key, value in sorted(arguments.items())]
    return ", ".join([name, *said])

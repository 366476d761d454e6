"""Compile a reflex file (TOML, named by ``reflex`` in clawlite.toml) to the lists of
clawlite/core/providers/reflex.py.

    [[rule]]
    when = ["is the soil dry", "water [the] plants for {seconds:int} seconds"]
    call = "read-soil"                      # optional; with arguments = {...}
    say = "Let me look."                    # optional, shown before the call

      [[rule.then]]                         # what follows the tool's answer; the first that holds
                                            goes on
      if = "percent < 30"                   # or "failed"; without it, always when the call went
                                            well
      say = "It is dry: {percent} %."

Patterns: words, ``a|b`` alternatives, ``[the]`` may be left out, ``*`` any words, ``{name}`` one
word, ``{name:int}``, ``{name:number}``, ``{name:text}`` one or more words.  ``{name}`` in ``say``
and as a whole argument is a slot or a field of the last result; ``{result}`` is the result itself.
"""

import re

from clawlite.core.providers.reflex import (
    ANY,
    FAILED,
    INT,
    NUMBER,
    OPERATORS,
    OPTIONAL,
    SLOT,
    TEXT,
    WORD,
    words,
)
from clawlite.host.base.document import LinePlace
from clawlite.host.base.problems import ManifestErrors, Problem, did_you_mean, enquote, value_text
from clawlite.host.base.toml_text import TOMLDocument, read_toml

TYPES = {"int": INT, "number": NUMBER, "word": WORD, "text": TEXT}
MAX_RULES, MAX_TOKENS, MAX_OPEN, MAX_DEPTH = 256, 32, 3, 8
RULE_KEYS = ("when", "say", "call", "arguments", "then")
STEP_KEYS = ("if", "say", "call", "arguments", "then")
TRIGGERS = {"at", "every", "cron", "pin", "on"}
_OF_TRIGGERED = {"name", "if", "at_most", "least_pause", "missed"}  # fields of such rules alone
_MEANT = {f"did you mean {enquote(key)}?" for key in TRIGGERS}

_TOKEN = re.compile(r"\{[^}]*\}|\[[^\]]*\]|\S+")
_SLOT = re.compile(r"\{([a-z_][a-z0-9_]*)(?::([a-z]+))?\}\Z")
PART = re.compile(r"\{([a-z_][a-z0-9_]*)\}")
CONDITION = re.compile(r"([a-z_][a-z0-9_]*)\s*(<=|>=|==|!=|<|>)\s*(.+)\Z")


def compile_reflex(text: str, file: str, tools: dict) -> tuple[list, list[Problem]]:
    """Return (rules, problems).

    text   the file's text
    file   its name, for problems
    tools  {name: ``rule_calls.Callable``} of the manifest's tools
    """
    return _Compiler(text, file, tools).run()


class _Compiler:
    def __init__(self, text: str, file: str, tools: dict):
        self.text, self.file, self.tools = text, file, tools
        self.problems = []
        self.place = LinePlace(file)
        self.rule = 0
        self.slots = []  # names in the patterns of that rule
        # of the step: names that have a value there, None when a result is not known
        self.known = None

    def run(self) -> tuple[list, list[Problem]]:
        try:
            self.place = TOMLDocument(self.text.encode(), self.file)
        except ManifestErrors as e:
            return [], e.problems
        data = self.place.data
        for key in data:
            if key not in ("rule", "reading"):
                self.report(
                    (key,),
                    "unknown field",
                    hint=did_you_mean(key, ["rule", "reading"])
                    or "reflex rules are [[rule]] tables",
                )
        rules = data.get("rule", [])
        if (
            not isinstance(rules, list)
            or not rules
            or not all(isinstance(rule, dict) for rule in rules)
        ):
            if "rule" in data or not (_misspelt(data, "rule", ("rule",)) or "reading" in data):
                self.report(
                    ("rule",),
                    "",
                    "one or more [[rule]] tables",
                    value_text(rules) if "rule" in data else "none",
                )
            return [], self.problems
        if len(rules) > MAX_RULES:
            self.report(("rule",), "", f"at most {MAX_RULES} rules", str(len(rules)))
        compiled = []
        for self.rule, rule in enumerate(rules[:MAX_RULES]):
            if is_triggered(rule):
                continue
            self.slots = []
            compiled.append(
                [
                    self.patterns(("rule", self.rule), rule),
                    self.step(("rule", self.rule), rule, RULE_KEYS, 0, set(self.slots)),
                ]
            )
        return compiled, self.problems

    def report(
        self, path: tuple, message: str, expected: str = "", found: str = "", hint: str = ""
    ):
        _, line = self.place.where(path, True)
        self.problems.append(Problem(path, message, self.file, line, expected, found, hint))

    def patterns(self, path: tuple, rule: dict) -> list:
        when = rule.get("when")
        if isinstance(when, str):
            when = [when]
        if (
            not isinstance(when, list)
            or not when
            or not all(isinstance(text, str) for text in when)
        ):
            if "when" in rule or not _misspelt(rule, "when", RULE_KEYS):
                self.report(
                    path + ("when",),
                    "",
                    "one or more patterns",
                    value_text(when) if "when" in rule else "none",
                )
            return []
        return [self.pattern(path + ("when", index), text) for index, text in enumerate(when)]

    def pattern(self, path: tuple, text: str) -> list:
        tokens = []
        for token in _TOKEN.findall(text):
            tokens += self.token(path, token)
        opened = sum(token == ANY or token[:1] == [SLOT] and token[-1] == TEXT for token in tokens)
        if not tokens or len(tokens) > MAX_TOKENS or opened > MAX_OPEN:
            self.report(
                path,
                "",
                f"1 to {MAX_TOKENS} words, at most {MAX_OPEN} of them * or text slots",
                enquote(text),
            )
        return tokens

    def token(self, path: tuple, token: str) -> list:
        if token == "*":
            return [ANY]
        if token.startswith("{"):
            slot = _SLOT.match(token)
            name, kind = slot.groups() if slot else (None, None)
            if not slot or kind and kind not in TYPES:
                self.report(
                    path,
                    "",
                    "a slot such as {seconds:int}; types: " + ", ".join(TYPES),
                    enquote(token),
                )
                return []
            self.slots.append(name)
            return [[SLOT, name, TYPES[kind or "word"]]]
        optional = token.startswith("[") and token.endswith("]")
        choices = []
        for choice in (token[1:-1] if optional else token).split("|"):
            said = words(choice)
            if len(said) > 1:
                self.report(path, "", "alternatives of one word each", enquote(token))
            choices += said
        return [choices + [OPTIONAL] if optional else choices] if choices else []

    def step(self, path: tuple, step: dict, keys: tuple, depth: int, known) -> list:
        """Compile one step.

        known  set of the names that have a value here: slots, and fields of the results before it;
               None when one of those results is not known
        """
        for key in step:
            if key not in keys:
                near = did_you_mean(key, keys)
                hint = near or "known here: " + ", ".join(keys)
                self.report(path + (key,), "unknown field", hint=hint)
        say, call, then = step.get("say"), step.get("call"), step.get("then", [])
        if (
            say is None
            and call is None
            and not (_misspelt(step, "say", keys) or _misspelt(step, "call", keys))
        ):
            self.report(path, "says nothing and calls nothing", hint="add say or call")
        if say is not None and not isinstance(say, str):
            self.report(path + ("say",), "", "text", value_text(say))
            say = None
        if call is not None and call not in self.tools:
            name = call.replace("_", "-") if isinstance(call, str) else None
            if name not in self.tools:
                self.report(
                    path + ("call",),
                    f"unknown tool {value_text(call)}",
                    hint=did_you_mean(call, self.tools)
                    or "tools here: " + (", ".join(self.tools) or "none"),
                )
            call = name
        if depth or "when" in step:
            self.placeholders(path, say, step.get("arguments"), known, depth)
        if not isinstance(then, list) or not all(isinstance(branch, dict) for branch in then):
            self.report(path + ("then",), "", "[[...then]] tables", value_text(then))
            then = []
        if then and (call is None or depth >= MAX_DEPTH):
            self.report(
                path + ("then",),
                "follows a call; there is none" if call is None else f"deeper than {MAX_DEPTH}",
                hint="add a call before it, or remove it" if call is None else "nest fewer of them",
            )
            then = []
        fields = self.tools[call].fields if call in self.tools else None
        after = None if known is None or fields is None else known | fields | {"result"}
        branches = [
            [
                self.condition(path + ("then", index), branch, after),
                self.step(path + ("then", index), branch, STEP_KEYS, depth + 1, after),
            ]
            for index, branch in enumerate(then)
        ]
        return [text_parts(say), call, self.arguments(path, step, call), branches]

    def placeholders(self, path: tuple, say, arguments, known, depth: int):
        """Report a name in braces that has no value: neither a slot nor, after a call, a field of
        its result.  A person would read "null".
        """
        if known is None:
            return
        texts = [(path + ("say",), say)]
        if isinstance(arguments, dict):
            texts += [(path + ("arguments", name), text) for name, text in arguments.items()]
        for place, text in texts:
            for name in PART.findall(text) if isinstance(text, str) else ():
                if name not in known and depth:
                    self.unknown(place, name, known)
                elif name not in known:
                    slots = "slots here: " + (", ".join(sorted(self.slots)) or "none")
                    self.report(
                        place,
                        "no pattern of this rule has the slot {%s}" % name,
                        hint=did_you_mean(name, self.slots)
                        or slots + "; what a call answers is known in its [[rule.then]]",
                    )

    def unknown(self, place: tuple, name: str, known: set):
        self.report(
            place,
            f"no result before this step has the field {enquote(name)}, and no pattern has that "
            "slot",
            hint=did_you_mean(name, known) or "known here: " + ", ".join(sorted(known)),
        )

    def arguments(self, path: tuple, step: dict, call) -> list:
        arguments = step.get("arguments", {})
        if not isinstance(arguments, dict) or arguments and call is None:
            self.report(path + ("arguments",), "", "a table beside call", value_text(arguments))
            return []
        pairs = []
        for name in sorted(arguments):
            value = arguments[name]
            slot = PART.fullmatch(value) if isinstance(value, str) else None
            if not slot and (
                not isinstance(value, (str, int, float, bool))
                or isinstance(value, str)
                and PART.search(value)
            ):
                self.report(
                    path + ("arguments", name),
                    "",
                    "a constant, or one {slot} alone",
                    value_text(value),
                )
            pairs.append([name, list(slot.groups()) if slot else value])
        if call in self.tools and not _misspelt(step, "arguments", STEP_KEYS):
            for name, message, hint in self.tools[call].refusals(dict(pairs)):
                place = path + ("arguments", name) if name else path + ("arguments",)
                self.report(place, message, hint=hint)
        return pairs

    def condition(self, path: tuple, branch: dict, known):
        text = branch.get("if")
        if text is None:
            return None
        if text == "failed":
            return [FAILED]
        parts = CONDITION.match(text) if isinstance(text, str) else None
        name, operator, wanted = parts.groups() if parts else (None, None, None)
        value = constant(wanted.strip()) if parts else None
        if (
            value is None
            or operator not in OPERATORS
            or operator not in ("==", "!=")
            and isinstance(value, (str, bool))
        ):
            self.report(
                path + ("if",),
                "",
                '"failed" or a comparison such as "percent < 30"',
                value_text(text),
            )
            return None
        if known is not None and name not in known:
            self.unknown(path + ("if",), name, known)
        return [name, operator, value]


def constant(text: str):
    """Return the value of a TOML number, boolean or quoted string, or None."""
    try:
        value = read_toml("v = " + text)["v"]
    except ValueError:
        return None
    return value if isinstance(value, (str, int, float, bool)) else None


def text_parts(say):
    """Return ["It is ", ["percent"], " %."] for ``It is {percent} %.``; None for no text."""
    if say is None:
        return None
    parts, at = [], 0
    for slot in PART.finditer(say):
        parts += [say[at : slot.start()], list(slot.groups())]
        at = slot.end()
    return [part for part in parts + [say[at:]] if part]


def is_triggered(rule: dict) -> bool:
    """Return whether *rule* begins by itself, and not with what a person writes: triggers.py
    compiles it.
    """
    if "when" in rule:
        return not TRIGGERS.isdisjoint(rule)
    return not TRIGGERS.isdisjoint(rule) or any(
        key in _OF_TRIGGERED or did_you_mean(key, [*TRIGGERS, *RULE_KEYS]) in _MEANT
        for key in rule
        if key not in RULE_KEYS
    )


def _misspelt(table: dict, name: str, keys: tuple) -> bool:
    """Return whether a key of *table* that is none of *keys* means *name*: that has been said,
    and its absence need not be.
    """
    return any(
        did_you_mean(key, keys) == f"did you mean {enquote(name)}?"
        for key in table
        if key not in keys
    )

"""What an MCP server asks a person during a call (elicitation): a message and a form, put as an
approval is (core/policy/approval.py).

1. All words of a server are a stranger's: they stand in quotation marks, on one line, with what
   cannot be seen written out.  Its name may come from a gateway, and is no exception.
2. At a console each field is asked for by itself, and what was typed is shown once more before it
   leaves.  Elsewhere the whole form is answered at once (``fill``).
3. A field that looks like a secret is asked for with a warning, and what is given for it is not on
   record.
"""

import re
from typing import Any

from clawlite.core.base.effect import APPROVE, TELL
from clawlite.core.base.errors import ClawError, InvalidParams
from clawlite.core.base.printable import escape_line, join_lines
from clawlite.core.base.render import canonical
from clawlite.core.policy.approval import Approval
from clawlite.linux.mcp.form_fields import MAX_SHOWN, field_of, quote_text

MAX_FIELDS = 20
MAX_MESSAGE = 1200  # characters of it that are shown: 15 rows of 80
_HELP = "/decline says no, /cancel leaves it open, /again begins anew"
_WARNING = (
    "Careful: this looks like a secret. A server may not ask for one in this way; what you type is "
    "shown here, and sent to it"
)
_SECRET = re.compile(
    r"pass ?(word|wd|phrase|code)|secret|\btokens?\b|api ?key|credential|\bpin\b|private ?key|"
    r"\bcv[vc]\b|card ?number|\bssn\b|\botp\b|one time|\b[2m]fa\b|security ?code"
)


class URLWanted(ClawError):
    """The server wants a person to open a page, which nothing here does."""


class _Asks(Approval):
    """What waits for a person during a call that runs."""

    form: Any = None
    prompt = "> "

    def __init__(self, tool, arguments: dict, form):
        super().__init__(tool, arguments, None)
        self.form = form


class Question:
    """One question of a server.

    server   its name in the manifest
    params   those of ``elicitation/create``
    Raises ``ClawError`` for what cannot be asked.

    result   what the server is told, once a person has decided: {"action", "content"}
    """

    def __init__(self, server: str, params, loads):
        self._server, self._loads = escape_line(server), loads
        self.message, properties, required = _parse_params(params)
        self._fields = [
            field_of(name, schema, name in required) for name, schema in properties.items()
        ]
        self._warns = [_is_secret(one.words) for one in self._fields]
        self._warns_of_all = bool(self._fields) and _is_secret(self.message)
        self.is_told = False  # of whoever asked to be
        self.is_decided = False  # a person has answered, or let its time pass
        self._values: dict = {}
        self._field_index = 0  # the field that is asked for
        self._action = "decline"  # of who does not accept
        self._is_filled = False
        self.result: dict = {"action": "cancel"}

    def put(self, tool, arguments: dict):
        """A generator of effects: ask a person; return (True, what the server is told), or
        (ENDED, ...) when the call ends first.
        """
        self._tool = tool.name
        ended = yield (APPROVE, _Asks(tool, arguments, self))
        if not self.is_decided:
            yield (TELL, self.end_notice)
            return ended
        return True, self.result

    # -- what a person reads

    @property
    def quote(self) -> str:
        return quote_text(self.message)

    @property
    def end_notice(self) -> str:
        """What a person is told when the call has ended before an answer."""
        about = "The question of the MCP server %s is withdrawn, because its call has ended: %s"
        return about % (self._server, self.quote)

    def _lines(self, left_s: int, by: str | None) -> list:
        lines = [
            "The MCP server %s asks during the call of %s:" % (self._server, self._tool),
            "  " + quote_text(self.message, MAX_MESSAGE),
            "  (%d s, then it gets no answer%s)" % (left_s, "; " + _HELP if by == "/show" else ""),
        ]
        if self._warns_of_all:
            lines.append("  " + _WARNING)
        if by == "/show":
            return lines + [self._prompt_text()]
        for number, field in enumerate(self._fields):
            lines.append("  " + self._field_text(number, field))
        return lines

    def text(self, left_s: int, by: str | None) -> str:
        """Return the lines that a person is asked with; *by* "/show": at a console, where each
        field is asked for by itself.
        """
        return join_lines(self._lines(left_s, by))

    def to_json(self) -> dict:
        """Return the question for a program that has forms of its own."""
        fields = {field.name: field.schema for field in self._fields}
        required = [field.name for field in self._fields if field.is_required]
        schema = {"type": "object", "properties": fields, "required": required}
        asked = {"server": self._server, "tool": self._tool, "message": self.message}
        return {**asked, "requestedSchema": schema}

    @property
    def how(self) -> str:
        """What follows the command of a channel that answers it, as people read it."""
        if not self._fields:
            return ""
        return " VALUE" if len(self._fields) == 1 else ' {"FIELD": VALUE, ...}'

    def _field_text(self, number: int, field) -> str:
        text = field.text()
        return text + ". " + _WARNING if self._warns[number] else text

    def _prompt_text(self) -> str:
        """Return what is asked for now."""
        if self._field_index < len(self._fields):
            field = self._fields[self._field_index]
            place = "%d of %d: " % (self._field_index + 1, len(self._fields))
            return "  " + place + self._field_text(self._field_index, field)
        given = ", ".join(
            "%s=%s" % (quote_text(name), value_text(v)) for name, v in self._values.items()
        )
        what = "Send %s" % given if given else "Say yes" if not self._fields else "Send nothing"
        return "  %s to %s? (y, or n to decline)" % (what, self._server)

    # -- what a person says

    def read(self, line) -> tuple:
        """Take a line of the console, None at its end; return (lines that are said to that, True
        when it may be sent, False when not, or None when there is more to ask).
        """
        word = "/cancel" if line is None else line.strip()
        if word in ("/decline", "/cancel", "/quit"):
            if word != "/decline":
                self._action = "cancel"
            return [], False
        if word == "/again":
            self._values, self._field_index = {}, 0
            return [self._prompt_text()], None
        if self._field_index == len(self._fields):
            self._is_filled = word.lower() in ("y", "yes")
            if self._is_filled or word.lower() in ("n", "no", ""):
                return [], self._is_filled
            return [self._prompt_text()], None
        field = self._fields[self._field_index]
        try:
            value = field.read(word)
        except ValueError as e:
            return ["  Not that: %s." % e, self._prompt_text()], None
        if value is not None:
            self._values[field.name] = value
        self._field_index += 1
        return [self._prompt_text()], None

    def fill(self, content):
        """Take the whole form, {name: value}; what is missing has its default.  Raises
        ``InvalidParams``.
        """
        if not isinstance(content, dict):
            raise InvalidParams("content: expected an object, the fields of the form")
        names = [field.name for field in self._fields]
        strange = [name for name in content if name not in names]
        if strange:
            raise InvalidParams(
                "content: the form has no field %s" % quote_text(strange[0]),
                "it has: %s" % (", ".join(map(quote_text, names)) or "none"),
            )
        values = {}
        for field in self._fields:
            try:
                value = (
                    field.check(content[field.name]) if field.name in content else field.read("")
                )
            except ValueError as e:
                raise InvalidParams("content: %s: %s" % (quote_text(field.name), e)) from None
            if value is not None:
                values[field.name] = value
        self._values, self._is_filled = values, True

    def fill_text(self, text: str):
        """Take the whole form as a person writes it on one line: JSON, or the value of its only
        field.  Raises ``InvalidParams``.
        """
        if len(self._fields) == 1 and not text.startswith("{"):
            try:
                value = self._fields[0].read(text)
            except ValueError as e:
                raise InvalidParams(str(e)) from None
            self.fill({} if value is None else {self._fields[0].name: value})
            return
        try:
            content = self._loads(text.encode()) if text else {}
        except ClawError:
            raise InvalidParams('expected the fields as JSON, {"name": value}') from None
        self.fill(content)

    # -- a person has decided

    def event(self, event: dict) -> dict:
        """Return the log's *event* of an approval as that of this question, which is over."""
        self.is_decided = True
        how, event["answer"] = event["answer"], "cancel"
        event["reason"] = "the MCP server %s asks: %s" % (self._server, quote_text(self.message))
        if how == "approved" and self._is_complete():
            event["answer"] = "accept"
            self.result = {"action": "accept", "content": self._values}
        elif how == "denied":
            event["answer"] = self._action
            self.result = {"action": self._action}
        if event["answer"] == "accept":
            secret = {
                field.name
                for field, warns in zip(self._fields, self._warns)
                if warns or self._warns_of_all
            }
            event["given"] = {
                name: "(not on record)" if name in secret else value
                for name, value in self._values.items()
            }
        return event

    def _is_complete(self) -> bool:
        """Return whether the form is filled in: who approves without a word takes its defaults."""
        if not self._is_filled:
            try:
                self.fill({})
            except InvalidParams:
                return False
        return True


def value_text(value) -> str:
    """Return a value that a person has given, as they may check it."""
    return escape_line(canonical(value, MAX_SHOWN))


def _is_secret(words: str) -> bool:
    words = re.sub(r"([a-z])([A-Z])", r"\1 \2", words)
    return _SECRET.search(re.sub(r"[-_\s]+", " ", words).lower()) is not None


def _parse_params(params) -> tuple:
    """Return (message, {name: schema}, list of names that are required)."""
    params = params if isinstance(params, dict) else {}
    message = params.get("message")
    message = message if isinstance(message, str) else ""
    if params.get("mode", "form") == "url":
        raise URLWanted(
            "the MCP server wants a person to open %s: %s - nothing here opens pages; open it "
            "yourself if you trust the server, and make the call again"
            % (quote_text(params.get("url") or ""), quote_text(message))
        )
    if params.get("mode", "form") != "form":
        raise ClawError("a question of mode %s" % quote_text(params["mode"]))
    schema = params.get("requestedSchema")
    properties = schema.get("properties", {}) if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or len(properties) > MAX_FIELDS:
        raise ClawError("requestedSchema: expected an object of at most %d fields" % MAX_FIELDS)
    required = schema.get("required")
    return message, properties, required if isinstance(required, list) else []

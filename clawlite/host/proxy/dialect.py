"""What both APIs of the proxy have in common: a tool, a call, and the texts of messages.

A *dialect* (openai.py, anthropic.py) is a module-level object without state that reads and changes
bodies of its API, as plain JSON values.  Its methods:

    own_names(body)              names of the runner's own tools
    in_context(body, text)          the body with *text* at the end of its system prompt
    offer(body, tools)         the body that goes upstream, with *tools* beside the runner's
    calls(answer, loads)         its tool calls, list of ``Call``
    is_cut(answer)               it ended at its maximum length
    is_text(answer)              it is whole, and has text alone
    with_calls(answer, calls)    the same with [(name, arguments), ...] in place of its text
    complete(answer)             calls without an id get one
    report(answer)               the part of it that reports a failure, or None
    with_round(answer, calls, results)   messages of one hidden round
    relax(body, names)         after such a round nothing forces tools any more
    show(answer, body, usage)   what the runner gets, whole
    stream(answer, body)         the same as server-sent events
    text(answer), usage(answer), tokens(usage)   text, usage, (tokens read, written)
    event(value)                 of a stream's event: (text that it adds, usage or None)
    anchors(messages)            [(index, ids of calls, text, what the person said), ...]
    problem(status, message, code)   the body of an error
"""

import json
import secrets
from typing import NamedTuple

from clawlite.core.base.errors import ClawError, ProviderError
from clawlite.core.providers.opaque import FIELDS as OPAQUE

OWNER = "clawlite_owner"  # of an answer and of a hidden message: ``Provider.key`` of who wrote it
MOST_COUNTED = 1 << 30  # tokens of one answer: a provider that says more is not believed
MAX_CALLS = 16  # of one answer, as in an agent's own turns
_THOUGHTS = ("thinking", "redacted_thinking")  # blocks with a signature of their server
PIECE = 256  # characters of one event of a stream that is made here


class Tool(NamedTuple):
    """A managed tool.

    name         "service.tool", as grants, history and audit say it
    alias        as models see it: APIs refuse dots
    description, schema   for the model; schema: JSON Schema of an object
    service      its service's name
    """

    name: str
    alias: str
    description: str
    schema: dict
    service: str


def parameters(tool: Tool) -> dict:
    """Return the schema of *tool* as servers want it: an object that has ``properties``, also when
    it takes nothing.
    """
    return {"properties": {}, **(tool.schema or {}), "type": "object"}


class Call(NamedTuple):
    """A tool call of an answer; ``arguments`` is None when *raw* is no JSON object."""

    id: str
    name: str
    arguments: dict | None


class Refused(ClawError):
    """A request that is answered with an error.

    status  of HTTP;  kind: the API's code for it, or ""
    """

    def __init__(self, status: int, message: str, hint: str = "", kind: str = ""):
        super().__init__(message, hint)
        self.status, self.kind = status, kind


def text_of(content) -> str:
    """Return the text of a message's content: a string, or a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(
        part["text"]
        for part in content
        if isinstance(part, dict) and isinstance(part.get("text"), str)
    )


def for_reader(messages, reader: str):
    """Return the messages of a request as the provider with the key *reader* gets them: without the
    names of their owners, and hidden ones of another without what only that one understands.
    """
    if not isinstance(messages, list):
        return messages
    return [
        _without_opaque(one, one.get(OWNER) != reader)
        if isinstance(one, dict) and OWNER in one
        else one
        for one in messages
    ]


def _without_opaque(message: dict, is_others: bool) -> dict:
    made = {key: value for key, value in message.items() if key != OWNER}
    if not is_others:
        return made
    made = {key: value for key, value in made.items() if key not in OPAQUE}
    if isinstance(made.get("content"), list):
        made["content"] = [one for one in made["content"] if one.get("type") not in _THOUGHTS]
    if made.get("tool_calls"):
        made["tool_calls"] = [
            {key: value for key, value in call.items() if key not in OPAQUE}
            for call in made["tool_calls"]
        ]
    return made


def json_text(value) -> str:
    """Return *value* as compact JSON, beyond ASCII unescaped."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def event_bytes(value, name: str = "") -> bytes:
    """Return one server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json_text(value)}\n\n".encode("utf-8", "replace")


def pieces(text: str) -> list[str]:
    return [text[at : at + PIECE] for at in range(0, len(text), PIECE)]


def add_usage(total, more):
    """Return two usages added: numbers are added, objects member by member; else the later one."""
    if isinstance(total, dict) and isinstance(more, dict):
        return {
            key: add_usage(total.get(key), more.get(key)) for key in dict.fromkeys([*total, *more])
        }
    if type(total) is int and type(more) is int:
        return total + more
    return total if more is None else more


def number(value) -> int:
    """Return the number of tokens *value* of a usage; 0 for what is none.  Some write 10.0."""
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 < value < MOST_COUNTED else 0


def new_id() -> str:
    """Return an id for a call: nine letters and digits, which every server takes."""
    return "c" + secrets.token_hex(4)


def answer_error(what: str) -> ProviderError:
    return ProviderError(f"the provider's answer: {what}")


def objects(value, what: str) -> list:
    """Return the list of objects *value*; none where it is None.  Raises ``ProviderError``."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise answer_error(f"expected {what} to be a list of objects")
    return value

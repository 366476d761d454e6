"""What an answer has for its own server alone: signatures of thoughts, and reasoning that is to
come back.  It is kept beside the answer's tool calls, and sent back to that server as it came.

Kept as (place, JSON text).  For OpenAI's API a place is the number of a call, or -1 for the
message, and the text a member of that object; for Anthropic's, a block before call number *place*.
Loaded when a server sends such a thing, and to write it into a request.
"""

from clawlite.core.base.dialect import const
from clawlite.core.base.text import decode_utf8

# Gemini's thought signatures (extra_content), the reasoning of DeepSeek, Kimi and others, details
# of OpenRouter, signatures behind LiteLLM
FIELDS = (
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "thinking_blocks",
    "extra_content",
    "provider_specific_fields",
)
MOST = 16384  # bytes of one answer that are kept
# {field: what stands for it where its server demands one, and another server wrote the answer}
STANDING = {
    "reasoning_content": '"reasoning_content":"(not known)"',
    "extra_content": '"extra_content":{"google":{"thought_signature":'
    '"skip_thought_signature_validator"}}',
}
_PLACE = const(0)
_FIELD = const(1)
_VALUE = const(2)


class Kept:
    """What is kept of one answer while it arrives.

    dumps  a runtime's ``jsontext.dumps``
    """

    def __init__(self, dumps):
        self._dumps = dumps
        self._entries = []  # [place, field, value], value a bytearray, a dict or a list
        self._left = MOST

    def keep(self, place: int, field: str, value) -> bool:
        """Keep a field, or a piece of one; return False when it does not fit any more.

        value  str, which is added to the one before; dict; list, whose items are added
        """
        size = len(value.encode()) if isinstance(value, str) else len(self._dumps(value))
        if size > self._left:
            self._left = 0  # pieces that come later would not continue the text
            return False
        self._left -= size
        for entry in self._entries:
            if entry[_PLACE] == place and entry[_FIELD] == field:
                if isinstance(value, str) and isinstance(entry[_VALUE], bytearray):
                    entry[_VALUE].extend(value.encode())
                elif isinstance(value, list) and isinstance(entry[_VALUE], list):
                    entry[_VALUE].extend(value)
                return True
        value = bytearray(value.encode()) if isinstance(value, str) else value
        self._entries.append([place, field, value])
        return True

    def take(self, place: int, field: str, value):
        """Keep *field* of an answer of OpenAI's API, if it is one of ``FIELDS``."""
        # an empty reasoning_content is demanded back, too
        if field in FIELDS and (value or field == FIELDS[0]):
            if isinstance(value, (str, dict, list)):
                self.keep(place, field, value)

    def think(self, place: int, index, part: dict):
        """Keep a signed thought of Anthropic's, or a piece of one: whole, or not at all."""
        for field in ("thinking", "signature"):
            value = part.get(field)
            if isinstance(value, str) and not self.keep(place, "%s %s" % (field, index), value):
                self._entries = [
                    entry for entry in self._entries if entry[_FIELD] != "thinking %s" % index
                ]

    def seal(self) -> list:
        """Return all of it as [(place, JSON text), ...]."""
        sealed, fields = [], [entry[_FIELD] for entry in self._entries]
        is_twice = "reasoning_content" in fields or "reasoning_details" in fields
        for place, field, value in self._entries:
            if field == "redacted_thinking":
                sealed += [(place, self._dumps(block)) for block in value]
            elif field.startswith("thinking "):
                block = {"type": "thinking", "thinking": decode_utf8(value)}
                for _, other, signature in self._entries:
                    if other == "signature" + field[8:]:
                        block["signature"] = decode_utf8(signature)
                sealed.append((place, self._dumps(block)))
            elif not field.startswith("signature ") and (field != "reasoning" or not is_twice):
                if isinstance(value, bytearray):
                    value = decode_utf8(value)
                elif isinstance(value, list):
                    value = _merge(value)
                sealed.append((place, '"%s":%s' % (field, self._dumps(value))))
        return sealed


def _merge(details: list) -> list:
    """Return OpenRouter's reasoning *details*, in which the pieces of one text are one."""
    merged = []
    for one in details:
        last = merged[-1] if merged else None
        if (
            isinstance(one, dict)
            and isinstance(last, dict)
            and one.get("index") is not None
            and [one.get("index"), one.get("type")] == [last.get("index"), last.get("type")]
        ):
            for name in one:
                old, new = last.get(name), one[name]
                is_piece = name in ("text", "summary") and isinstance(old, str)
                if new is not None:
                    last[name] = old + new if is_piece and isinstance(new, str) else new
        else:
            merged.append(one)
    return merged


def members(codec, message, place: int, demanded: str) -> str:
    """Return what belongs to *place* of *message* in a request, each member behind a comma.

    demanded  the field that some servers want at each such place, once they have said so
    """
    text, has = "", False
    for at, member in message.opaque:
        name = member[1 : member.find('"', 1)]
        if at == place and codec.change(name) != "":
            text += "," + member
            has = has or name == demanded
    return text if has or codec.change(demanded) != "all" else text + "," + STANDING[demanded]


def blocks_of(codec, message) -> list:
    """Return (place, block) of each block in a request that is the server's own, by Anthropic's
    API.
    """
    return [] if codec.change("thinking") == "" else message.opaque

"""Types that several CKP primitives share.

1. A Struct here is exactly one object of the 0.3.0 JSON Schemas; ``Strict`` is
   "additionalProperties": false.
2. ``None`` means absent: an explicit null is refused by ``walk``, as the schemas do.
3. What a field needs beside it stands in ``needs`` as rows, for ``walk`` and for schemas.
4. A rule that a type cannot say is a static ``check_rules(value, report)``: *value* is the raw
   mapping, whose fields may still be of a wrong type; ``report(path, message, ...)`` adds a
   problem.
"""

import re
from typing import Annotated, Any, ClassVar, NamedTuple

from msgspec import UNSET, Meta, Struct

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")  # the name of one


class Need(NamedTuple):
    """A field that must be there where the field *beside* has *value*; UNSET: where it is absent.

    why, hint  of the problem
    """

    field: str
    beside: str
    value: object
    why: str
    hint: str

    def is_unmet(self, fields: dict) -> bool:
        found = fields.get(self.beside, UNSET)
        return self.field not in fields and type(found) is type(self.value) and found == self.value


class Strict(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """An object that has no other fields than these."""

    needs: ClassVar[tuple] = ()


def text_like(pattern: str, expected: str, example: str = "", suggest=None):
    """Return the Meta of a string that must match *pattern* whole; *suggest(text)* gives a hint
    or "".
    """
    return Meta(
        pattern=pattern, extra={"expected": expected, "example": example, "suggest": suggest}
    )


def suggest_name(text: str) -> str:
    """Return the kebab-case spelling of *text* as a hint, when there is one."""
    name = re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[:63]
    return f'did you mean "{name}"?' if name and name != text else ""


def suggest_uri(text: str) -> str:
    """Return the URI that *text* lacks the beginning of, as a hint."""
    if text.lower() in ("reflex", "replay"):
        return f'did you mean "builtin:{text.lower()}"?'
    return (
        f'did you mean "https://{text}"?'
        if re.fullmatch(r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+(/[^\s]*)?", text)
        else ""
    )


Text = Annotated[str, Meta(min_length=1)]
Name = Annotated[
    str,
    text_like(
        r"^[a-zA-Z0-9][a-zA-Z0-9-]{0,62}\Z",
        "1 to 63 letters, digits and hyphens, no hyphen first",
        suggest=suggest_name,
    ),
]
SemVer = Annotated[
    str, text_like(r"^[0-9]+\.[0-9]+\.[0-9]+(-.+)?\Z", 'a version such as "1.0.0"', "1.0.0")
]
ProtocolVersion = Annotated[
    str, text_like(r"^0\.[23]\.[0-9]+\Z", 'a protocol version, "0.2.x" or "0.3.x"', "0.3.0")
]
Duration = Annotated[
    str, text_like(r"^[0-9]+[smhd]\Z", 'a whole number with s, m, h or d, such as "30d"', "30d")
]
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
URI = Annotated[
    str,
    text_like(
        r"^[A-Za-z][A-Za-z0-9+.-]*:[^\s]+\Z",
        'a URI such as "https://api.example.com/v1"',
        suggest=suggest_uri,
    ),
]
Count = Annotated[int, Meta(ge=1)]
Amount = Annotated[int, Meta(ge=0)]
Ratio = Annotated[float, Meta(ge=0, le=1)]
Money = Annotated[float, Meta(ge=0)]


class Metadata(Struct, omit_defaults=True):
    """``metadata`` of every document.  The schema admits more fields; they are ignored, near
    misses are refused.
    """

    name: Name
    version: SemVer | None = None
    description: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, Any] | None = None


def seconds_of(duration: str) -> int:
    """Return the seconds of a ``Duration``; at least 1."""
    return max(1, int(duration[:-1]) * _SECONDS[duration[-1]])

"""The secrets that an agent knows, in the forms in which they leave it.

    as they are, hexadecimal in both cases, rot13, base64 at its three alignments in both alphabets; each of them backwards too
    in capitals, in small letters, percent-encoded, as JSON and HTML escape it
    all of them with white space or line ends in between

A value of fewer than six bytes is a word like any other: it is not looked for.
"""
from binascii import b2a_base64, hexlify

_LEAST = 6
_ESCAPED = (b"\\n", b"\\r", b"\\t", b"\\/")
_PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"


class Known:
    """What is looked for.

    forms  list of bytes, without white space
    """

    def __init__(self):
        self.forms = []

    def learn(self, value: str):
        """Look for *value* from now on."""
        data = value.encode()
        if len(data) < _LEAST:
            return
        plain, turned = _spelled(value, data), _coded(data)
        for form in plain + turned + [bytes(reversed(form)) for form in turned] + ["".join(reversed(value)).encode()]:
            form = _flat(form)
            if len(form) >= _LEAST and form not in self.forms:
                self.forms.append(form)

    def find(self, data: bytes, found: list):
        """Add (start, end, "known") to *found* for each known secret in *data*.  Cost: a search a form, some 15 us in 64 KB."""
        if not self.forms:
            return
        flat = _flat(data)
        spots = []
        for form in self.forms:
            pos = flat.find(form)
            while pos >= 0:
                spots.append((pos, pos + len(form) - 1))
                pos = flat.find(form, pos + len(form))
        if spots:
            places = _places(data)
            for first, last in spots:
                found.append((places[first], places[last] + 1, "known"))


def _flat(data: bytes) -> bytes:
    """Return *data* without white space, also where that is escaped as in JSON."""
    data = b"".join(data.split())
    if b"\\" in data:
        for escape in _ESCAPED:
            data = data.replace(escape, b"/" if escape == b"\\/" else b"")
    return data


def _places(data: bytes) -> list:
    """Return where each byte of the flat text stands in *data*."""
    places = []
    pos = 0
    while pos < len(data):
        pair = data[pos:pos + 2]
        if pair in _ESCAPED:
            if pair == b"\\/":
                places.append(pos + 1)
            pos += 2
        else:
            if pair[:1].strip():
                places.append(pos)
            pos += 1
    return places


def _spelled(value: str, data: bytes) -> list:
    """Return the forms that go byte by byte: in other case, percent-encoded, as JSON and HTML escape it."""
    forms = [value.upper().encode(), value.lower().encode(), data.replace(b"\\", b"\\\\").replace(b'"', b'\\"')]
    for escape in (b"%%%02X", b"%%%02x"):
        forms.append(b"".join([escape % b for b in data]))
        forms.append(b"".join([bytes([b]) if b in _PLAIN else escape % b for b in data]))
    for escape in ("\\u%04x", "\\u%04X", "&#%d;", "&#x%x;"):
        forms.append("".join([escape % ord(c) for c in value]).encode())
    return forms


def _coded(data: bytes) -> list:
    """Return the forms that may stand backwards too: as they are, hexadecimal, rot13, base64."""
    digits = hexlify(data)
    forms = [data, digits, digits.upper(), bytes([_turned(b) for b in data])]
    for shift in range(3):
        # What stands in the first group, and in a last one that is not full, depends on the neighbours.
        coded = b2a_base64(b"\0" * shift + data).strip()[4 if shift else 0:(shift + len(data)) // 3 * 4]
        forms.append(coded)
        forms.append(coded.replace(b"+", b"-").replace(b"/", b"_"))
    return forms


def _turned(byte: int) -> int:
    for first in (65, 97):
        if first <= byte < first + 26:
            return first + (byte - first + 13) % 26
    return byte

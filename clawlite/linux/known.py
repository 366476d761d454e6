"""The secrets that an agent knows, in the forms in which they leave it.

    as they are; percent-encoded; in JSON; hexadecimal, in both cases; base64, at its three alignments, in both alphabets; rot13;
    each of them backwards, and each of them with white space in it

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
        for form in _forms(data) + ["".join(reversed(value)).encode()]:
            for one in (_flat(form), bytes(reversed(_flat(form)))):
                if len(one) >= _LEAST and one not in self.forms:
                    self.forms.append(one)

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


def _forms(data: bytes) -> list:
    digits = hexlify(data)
    forms = [data, digits, digits.upper(), b"".join([b"%%%02X" % b for b in data]), b"".join([b"%%%02x" % b for b in data])]
    for escape in (b"%%%02X", b"%%%02x"):
        forms.append(b"".join([bytes([b]) if b in _PLAIN else escape % b for b in data]))
    forms.append(data.replace(b"\\", b"\\\\").replace(b'"', b'\\"'))
    forms.append(bytes([_turned(b) for b in data]))
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

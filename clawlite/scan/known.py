"""The secrets that an agent knows, in the forms in which they leave it.

    as they are, hexadecimal in both cases, rot13, base64 at its three alignments in both alphabets;
    each of them backwards too in capitals, in small letters, percent-encoded, as JSON, HTML and a
    shell (``\\x41``) escape it base32 at its five alignments, in capitals and small letters
    all of them with white space, line ends or invisible characters in between

A value of fewer than six bytes is a word like any other: it is not looked for.
"""

from binascii import b2a_base64, hexlify

_LEAST = 6
_WHITE = (b" ", b"\n", b"\r", b"\t", b"\x0b", b"\x0c")
# Soft hyphen, zero-width space and joiners, marks of direction, word joiner, byte order mark:
# nobody sees them.
_UNSEEN = (
    b"\xc2\xad",
    b"\xe2\x80\x8b",
    b"\xe2\x80\x8c",
    b"\xe2\x80\x8d",
    b"\xe2\x80\x8e",
    b"\xe2\x80\x8f",
    b"\xe2\x81\xa0",
    b"\xef\xbb\xbf",
)
_BASE32 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_ESCAPED = (b"\\n", b"\\r", b"\\t", b"\\/")
_PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"


class Known:
    """What is looked for.

    roomy   bool: the forms are kept, eighty times the value; else, on a board, they are made for
            each text
    values  list of (str, bytes)
    forms   list of bytes, without white space
    """

    def __init__(self, roomy: bool = True):
        self._roomy = roomy
        self.values = []
        self.forms = []

    def learn(self, value: str):
        """Look for *value* from now on."""
        data = value.encode()
        if len(data) < _LEAST or (value, data) in self.values:
            return
        self.values.append((value, data))
        if self._roomy:
            for form in forms(value, data):
                if form not in self.forms:
                    self.forms.append(form)

    def find(self, data: bytes, found: list):
        """Add (start, end, "known") to *found* for each known secret in *data*.

        Cost  a search a form, some 15 us in 64 KB on CPython; two copies of *data*.
        """
        if not self.values:
            return
        flat = _flat(data)
        spots = []
        if self._roomy:
            for form in self.forms:
                _spot(flat, form, spots)
        else:
            for value, own in self.values:
                # no form is shorter: base64 loses at most a group at either end
                if len(flat) + 4 >= len(own):
                    for form in forms(value, own):
                        _spot(flat, form, spots)
        if spots:
            places = _places(data, spots)
            for first, last in spots:
                found.append((places[first], places[last] + 1, "known"))


def forms(value: str, data: bytes):
    """Yield each form of *value*, *data* in bytes, without white space; some of them twice."""
    for form in _spelled(value, data):
        yield from _long(form)
    for form in _base32(data):
        yield from _long(form)
        yield from _long(form.lower())
    for form in _coded(data):
        yield from _long(form)
        yield from _long(bytes(reversed(form)))
    yield from _long("".join(reversed(value)).encode())


def _long(form: bytes):
    form = _flat(form)
    if len(form) >= _LEAST:
        yield form


def _spot(flat: bytes, form: bytes, spots: list):
    pos = flat.find(form)
    while pos >= 0:
        spots.append((pos, pos + len(form) - 1))
        pos = flat.find(form, pos + len(form))


def _flat(data: bytes) -> bytes:
    """Return *data* without white space, also where that is escaped as in JSON, and without what
    nobody sees.
    """
    for white in _WHITE + _UNSEEN:
        if white in data:
            data = data.replace(white, b"")
    if 92 in data:
        for escape in _ESCAPED:
            data = data.replace(escape, b"/" if escape == b"\\/" else b"")
    return data


def _places(data: bytes, spots: list) -> dict:
    """Return {place in the flat text: place in *data*} for all of *spots*."""
    wanted = {}
    for first, last in spots:
        wanted[first] = wanted[last] = 0
    pos = flat = 0
    while pos < len(data):
        pair = data[pos : pos + 2]
        if pair == _UNSEEN[0] or data[pos : pos + 3] in _UNSEEN:
            pos += 2 if pair == _UNSEEN[0] else 3
            continue
        escaped = pair in _ESCAPED
        if pair == b"\\/" or not escaped and pair[:1] not in _WHITE:
            if flat in wanted:
                wanted[flat] = pos + (1 if escaped else 0)
            flat += 1
        pos += 2 if escaped else 1
    return wanted


def _spelled(value: str, data: bytes):
    """Yield the forms that go byte by byte: in other case, percent-encoded, as JSON and HTML
    escape it.
    """
    yield value.upper().encode()
    yield value.lower().encode()
    yield data.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    for escape in ("%%%02X", "%%%02x", "\\x%02X", "\\x%02x"):
        yield "".join([escape % b for b in data]).encode()
        yield "".join([chr(b) if b in _PLAIN else escape % b for b in data]).encode()
    for escape in ("\\u%04x", "\\u%04X", "&#%d;", "&#x%x;"):
        yield "".join([escape % ord(c) for c in value]).encode()


def _base32(data: bytes):
    """Yield the five forms of *data* in base32, without the letters that its neighbours have a
    part in.
    """
    for shift in range(5):
        coded, bits, count = bytearray(), 0, 0
        for byte in b"\0" * shift + data:
            bits, count = bits << 8 | byte, count + 8
            while count >= 5:
                count -= 5
                coded.append(_BASE32[bits >> count])
                bits &= (1 << count) - 1
        yield bytes(coded[(8 * shift + 4) // 5 :])


def _coded(data: bytes):
    """Yield the forms that may stand backwards too: as they are, hexadecimal, rot13, base64."""
    digits = hexlify(data)
    yield data
    yield digits
    yield digits.upper()
    yield bytes([_turned(b) for b in data])
    for shift in range(3):
        # What stands in the first group, and in a last one that is not full, depends on the
        # neighbours.
        coded = b2a_base64(b"\0" * shift + data).strip()[
            4 if shift else 0 : (shift + len(data)) // 3 * 4
        ]
        yield coded
        yield coded.replace(b"+", b"-").replace(b"/", b"_")


def _turned(byte: int) -> int:
    for first in (65, 97):
        if first <= byte < first + 26:
            return first + (byte - first + 13) % 26
    return byte

"""Finds the secrets that an agent knows in a text, in these forms:

    as they are, hexadecimal in both cases, rot13, base64 at its three alignments in both alphabets;
    each of them also backwards
    in capitals, in small letters, percent-encoded, escaped as by JSON, HTML and a shell (``\\x41``)
    base32 at its five alignments, in capitals and small letters
    base85 at its four alignments, in the alphabets of Ascii85 and of RFC 1924
    all of them with white space, line ends or invisible characters in between, or with some
    letters percent-encoded or escaped as by JSON or a shell

A value of fewer than six bytes is not looked for: it could be an ordinary word.
"""

from binascii import b2a_base64, hexlify

_LEAST = 6
_is_ascii = getattr(bytes, "isascii", None)  # MicroPython has none
_WHITE = (b" ", b"\n", b"\r", b"\t", b"\x0b", b"\x0c")
# The first two bytes of invisible characters: soft hyphen, joiners, marks of direction, fillers,
# variation selectors, tags.  core/base/escapes.py has the full list.
_PAIRS = (
    b"\xc2\xad\xcd\x8f\xd8\x80\xd8\x81\xd8\x82\xd8\x83\xd8\x84\xd8\x85\xd8\x9c\xdb\x9d\xdc\x8f"
    b"\xe0\xa2\xe0\xa3\xe1\x85\xe1\x9e\xe1\xa0\xe2\x80\xe2\x81\xe2\xa0\xe3\x85\xef\xb8\xef\xbb"
    b"\xef\xbe\xef\xbf\xf0\x91\xf0\x93\xf0\x9b\xf0\x9d\xf3\xa0"
)
_BASE32 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_BASE85 = (
    b"!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstu",
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~",
)
_DIGITS = b"0123456789abcdef"
_LETTERS = (b"\\u00", b"\\x", b"%")  # prefixes of the two digits of an escaped letter
_ESCAPED = (b"\\n", b"\\r", b"\\t", b"\\/")
_PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"


class Known:
    """The known secrets.

    roomy   bool: the forms stay in memory, eighty times the size of the value.  Else, on a board,
            they are made for each text
    values  list of (str, bytes)
    forms   list of bytes, without white space
    """

    def __init__(self, roomy: bool = True):
        self._roomy = roomy
        self._letters = {}  # by their two hexadecimal digits
        for code in range(33, 127) if roomy else ():
            for form in ("%02x", "%02X"):
                self._letters[(form % code).encode()] = bytes([code])
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

        Cost  one search per form, some 15 us in 64 KB on CPython; two copies of *data*.
        """
        if not self.values:
            return
        self._find(data, found)
        for before in _LETTERS:
            if before in data:
                self._find_escaped(data, before, found)

    def _find_escaped(self, data: bytes, before: bytes, found: list):
        """Add to *found* the secrets in *data* that have some letters escaped with *before*."""
        plain, cuts = _unescape(data, before, self._letters)
        flat = _flat(plain) if cuts else b""
        if any([_flat(own) in flat for _, own in self.values]):
            start, more = len(found), len(before) + 1
            self._find(plain, found)
            for at in range(start, len(found)):
                first, end, kind = found[at]
                first += more * _before(cuts, first)
                found[at] = first, end + more * _before(cuts, end), kind

    def _find(self, data: bytes, found: list):
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
    for form in _spell(value, data):
        yield from _long(form)
    for form in _base32(data):
        yield from _long(form)
        yield from _long(form.lower())
    for form in _base85(data):
        yield from _long(form)
        yield from _long(form.replace(b"\\", b"\\\\").replace(b'"', b'\\"'))  # in JSON
    for form in _encode(data):
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
    """Return *data* without white space, plain or escaped as in JSON, and without invisible
    characters.
    """
    for white in _WHITE:
        if white in data:
            data = data.replace(white, b"")
    if _is_ascii is None or not _is_ascii(data):
        for at in range(0, len(_PAIRS), 2):
            if _PAIRS[at : at + 2] in data:
                data = _without(data, _PAIRS[at : at + 2])
    if 92 in data:
        for escape in _ESCAPED:
            data = data.replace(escape, b"/" if escape == b"\\/" else b"")
    return data


def _letter(digits: bytes) -> bytes:
    """Return the printable ASCII letter with these two hexadecimal *digits*, b"" for others."""
    found = digits.lower()
    if len(found) < 2 or found[:1] not in _DIGITS or found[1:] not in _DIGITS:
        return b""
    letter = int(str(found, "utf-8"), 16)
    return bytes([letter]) if 32 < letter < 127 else b""


def _unescape(data: bytes, before: bytes, letters: dict) -> tuple:
    """Return (*data* with its escaped letters decoded, positions of these letters in the result).
    An escaped letter is *before* and two digits.

    letters  {two digits: letter}, or {} when memory is short
    """
    parts = data.split(before)
    kept, cuts, size = [parts[0]], [], len(parts[0])
    for at in range(1, len(parts)):
        part = parts[at]
        digits = part[:2]
        one = letters.get(digits) if letters else _letter(digits)
        if one:
            cuts.append(size)
            part = part[2:]
        else:
            one = before
        kept.append(one)
        kept.append(part)
        size += len(one) + len(part)
    return b"".join(kept), cuts


def _before(cuts: list, place: int) -> int:
    """Return how many of *cuts*, which are in order, lie before *place*."""
    first, end = 0, len(cuts)
    while first < end:
        middle = (first + end) // 2
        if cuts[middle] < place:
            first = middle + 1
        else:
            end = middle
    return first


def _without(data: bytes, pair: bytes) -> bytes:
    """Return *data* without the invisible characters that begin with *pair*."""
    kept, start, pos = bytearray(), 0, data.find(pair)
    while pos >= 0:
        size = _unseen(data, pos)
        if size:
            kept.extend(data[start:pos])
            start = pos + size
        pos = data.find(pair, pos + 2)
    kept.extend(data[start:])
    return bytes(kept)


def _unseen(data: bytes, at: int) -> int:
    """Return how many bytes the character at *at* has when it is invisible, else 0."""
    if data[at] < 0xC2 or data[at : at + 2] not in _PAIRS:
        return 0
    from clawlite.core.base.escapes import is_unseen

    size = 2 if data[at] < 0xE0 else 3 if data[at] < 0xF0 else 4
    if at + size > len(data):
        return 0
    c = data[at] & 0x3F >> size - 1
    for more in range(1, size):
        c = c << 6 | data[at + more] & 0x3F
    return size if is_unseen(c) else 0


def _places(data: bytes, spots: list) -> dict:
    """Return {place in the flat text: place in *data*} for all of *spots*."""
    wanted = {}
    for first, last in spots:
        wanted[first] = wanted[last] = 0
    pos = flat = 0
    while pos < len(data):
        pair, size = data[pos : pos + 2], _unseen(data, pos)
        if size:
            pos += size
            continue
        escaped = pair in _ESCAPED
        if pair == b"\\/" or not escaped and pair[:1] not in _WHITE:
            if flat in wanted:
                wanted[flat] = pos + (1 if escaped else 0)
            flat += 1
        pos += 2 if escaped else 1
    return wanted


def _spell(value: str, data: bytes):
    """Yield the forms that are made byte by byte: in other case, percent-encoded, escaped as by
    JSON and HTML.
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
    """Yield the five forms of *data* in base32, without the letters that also depend on
    neighbouring bytes.
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


def _base85(data: bytes):
    """Yield the four forms of *data* in each alphabet of base85.  They have only the groups of four
    bytes that lie within the value.
    """
    for shift in range(4):
        shifted = b"\0" * shift + data
        for letters in _BASE85:
            coded = bytearray()
            for at in range(4 if shift else 0, len(shifted) - 3, 4):
                number, group = int.from_bytes(shifted[at : at + 4], "big"), bytearray(5)
                for place in range(4, -1, -1):
                    group[place] = letters[number % 85]
                    number //= 85
                coded.extend(group)
            yield bytes(coded)


def _encode(data: bytes):
    """Yield the forms that are also looked for backwards: plain, hexadecimal, rot13, base64."""
    digits = hexlify(data)
    yield data
    yield digits
    yield digits.upper()
    yield bytes([_rot13(b) for b in data])
    for shift in range(3):
        # The first group, and a last one that is not full, also depend on the neighbouring bytes.
        coded = b2a_base64(b"\0" * shift + data).strip()[
            4 if shift else 0 : (shift + len(data)) // 3 * 4
        ]
        yield coded
        yield coded.replace(b"+", b"-").replace(b"/", b"_")


def _rot13(byte: int) -> int:
    for first in (65, 97):
        if first <= byte < first + 26:
            return first + (byte - first + 13) % 26
    return byte

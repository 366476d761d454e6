"""What secrets are made of: alphabets, and whether a word is what a machine made."""

DIGITS = b"0123456789"
LOWER = b"abcdefghijklmnopqrstuvwxyz"
UPPER = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
LETTERS = LOWER + UPPER
ALNUM = LETTERS + DIGITS
TOKEN = ALNUM + b"_-"
BASE64 = ALNUM + b"+/"
QUOTES = (b"'", b'"', b"`")
LONGEST = 512  # bytes of a token that are looked at, and go
_PLACEHOLDERS = (
    b"example",
    b"your",
    b"placeholder",
    b"arn:",
    b"....",
    b"****",
    b"<",
    b"${",
    b"{{",
    b"%(",
    b"redacted",
    b"changeme",
    b"dummy",
    b"insert",
    b"replace",
    b"process.env",
    b"os.environ",
    b"getenv",
)


def run(data: bytes, start: int, alphabet: bytes, most: int = LONGEST) -> int:
    """Return where the bytes of *alphabet* that begin at *start* end, at most *most* of them."""
    part = data[start : start + most]
    return start + len(part) - len(part.lstrip(alphabet))


def in_word(data: bytes, pos: int) -> bool:
    """Return whether a letter or digit stands before *pos*: not one that belongs to an escape."""
    if pos == 0 or data[pos - 1] not in ALNUM:
        return False
    return not (pos > 1 and data[pos - 2] == 92 and data[pos - 1] in b"nrtbf")


def is_random(value: bytes) -> bool:
    """Return whether *value* is what a machine made: digits or both cases, many different bytes,
    no word for a placeholder.
    """
    if len(set(value)) < 8 or not value.strip(LETTERS + b"_-") and not is_mixed(value):
        return False
    return not is_placeholder(value)


def is_mixed(value: bytes) -> bool:
    """Return whether letters change their case as no name in code does."""
    capitals = 0
    for byte in value:
        if 64 < byte < 91:
            capitals += 1
    return 5 * capitals >= len(value) > capitals


def changes(value: bytes) -> int:
    """Return how often a letter stands beside a digit in *value*."""
    count, last = 0, 0
    for byte in value[:64]:
        kind = 1 if byte in DIGITS else 2 if byte in LETTERS else 0
        if kind and last and kind != last:
            count += 1
        last = kind
    return count


def is_placeholder(value: bytes) -> bool:
    lower = value.lower()
    for word in _PLACEHOLDERS:
        if word in lower:
            return True
    return b"xxxx" in value or b"XXXX" in value


def each(data: bytes, anchor: bytes):
    """Return an iterable of the places of *anchor* in *data*.  Cost: one search where it has none,
    as most texts have.
    """
    # not "anchor in data": CPython asks first whether it is a number, and makes an error of that
    pos = data.find(anchor)
    return _each(data, anchor, pos) if pos >= 0 else ()


def _each(data: bytes, anchor: bytes, pos: int):
    while pos >= 0:
        yield pos
        pos = data.find(anchor, pos + len(anchor))

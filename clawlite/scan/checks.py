"""Input validation of policies (CKP 0.2.0, 5.8): size, NUL, white space and invisible characters,
encoding.
"""

from clawlite.core.base.errors import InvalidParams

SPACES = 256  # blanks, tabs or line feeds in a row that may hide something
# White space and marks that are invisible, or that change the direction of a line.
_UNSEEN = "\x0b\x0c\x85\xad\u180e\u200b\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2060\u2061\u2062\u2063\u2064\u2066\u2067\u2068\u2069\ufeff"  # noqa: E501


def check(checks: list, tool: str, arguments):
    """Raise ``InvalidParams`` (-32602) unless *arguments*, of a tool or a message, pass *checks*
    (``scan_config.ScanConfig``).
    """
    most, nul, white, charset = checks
    size = 0
    for text in _texts(arguments):
        try:
            size += len(text.encode())
        except ValueError:
            raise InvalidParams(
                "%s: an argument is no UTF-8 text: it has half of a surrogate pair" % tool,
                "",
                {"tool": tool},
            )
        if most is not None and size > most:
            raise InvalidParams(
                "%s: expected arguments of at most %d bytes, got more" % (tool, most),
                "send less at once",
                {"tool": tool, "max_size_bytes": most},
            )
        problem = (
            nul
            and "\0" in text
            and "a NUL byte"
            or white
            and _find_hidden(text)
            or charset == "ascii"
            and len(text.encode()) != len(text)
            and "a character that is not ASCII"
        )
        if problem:
            raise InvalidParams(
                "%s: an argument holds %s" % (tool, problem), "", {"tool": tool, "found": problem}
            )


def _texts(value):
    """Yield every text in a JSON value, including names."""
    waiting = [value]  # a list instead of recursion: a board's stack is short
    for value in waiting:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            for key in value:
                yield key
                waiting.append(value[key])
        elif isinstance(value, list):
            waiting.extend(value)


def _find_hidden(text: str) -> str:
    """Return a description of the hidden white space or invisible character in *text*, or ""."""
    for space in " \n\t":
        if space * SPACES in text:
            return "%d spaces or line ends in one piece" % SPACES
    for mark in _UNSEEN:
        if mark in text:
            return "the invisible character U+%04X" % ord(mark)
    if len(text.encode()) != len(text):
        for c in text:
            if 0xE0000 <= ord(c) < 0xE0080:
                return "the invisible character U+%04X" % ord(c)
    return ""

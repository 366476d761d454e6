"""Text for a person's terminal, without characters that control the terminal or hide in it.

A model's text must not move the cursor, forge a record for the operator (U+001E, RFC 7464) or
disguise a question.  What a stranger chose (a name, an argument, an id, an address, a title, the
text of an error) stands on one line: ``escape_line`` is the one way to write it.  Texts that may
have lines (what a model says, what a tool returned) go through ``printable``.
tests/test_drawing.py looks at everything that is drawn.
"""

# DEL, and the first UTF-8 byte of every character that escapes.py replaces, as by ``\u200b``.
_LEADS = (
    b"\x7f\xc2\xcc\xcd\xd2\xd6\xd7\xd8\xd9\xda\xdb\xdc\xdd\xde\xdf\xe0\xe1\xe2\xe3\xea\xed\xee\xef"
    b"\xf0\xf3\xf4"
)
_LEAST = 12  # characters of a shortened text that are shown, however few there may be


def printable(data: bytes) -> bytes:
    """Return the UTF-8 text *data*, each character that cannot be seen replaced by its escape:
    ``\\x1b``, ``\\u202e``, ``\\U000e0041``.

    Replaced are control characters (except line feed and tab), direction marks, invisible
    characters, those for private use, and marks that are stacked higher than any script needs.

    Two invisible characters stay where they shape the emoji before them: U+200D and U+FE0F.
    Cost    one step per byte.  It works on bytes, because MicroPython interns every character that
            a loop over text visits
    """
    for b in data:
        if b < 32 and b != 10 and b != 9 or b in _LEADS:
            from clawlite.core.base.escapes import escape

            return escape(data)
    return data


def escape_line(text, most: int = 0) -> str:
    """Return *text*, which a stranger may have chosen, on one line: every character is visible.

    Beyond what ``printable`` replaces, escaped are line feeds, tabs, blanks beyond ASCII and the
    joiners of emoji, and a run of 4 or more blanks becomes ``<9 blanks>``.

    text  str, or a value that is written by ``str``
    most  int, characters at most, where that is 60 or more; a longer text is shown as its length
          between both of its ends; 0: all of it is shown
    """
    text = str(text)
    size = len(text)
    if not most or size <= most:
        line = _escape(text)
        if not most or len(line) <= most:
            return line
    about = "<... %d characters in all ...>" % size
    rest = max(_LEAST, most - len(about) - 2)
    tail = rest // 3
    rest -= tail
    return "%s %s %s" % (_escape(text[:rest])[:rest], about, _escape(text[-tail:])[-tail:])


def escape_name(text, most: int = 100) -> str:
    """Return *text* by ``escape_line`` as one word of a sentence or a table: in quotation marks
    when it has blanks or quotation marks, else it could pass for more than a name.  It never has
    two blanks in a row, as they are between columns.
    """
    line = escape_line(text, most).replace("  ", "<2 blanks>")
    if line and " " not in line and '"' not in line:
        return line
    return '"' + line.replace('"', '\\"') + '"'


def escape_ends(text: str) -> str:
    """Return *text*, a whole line of the project's own in which strangers' words may stand, as one
    line: blanks stay, so that the columns of a table do.
    """
    try:
        data = text.encode()
    except UnicodeError:  # halves of surrogate pairs
        data = text.encode("utf-8", "surrogatepass")
    return str(printable(data), "utf-8").replace("\n", "\\n").replace("\t", "\\t")


def join_lines(lines) -> str:
    """Return *lines* as a text in which each is one line, whatever strangers wrote into it."""
    return "\n".join([escape_ends(line) for line in lines])


def _escape(text: str) -> str:
    try:
        data = text.encode()
    except UnicodeError:  # halves of surrogate pairs
        data = text.encode("utf-8", "surrogatepass")
    has_run = b"    " in data
    for b in data:
        if b > 126 or b < 32 or has_run:
            from clawlite.core.base.escapes import escape

            return str(escape(data, True), "utf-8").replace("\n", "\\n").replace("\t", "\\t")
    return text

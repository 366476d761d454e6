"""YAML text to a Document: the YAML 1.2 core schema with one spelling of each boolean, on PyYAML's
event parser.

1. Only true and false are booleans: True, yes, on and the like are strings, and a field that wants
   a boolean says so. null, Null, NULL, ~ and nothing are null.  0777 is 777, 0o777 is 511, 1:30 and
   2026-01-01 are strings.
2. Duplicate keys, keys that are not strings, other tags, merge keys, a second document, .nan and
   .inf are refused.
3. Data are built from events here, never by PyYAML's composer: it recurses, and the C version has
   no limit of depth.
4. libyaml is only the fast way to a success.  When it objects, and where the two parsers differ
   (tabs; ":" and "?" in a plain text inside [] or {}), the Python parser decides, so that every
   machine gives the same answer and sentence.
"""

import re
import sys
from typing import NoReturn

from clawlite.host.base.document import (
    MAX_DEPTH,
    MAX_INT,
    MAX_VALUES,
    SHALLOWER,
    Document,
    Lines,
    decode,
    refuse,
    refuse_repeated,
)
from clawlite.host.base.problems import enquote

_QUOTE = "put it in quotes if it is text"
_WORDS = 1000  # at most so many texts of a file are shared by all values that are equal to them
# positions in an open collection (``_Builder.stack``)
_DATA, _KEY, _LINE, _IS_FLOW, _NUMBER, _MEMBERS = 0, 2, 3, 4, 5, 6
_MARK = 1  # the group of ``_VALUE``
_CORE = "tag:yaml.org,2002:"
_NULL = ("", "~", "null", "Null", "NULL")
_BOOL = {"true": True, "false": False}
_INT = re.compile(r"[-+]?[0-9]+\Z|0o[0-7]+\Z|0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_NOT_JSON = re.compile(r"[-+]?\.(inf|Inf|INF)\Z|\.(nan|NaN|NAN)\Z")
_SURROGATE = re.compile("[\ud800-\udfff]")
# named one by one: a set that is all but a few takes 4 ms to compile, this one 0.4
_CONTROL = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff\ufffe\uffff]")

# what PyYAML says -> what a person can act on
_SENTENCES = (
    ("'\\t'", "a tab stands where YAML wants spaces", "indent with spaces"),
    (
        "that cannot start any token",
        "this text starts with a character that means something in YAML",
        "put it in quotes",
    ),
    (
        "mapping values are not allowed",
        'a ":" is not allowed here',
        "check the indentation above, or put the text in quotes",
    ),
    ("could not find expected ':'", 'a key without ":"', 'write "key: value"'),
    (
        "<block end>",
        "the indentation does not fit the lines above",
        "indent what belongs together alike",
    ),
    ("expected ',' or ']'", 'expected "," or "]"', "close the list"),
    ("expected ',' or '}'", 'expected "," or "}"', "close the mapping"),
    (
        "expected the node content",
        "a value is missing here",
        "close what is open, or put the text in quotes",
    ),
    ("unexpected end of stream", "a quoted text or a bracket is not closed", "close it"),
    (
        "unknown escape character",
        "unknown escape in double quotes",
        'write "\\\\" for a backslash, or use single quotes',
    ),
    (
        "sequence entries are not allowed",
        'a "-" is not allowed here',
        "list items stand on lines of their own",
    ),
    (
        "<document start>",
        "there is text after the end of the document",
        "check the indentation of this line",
    ),
)
_VALUE = re.compile(r"""(?:: |- |\[)\s*(["']).*$""")


def read(source: bytes, file: str) -> Document:
    """Return the Document in *source*; *file* is its name in messages, ``*.json`` is read as strict
    JSON.

    Raises ManifestErrors with exactly one problem.  Bounds: those of ``document``.
    """
    if file.endswith(".json"):
        from clawlite.host.base import json_text

        return json_text.read(source, file)
    text = decode(source, file)
    bad = _CONTROL.search(text)
    if bad:
        refuse(
            file,
            text.count("\n", 0, bad.start()) + 1,
            f"a control character, U+{ord(bad.group()):04X}",
            hint="remove it, or write it as an escape in double quotes",
        )
    built = _build(text, file, max(MAX_VALUES, len(source)))
    return Document(file, source, built.data, built.lines, built.number)


def _build(text: str, file: str, most: int) -> "_Builder":
    import yaml

    fast = getattr(yaml, "CSafeLoader", None)
    if fast and "\t" not in text:
        try:
            return _Builder(file, most, yaml.YAMLError).build(yaml.parse(text, Loader=fast))
        except yaml.YAMLError:
            pass  # the Python parser below gives the sentence
    try:
        return _Builder(file, most).build(yaml.parse(text, Loader=yaml.SafeLoader))
    except yaml.YAMLError as e:
        _refuse_syntax(e, file, text)


def _find_unclosed(text: str, line: int) -> int:
    """Return the first line before *line* whose last value begins with a quotation mark that the
    line does not close, or 0.
    """
    for number, one in enumerate(text.split("\n")[: line - 1], 1):
        found = _VALUE.search(one)
        if found and (
            found[_MARK] == '"'
            and len(re.findall(r'(?<!\\)"', found.group())) % 2
            or found[_MARK] == "'"
            and found.group().count("'") % 2
        ):
            return number
    return 0


def _refuse_syntax(error, file: str, text: str):
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    said = getattr(error, "problem", None) or str(error)
    line = mark.line + 1 if mark else 0
    opened = _find_unclosed(text, line)
    begun = getattr(error, "context_mark", None)  # where the collection begins that this ends
    for words, sentence, hint in _SENTENCES:
        if words in said:
            if words == "<block end>" and not opened:
                sentence += _indentation(text.split("\n")[:line])
            elif words.startswith("expected ',' or") and begun:
                hint = f'close the "{text[begun.index]}" of line {begun.line + 1}'
            refuse(
                file,
                line,
                sentence,
                hint=f"close the quotation mark that begins on line {opened}" if opened else hint,
            )
    refuse(file, line, f"not YAML: {said}", hint="check this line, or put its text in quotes")


def _indentation(lines: list) -> str:
    """Return ": expected 4 spaces (line 3) or 2 (line 1), found 3" for the last of *lines*; ""
    where that is not what is wrong.
    """
    found, blocks = len(lines[-1]) - len(lines[-1].lstrip(" ")), {}
    # the blocks around it: each begins further left than those below
    for number in range(len(lines) - 1, 0, -1):
        text = lines[number - 1].lstrip(" ")
        width = len(lines[number - 1]) - len(text)
        for start in (width + 2, width) if text.startswith("- ") else (width,):
            if (
                text.strip()
                and not text.startswith("#")
                and start < min(blocks, default=len(lines[number - 1]))
            ):
                blocks[start] = number
    near = [
        min((start for start in blocks if start > found), default=None),
        max((start for start in blocks if start < found), default=None),
    ]
    near = [
        f"{start}{'' if index else ' spaces'} (line {blocks[start]})"
        for index, start in enumerate(start for start in near if start is not None)
    ]
    return f": expected {' or '.join(near)}, found {found}" if near and found not in blocks else ""


class _Builder:
    """Plain data from events, with a stack of open collections.

    data    the data of the whole document; its number in *lines* is *number*
    most    how many values the data may have after aliases are followed
    """

    def __init__(self, file: str, most: int, doubt: type = None):
        self.file = file
        self.doubt = doubt  # raised where the fast parser is not to be believed
        # [data, anchor, key, key line, flow, number, members] of the open collections
        self.stack = []
        self.anchors = {}  # name -> (data, number); None while it is open
        self.data, self.number = None, None
        self.lines = Lines()
        self._words: dict = {}  # the first texts: thousands of rules have some of them again
        self._left = self._most = most

    def build(self, events) -> "_Builder":
        steps = {}  # type of an event -> method, or None
        for event in events:
            kind = type(event)
            if kind not in steps:
                steps[kind] = getattr(self, "_" + kind.__name__, None)
            if steps[kind]:
                steps[kind](event, event.start_mark.line + 1)
        if self.number is None:
            self.number = self.lines.add(1)
        return self

    def _refuse(self, line: int, message: str, hint: str, path: tuple = ()) -> NoReturn:
        refuse(self.file, line, message, path, hint)

    def _DocumentStartEvent(self, event, line):
        if self.number is not None:
            hint = "one file holds one document; split the file"
            self._refuse(line, "a second document begins here", hint)

    def _MappingStartEvent(self, event, line):
        self._open({}, line, event, "map")

    def _SequenceStartEvent(self, event, line):
        self._open([], line, event, "seq")

    def _open(self, data, line: int, event, core_name: str) -> None:
        if event.tag not in (None, "!", _CORE + core_name):
            self._bad_tag(event, line)
        self._check_depth(len(self.stack) + 1, line)
        self._count(line)
        if event.anchor:
            self.anchors[event.anchor] = None
        number = self.lines.add(line)
        self.stack.append([data, event.anchor, None, 0, event.flow_style, number, []])

    def _MappingEndEvent(self, event, line):
        data, anchor, _, _, _, number, members = self.stack.pop()
        self.lines.close(number, members)
        if anchor:
            self.anchors[anchor] = data, number
        self._place(data, number)

    _SequenceEndEvent = _MappingEndEvent

    def _ScalarEvent(self, event, line):
        top = self.stack[-1] if self.stack else None
        if (
            self.doubt
            and event.implicit[0]
            and top
            and top[_IS_FLOW]
            and (":" in event.value or "?" in event.value)
        ):
            raise self.doubt
        # by an escape: "\\ud800"
        if not event.value.isascii() and _SURROGATE.search(event.value):
            hint = "write the whole character, or \\U and its eight digits"
            self._refuse(line, "half of a surrogate pair in a string", hint, self._path())
        data = self._scalar(event, line)
        if type(data) is str:
            known = self._words
            data = known.setdefault(data, data) if len(known) < _WORDS else known.get(data, data)
        if not top:
            line = 1 if data is None else line
        elif top[_KEY] is not None and event.value == "" and event.implicit[0]:
            line = top[_LINE]  # an empty value has no place; the two parsers invent different ones
        if not self._is_key():
            self._count(line)
        elif not event.anchor:
            top[_KEY], top[_LINE] = self._key(data, line, event), line
            return  # what has a number is a value, or has an anchor
        number = self.lines.add(line)
        if event.anchor:
            self.anchors[event.anchor] = data, number
        self._place(data, number, event)

    def _AliasEvent(self, event, line):
        if event.anchor not in self.anchors:
            said = f"the alias *{event.anchor} has no anchor &{event.anchor} before it"
            self._refuse(line, said, "check the name; put it in quotes if it is text")
        found = self.anchors[event.anchor]
        if found is None:
            said = f"the alias *{event.anchor} contains itself"
            self._refuse(line, said, "write the inner value out, or remove it")
        data, number = found
        self._place(data if self._is_key() else self._copy(*found, len(self.stack) + 1), number)

    def _copy(self, data, number: int, depth: int):
        """Return a copy of *data*, of what an anchor names, each of whose values counts."""
        self._count(self.lines.of(number))
        if not isinstance(data, (list, dict)):
            return data
        self._check_depth(depth, self.lines.of(number))
        steps = data.items() if isinstance(data, dict) else enumerate(data)
        found = {
            step: self._copy(one, self.lines.member(number, step)[0], depth + 1)
            for step, one in steps
        }
        return found if isinstance(data, dict) else list(found.values())

    def _count(self, line: int) -> None:
        self._left -= 1
        if self._left < 0:
            said = f"more than {self._most:,} values after aliases are followed"
            self._refuse(line, said, "use fewer aliases, or split the file")

    def _check_depth(self, depth: int, line: int) -> None:
        if depth > MAX_DEPTH:
            self._refuse(line, f"nested deeper than {MAX_DEPTH} levels", SHALLOWER)

    def _is_key(self) -> bool:
        """Return whether what comes next is the key of a member."""
        return (
            bool(self.stack)
            and self.stack[-1][_KEY] is None
            and isinstance(self.stack[-1][_DATA], dict)
        )

    def _place(self, data, number: int, event=None) -> None:
        """Put finished data where they belong: root, list item, mapping key or mapping value."""
        if not self.stack:
            self.data, self.number = data, number
            return
        top = self.stack[-1]
        if isinstance(top[_DATA], list):
            top[_DATA].append(data)
            top[_MEMBERS].append((None, 0, number))
        elif top[_KEY] is None:
            top[_LINE] = self.lines.of(number)
            top[_KEY] = self._key(data, top[_LINE], event)
        else:
            top[_DATA][top[_KEY]] = data
            top[_MEMBERS].append((top[_KEY], top[_LINE], number))
            top[_KEY] = None

    def _key(self, data, line: int, event) -> str:
        if event is not None and event.value == "<<" and event.tag is None and event.implicit[0]:
            hint = "write the fields out, or use an alias for a whole value"
            self._refuse(line, "merge keys (<<) are not part of YAML 1.2", hint, self._path())
        if not isinstance(data, str):
            found = (
                "null"
                if data is None
                else "a list or mapping"
                if isinstance(data, (list, dict))
                else "not text"
            )
            said = f"this key is {found}; keys are text"
            self._refuse(line, said, "put the key in quotes", self._path())
        if data in self.stack[-1][_DATA]:
            members = self.stack[-1][_MEMBERS]
            first = next(at for key, at, _ in members if key == data)
            refuse_repeated(self.file, line, self._path() + (data,), data, first)
        return sys.intern(data)  # thousands of rules have the same few

    def _path(self) -> tuple:
        """Return the path of the collection that is open now; inside a key that is no text, of
        what that key is for.
        """
        steps = [
            len(one[_DATA]) if isinstance(one[_DATA], list) else one[_KEY]
            for one in self.stack[:-1]
        ]
        return tuple(step for step in steps if step is not None)

    def _scalar(self, event, line: int):
        tag = event.tag
        if tag is None and event.implicit[0]:
            return self._plain(event.value, line)
        if tag in (None, "!", _CORE + "str"):
            return event.value
        if tag in (_CORE + "null", _CORE + "bool", _CORE + "int", _CORE + "float"):
            value = self._plain(event.value, line)
            kinds = {"null": type(None), "bool": bool, "int": int, "float": float}
            if type(value) is kinds[tag[len(_CORE) :]]:
                return value
            if tag == _CORE + "float" and type(value) is int:
                return float(value)
            said = f"{enquote(event.value)} is no !!{tag[len(_CORE) :]}"
            self._refuse(line, said, "remove the tag, or change the value")
        self._bad_tag(event, line)

    def _plain(self, text: str, line: int):
        if text in _NULL:
            return None
        if text in _BOOL:
            return _BOOL[text]
        if _INT.match(text):
            # int() refuses 4,300 digits with a traceback
            is_long, base = len(text) > 24, {"0o": 8, "0x": 16}.get(text[:2], 10)
            value = MAX_INT if is_long else int(text, base)
            if not -MAX_INT <= value < MAX_INT:
                self._refuse(line, "a number too large for 64 bits", _QUOTE)
            return value
        if _FLOAT.match(text):
            value = float(text)
            if value in (float("inf"), float("-inf")):
                self._refuse(line, f"{enquote(text)} is too large for a number", _QUOTE)
            return value
        if _NOT_JSON.match(text):
            self._refuse(line, f"{enquote(text)} is no number that JSON has", _QUOTE)
        return text

    def _bad_tag(self, event, line: int):
        tag = event.tag.replace(_CORE, "!!")
        hint = "leave the tag out; only plain data is read"
        self._refuse(line, f"the tag {enquote(tag)} is not allowed", hint)

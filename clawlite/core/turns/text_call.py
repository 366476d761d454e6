"""Calls of tools in the text of an answer: loaded where the settings of a provider let them run.

A server that does not know how its model calls tools hands a call on as text.  The model may as
well quote a page that a stranger wrote, so a text counts only by these rules:

1. It has nothing but calls: marks of a chat template, names and JSON.  One word more, and it is
   text.
2. Each call names a tool that the agent has, and its arguments fit the tool's schema.
3. All of it runs, or nothing.

Shapes  Qwen, Hermes    <tool_call>{"name": ..., "arguments": {...}}</tool_call>
        Qwen3-Coder     <tool_call><function=NAME><parameter=KEY>value</parameter></function>
        Llama           <|python_tag|>{"name": ..., "parameters": {...}}; <function=NAME>{...}
        Mistral         [TOOL_CALLS][{"name": ..., "arguments": {...}}]; [TOOL_CALLS]NAME[ARGS]{...}
        DeepSeek, Kimi  special tokens around NAME and {...}
        GLM             <tool_call>NAME<arg_key>key</arg_key><arg_value>value</arg_value>
        Phi, Granite    functools[{...}]; <|tool_call|>[{...}]
        any             the object alone, several of them, or in a fence: ```json
"""

from clawlite.core.base.text import decode_utf8
from clawlite.core.formats.schema import check

_MOST = 16  # calls
_BLANK = b" \t\r\n,;"
_WORD = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:/-"
_MARKS = (
    b"<tool_call>",
    b"</tool_call>",
    b"<tool_calls>",
    b"</tool_calls>",
    b"</function>",
    b"functools",
    b"[TOOL_CALLS]",
    b"[ARGS]",
    b"[CALL_ID]",
)
_BRACKETS = _MARKS[-3:]
_ID = _MARKS[-1]  # an id follows
_FENCES = (b"```json", b"```tool_call", b"```")  # of JSON alone
# special tokens of a template: what they begin and end with
_TOKENS = ((b"<|", b"|>"), (b"<\xef\xbd\x9c", b"\xef\xbd\x9c>"))
_TOKEN = 40  # bytes of one, at most
_FUNCTION = b"<function="
# arguments without JSON: what is before a key, behind it, before its value (or nothing), behind it
_PAIRS = (
    (b"<parameter=", b">", b"", b"</parameter>"),
    (b"<arg_key>", b"</arg_key>", b"<arg_value>", b"</arg_value>"),
)
_NAMES = ("name", "tool_name", "function")
_ARGUMENTS = ("arguments", "parameters")
_OTHERS = ("id", "type", "index", "tool_call_id")  # what else an object of a call may have


class _Other(Exception):
    """The text is no call; its argument says why, for a person."""


def read(text: str, codec, tools) -> tuple:
    """Return (the calls in *text* as those of ``wire.Answer``, ""), or ([], why there is none).

    codec  ``wire.Codec``;  tools: ``image.Image``, which has the tools
    """
    reader = _Reader(text.encode(), codec.value)
    try:
        reader.run()
        if not reader.calls:
            raise _Other("it names no tool")
        calls = [_fitting(call, tools) for call in reader.calls]
    except _Other as e:
        return [], e.args[0]
    return [("", name, arguments, codec.dumps(arguments)) for name, arguments in calls], ""


class _Reader:
    """The calls of one text: ``calls`` is a list of (name, candidates), and each candidate a dict
    that the arguments may be.
    """

    def __init__(self, data: bytes, value_of):
        self._data = data
        self._at = 0
        self._value_of = value_of  # bytes -> value of JSON, None for others
        self._name = ""  # whose arguments follow
        self._pairs = []  # (key, text)
        self._is_marked = False  # a name may be next
        self.calls = []

    def run(self):
        """Read all of the text.  Raises ``_Other``."""
        while self._at < len(self._data):
            first = self._data[self._at : self._at + 1]
            if first in _BLANK:
                self._at += 1
            elif first == b"{" or first == b"[" and not self._is_at(_BRACKETS):
                self._take(self._read_json())
            elif not self._skip_mark() and not self._read_pair():
                self._begin(self._read_name())
        self._end()

    def _is_at(self, marks: tuple) -> int:
        """Return the length of the one of *marks* that is next, or 0."""
        for mark in marks:
            if self._data[self._at : self._at + len(mark)] == mark:
                return len(mark)
        return 0

    def _skip_mark(self) -> bool:
        """Skip a mark, if one is next: one that ends something, or one that a name may follow."""
        size = self._is_at(_MARKS)
        for begin, end in _TOKENS:
            if self._is_at((begin,)):
                at = self._data.find(end, self._at, self._at + _TOKEN)
                size = at + len(end) - self._at if at >= 0 else 0
        mark = self._data[self._at : self._at + (size or self._is_at(_FENCES))]
        self._at += len(mark)
        if mark == _ID:
            self._read_word()
        elif size:
            is_end = mark[:2] == b"</" or b"end" in mark.lower() or mark[:4] == b"<|eo"
            self._is_marked = not is_end
            if is_end:
                self._end()
        return len(mark) > 0

    def _read_word(self) -> bytes:
        start = self._at
        while self._at < len(self._data) and self._data[self._at : self._at + 1] in _WORD:
            self._at += 1
        return self._data[start : self._at]

    def _until(self, mark: bytes) -> bytes:
        at = self._data.find(mark, self._at)
        if at < 0:
            raise _Other("it is not whole")
        found = self._data[self._at : at]
        self._at = at + len(mark)
        return found

    def _read_name(self) -> str:
        if self._is_at((_FUNCTION,)):
            self._at += len(_FUNCTION)
            return decode_utf8(self._until(b">").strip(b" \"'"))
        word = self._read_word() if self._is_marked else b""
        if not word:
            raise _Other("other text is beside it")
        self._is_marked = False  # one name, and no other word
        return decode_utf8(word)

    def _begin(self, name: str):
        """Take the name of a call, whose arguments follow, if it has any."""
        if self._name != "function":  # which DeepSeek's models write before the name
            self._end()
        self._name = name

    def _read_pair(self) -> bool:
        """Read a key and its value, if they are next."""
        for begin, between, opens, end in _PAIRS:
            if self._is_at((begin,)):
                if not self._name:
                    raise _Other("it names no tool")
                self._at += len(begin)
                key = self._until(between).strip()
                if opens:
                    self._until(opens)
                self._pairs.append((decode_utf8(key), decode_utf8(self._until(end).strip(b"\r\n"))))
                return True
        return False

    def _read_json(self):
        data, start, depth, is_text = self._data, self._at, 0, False
        at = start
        while True:
            if at >= len(data):
                raise _Other("it is not whole")
            byte = data[at]
            if is_text:
                if byte == 92:  # a backslash: the next byte ends no text
                    at += 1
                is_text = byte != 34
            elif byte == 34:
                is_text = True
            elif byte == 123 or byte == 91:  # an object or an array begins
                depth += 1
            elif byte == 125 or byte == 93:
                depth -= 1
            at += 1
            if depth == 0:
                break
        self._at = at
        return self._value_of(data[start:at])

    def _take(self, value):
        """Take a value of JSON: arguments, or a call, or several."""
        if self._name and isinstance(value, dict):
            name, self._name = self._name, ""
            self._add(name, [value])
        elif isinstance(value, list):
            for one in value:
                self._take(one)
        elif isinstance(value, dict):
            several = value.get("tool_calls") or value.get("tool_call")
            if several and len(value) == 1:
                self._take(several)
            elif isinstance(value.get("function"), dict):
                self._take_call(value["function"])
            else:
                self._take_call(value)
        else:
            raise _Other("its JSON is no call")

    def _take_call(self, value: dict):
        names = [value[key] for key in _NAMES if key in value]
        found = [value[key] for key in _ARGUMENTS if key in value] or [{}]
        others = [key for key in value if key not in _NAMES + _ARGUMENTS + _OTHERS]
        if len(names) != 1 or not isinstance(names[0], str) or len(found) != 1 or others:
            raise _Other("its JSON is no call")
        if isinstance(found[0], str):
            found = [self._value_of(found[0].encode())]
        if not isinstance(found[0], dict):
            raise _Other("its JSON is no call")
        self._add(names[0], found)

    def _end(self):
        """End the call that was begun: its arguments are no JSON."""
        if self._name:
            texts, values = {}, {}
            for key, text in self._pairs:
                value = self._value_of(text.encode())
                texts[key] = text
                values[key] = text if value is None and text != "null" else value
            found = [values, texts]
            for key, text in self._pairs:
                found.append(dict(values))
                found[-1][key] = text
            self._add(self._name, found)
        self._name, self._pairs = "", []

    def _add(self, name: str, candidates: list):
        if self._pairs and len(candidates) == 1:
            raise _Other("it has arguments twice")
        self.calls.append((name, candidates))
        if len(self.calls) > _MOST:
            raise _Other("it has more than %d calls" % _MOST)


def _fitting(call: tuple, tools) -> tuple:
    """Return (name, arguments) of a call that fits its tool.  Raises ``_Other``."""
    name, candidates = call
    tool = tools.tool(name)
    if tool is None and name[:10] == "functions.":  # Kimi's names: functions.NAME:0
        tool = tools.tool(name[10:].split(":")[0])
    if tool is None:
        raise _Other("there is no tool %s" % name[:40])
    for arguments in candidates:
        wrong = check(tool.schema, arguments, tools.automaton)
        if wrong is None:
            return tool.name, arguments
    raise _Other("%s: %s" % (tool.name, wrong))

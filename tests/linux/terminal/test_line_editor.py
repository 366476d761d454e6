"""The line editor without a terminal: keys, history, output while a person types,
and a small terminal that shows what a person sees.
"""

import os
from unicodedata import east_asian_width

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clawlite.core.line.frame import RECORD, TEXT, TOO_LONG
from clawlite.linux.terminal.history import LONGEST, MOST, History, complete
from clawlite.linux.terminal.line_editor import Editor
from clawlite.linux.terminal.terminal_row import cells, plain

EXAMPLES = settings(max_examples=int(os.environ.get("CLAWLITE_EXAMPLES", 300)), deadline=None)
UP, DOWN, RIGHT, LEFT, HOME, END, DELETE = (
    b"\x1b[%s" % key for key in (b"A", b"B", b"C", b"D", b"H", b"F", b"3~")
)


class Glass:
    """As much of a terminal as the editor needs: rows of cells, a cursor, and a wrap that waits
    for the next character.
    """

    def __init__(self, columns):
        self.columns = columns
        self.rows, self.y, self.x = [[]], 0, 0

    def write(self, data: bytes):
        text, at = data.decode(), 0
        while at < len(text):
            c = text[at]
            at += 1
            if c == "\x1b":
                assert text[at] == "["
                end = at + 1
                while text[end].isdigit():
                    end += 1
                self._control(text[end], int(text[at + 1 : end] or 0))
                at = end + 1
            elif c == "\r":
                self.x = 0
            elif c == "\n":
                self._next_row()  # ONLCR
            else:
                self._put(c)

    def _control(self, key, n):
        if key == "D":
            assert 0 < n <= self.x
            self.x -= n
        elif key == "C":
            assert 0 < n and self.x + n < self.columns
            self.x += n
        elif key == "K":
            assert n == 0
            del self.rows[self.y][self.x :]
        elif key == "J":
            assert n == 2
            self.rows, self.y = [[]], 0
        else:
            assert key == "H"
            self.x = 0

    def _next_row(self):
        self.y, self.x = self.y + 1, 0
        self.rows.append([])

    def _put(self, c):
        assert c.isprintable() or c >= "\xa0", c
        width = cells(c)
        if not width:  # it joins the character before it
            row, x = self.rows[self.y], self.x - 1
            while x > 0 and not row[x]:
                x -= 1
            if 0 <= x < len(row):  # at the beginning of a line there is none
                row[x] += c
            return
        if self.x + width > self.columns:
            self._next_row()
        row = self.rows[self.y]
        row.extend(" " * (self.x - len(row)))
        row[self.x : self.x + width] = [c] + [""] * (width - 1)
        self.x += width

    def text(self) -> list:
        return ["".join(row).rstrip() for row in self.rows]


class Typist:
    """An editor, its lines, and its glass."""

    def __init__(self, columns=40, limit=1000, history=None, words=None):
        known = None if words is None else lambda before: complete(before, words)
        self.editor = Editor(limit, columns, history, known)
        self.glass, self.lines = Glass(columns), []
        self.editor.prompt("> ")
        self.flush()

    def flush(self):
        self.editor.refresh()
        data = self.editor.output()
        self.glass.write(data)
        return data

    def type(self, *keys):
        """Type *text*; after each line the next prompt comes, as at a console.  Return what was
        written last.
        """
        for key in keys:
            self.editor.feed(key.encode() if isinstance(key, str) else key)
            event = self.editor.next_event()
            while event:
                self.lines.append(event[1] if event[0] == TEXT else event)
                self.editor.prompt("> ")
                event = self.editor.next_event()
            data = self.flush()
        return data

    @property
    def row(self) -> str:
        return self.glass.text()[-1]


def test_what_is_typed_is_echoed_byte_for_byte():
    it = Typist()
    assert it.type("h") == b"h" and it.type("ello") == b"ello"
    assert it.type("\n") == b"\n> " and it.lines == [b"hello"]
    assert it.glass.text() == ["> hello", ">"]


@pytest.mark.parametrize(
    "keys, line",
    [
        (["abc", LEFT, LEFT, "x"], "axbc"),
        (["abc", b"\x02\x02\x06", "x"], "abxc"),
        (["abc", HOME, "x", END, "y"], "xabcy"),
        (["abc", b"\x01", "x", b"\x05", "y"], "xabcy"),
        (["abc", b"\x1b[1~x\x1b[4~y"], "xabcy"),
        (["abc", b"\x1bOHx\x1bOFy"], "xabcy"),
        (["abc", b"\x7f"], "ab"),
        (["abc", b"\x08\x08"], "a"),
        (["abc", HOME, DELETE], "bc"),
        (["abc", LEFT, b"\x04"], "ab"),
        (["abc", HOME, b"\x7f"], "abc"),
        (["abc", DELETE], "abc"),
        (["abc", LEFT * 9, "x", RIGHT * 9, "y"], "xabcy"),
        (["one two", LEFT, LEFT, b"\x0b"], "one t"),
        (["one two", LEFT, LEFT, b"\x15"], "wo"),
        (["one two  ", b"\x17"], "one "),
        (["one", b"\x17"], ""),
        (["one two", LEFT, b"\x17"], "one o"),
        (["a", b"\x0c", "b"], "ab"),
        (["a\tb"], "a\tb"),
        (["grüße 🌱", b"\x7f\x7f", HOME, RIGHT, "日本"], "g日本rüße"),
        (["a", b"\x00\x07\x0f\x14\x16\x19\x1c\x1d\x1f", "b"], "ab"),
        (["a", b"\x1b[1;5C\x1b[15~\x1b[201~\x1b[Z\x1b[[A\x1bOP\x1bb", "c"], "ac"),
        (["ab", b"\x1b[1;2D", "c"], "acb"),
        (["a\x1b", "\x1b[D", "b"], "ba"),
        ([b"a\x1b\xc3\xa4"], "aä"),
        ([b"x\xc3", b"\xa4\xe2", b"\x82", b"\xac"], "xä€"),
        (["a\u009bb"], "ab"),
        (["{x"], "{x"),
        (["a\x1eb"], "ab"),
    ],
)
def test_keys(keys, line):
    it = Typist()
    it.type(*keys)
    assert it.row == ("> " + plain(line)).rstrip()
    it.type("\n")
    assert it.lines == [line.encode()]


def test_return_line_feed_and_both_end_one_line():
    it = Typist()
    it.type("a\rb\r\nc\n\nd\r", "\ne\n")
    assert it.lines == [b"a", b"b", b"c", b"", b"d", b"e"]


def test_history():
    it = Typist()
    it.type("one\n", "two\n", "two\n", "  \n", "\n", "three\n", "dra", UP)
    assert it.row == "> three"
    it.type(UP)
    assert it.row == "> two"
    it.type(b"\x10", UP, UP)
    assert it.row == "> one"
    it.type(b"\x0e")
    assert it.row == "> two"
    it.type("!", DOWN)
    assert it.row == "> three"
    it.type(DOWN)
    assert it.row == "> dra"
    it.type(DOWN, "ft", UP, "\n", UP)
    assert it.row == "> three" and it.lines[-1] == b"three"


@pytest.mark.parametrize("count, kept", [(MOST - 1, MOST - 1), (MOST, MOST), (MOST + 1, MOST)])
def test_history_has_a_bound(count, kept):
    it = Typist()
    it.type("".join("line %d\n" % n for n in range(count)), UP * (count + 5))
    assert it.row == "> line %d" % (count - kept)


@pytest.mark.parametrize("size, kept", [(LONGEST - 1, True), (LONGEST, True), (LONGEST + 1, False)])
def test_long_lines_are_not_remembered(size, kept):
    it = Typist(limit=10000)
    it.type("short\n", "x" * size + "\n", UP, "\n")
    assert it.lines[-1] == (b"x" * size if kept else b"short")


def test_ctrl_r_looks_for_an_earlier_line():
    it = Typist(columns=60)
    it.type("water bed 1\n", "is it dry?\n", "water bed 2\n", "dra")
    it.type(b"\x12", "wat")
    assert it.row == "(earlier: wat) water bed 2"
    it.type(b"\x12")
    assert it.row == "(earlier: wat) water bed 1"
    it.type(b"\x12")  # no older one: it stays
    assert it.row == "(earlier: wat) water bed 1"
    it.type("er bed 2")
    assert it.row == "(earlier: water bed 2) water bed 1"  # it looks at that line and older ones
    it.type(b"\x7f" * 8, b"\x07")
    assert it.row == "> dra"  # Ctrl-G: what was typed is there again
    it.type(b"\x12", "dry", LEFT, LEFT, "X\n")
    assert it.lines[-1] == b"is it drXy?"
    it.type(b"\x12", "bed 2", "\n")
    assert it.lines[-1] == b"water bed 2"
    it.type(b"\x12", "nothing like it\n")
    assert it.lines[-1] == b"" and it.row == ">"


def test_a_question_has_no_earlier_lines_and_no_completion():
    it = Typist(words=["/help"])
    it.type("hello\n")
    it.editor.ask(True)
    it.editor.prompt("[y/N] ")
    it.type(b"\x12", "\t", "y\n")
    assert it.lines[-1] == b"y"
    it.editor.ask(False)
    assert it.editor._history.lines == ["hello"]


def test_tab_completes_commands_words_and_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/plan.txt").touch()
    (tmp_path / "notes/plain.txt").touch()
    (tmp_path / ".hidden").touch()
    it = Typist(columns=60, words=["/help", "/tools", "/trace", "read-soil", "water"])
    it.type("/h\t")
    assert it.row == "> /help"
    it.type(b"\x15", "/t\t")  # two of them: nothing is certain, both are shown
    assert it.glass.text()[-2:] == ["/tools  /trace", "> /t"]
    it.type(b"\x15", "use wa\t")
    assert it.row == "> use water"
    it.type("see no\t")
    assert it.row == "> use water see notes/"
    it.type("pla\t")
    assert it.glass.text()[-2:] == ["notes/plain.txt  notes/plan.txt", "> use water see notes/pla"]
    it.type("n\t\n")
    assert it.lines[-1] == b"use water see notes/plan.txt "
    it.type("zz\t", "\t")
    assert it.row == "> zz"  # nothing is known: nothing happens
    it.type(b"\x15", "\t")
    assert it.row == ">"


def test_lines_outlast_a_start_and_secrets_do_not(tmp_path):
    path = str(tmp_path / "console.history")
    first = History(path, lambda text: "hunter2" in text)
    for line in (
        "is it dry?",
        "two\nlines",
        "it is hunter2",
        "use sk-ant-api03-" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z" * 2,
        "password = correcthorse99Battery",
        "is it wet?",
        "is it wet?",
    ):
        first.add(line)
    assert len(first.lines) == 6  # this start may recall all of them
    assert os.stat(path).st_mode & 0o777 == 0o600
    again = History(path)
    assert again.lines == []  # nothing is read before a person asks
    again.add("now")
    again.load()
    assert again.lines == ["is it dry?", "two\nlines", "is it wet?", "now"]
    it = Typist(history=History(path))
    it.type(UP, UP)
    assert it.row == "> is it wet?"


def test_a_file_of_lines_that_is_long_damaged_or_a_link(tmp_path):
    path = tmp_path / "console.history"
    path.write_text("".join('"%d"\n' % n for n in range(2 * MOST + 1)) + 'rubbish\n7\n"end"\n')
    history = History(str(path))
    history.load()
    assert len(history.lines) == MOST and history.lines[-1] == "end"
    assert len(path.read_text().splitlines()) == MOST
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    linked = History(str(path))
    linked.add("a line")
    assert not (tmp_path / "elsewhere").exists() and linked.lines == ["a line"]
    lost = History(str(tmp_path / "no/folder"))
    lost.add("a line")
    lost.load()
    assert lost.lines == ["a line"]


@pytest.mark.parametrize("size, fits", [(99, True), (100, True), (101, False)])
def test_a_line_has_a_bound_in_bytes(size, fits):
    line = "é" + "x" * (size - 2)
    for portions in ([line], list(line), [line[:50], LEFT, line[50:]]):
        it = Typist(limit=100)
        it.type(*portions)
        it.type("\n", "next\n")
        assert it.lines[-1] == b"next" and len(it.lines) == 2
        assert len(it.lines[0]) == size if fits else it.lines[0] == (TOO_LONG, b"%d" % size)


def test_a_line_that_became_too_long_can_be_taken_back():
    it = Typist(limit=100)
    it.type("x" * 300, b"\x04", UP, b"\x1e", b"\x15", "short\n")
    assert it.lines == [b"short"] and not it.editor.at_end


def test_ctrl_d_on_an_empty_line_ends():
    it = Typist()
    it.type("a\n", b"\x04lost\n")
    assert it.editor.at_end and it.lines == [b"a"]
    it.editor.feed(b"more\n")
    assert it.editor.next_event() is None


def test_what_is_no_utf_8_is_left_to_the_reader():
    it = Typist()
    it.type(b"a\xff\xfe", b"\xed\xa0\x80")
    assert it.row == "> a\ufffd\ufffd\ufffd\ufffd\ufffd"
    it.type(b"\x7f", "\n")
    assert it.lines == [b"a\xff\xfe\xed\xa0"]


def lines(data: bytes) -> list:
    """Return the events of *data*, which comes at once."""
    editor = Editor(1000)
    editor.feed(data)
    return list(iter(editor.next_event, None))


def pasted(data: bytes) -> bytes:
    return b"\x1b[200~" + data + b"\x1b[201~"


def test_what_is_pasted_is_one_line_with_its_line_ends():
    for ends in (b"\n", b"\r", b"\r\n"):
        text = ends.join([b"sum this up:", b"one", b"/quit", b"three"])
        assert lines(pasted(text) + b"\r") == [(TEXT, b"sum this up:\none\n/quit\nthree")]
    # typed text stands before and after it, and keys work beside it
    assert lines(b"a" + pasted(b"b\nc") + b"d" + LEFT + b"\x7f\r") == [(TEXT, b"ab\nd")]


def test_a_paste_comes_in_any_portion():
    data = b"x" + pasted("é\n\x1b[201 no end\nz".encode()) + b"\rnext\r"
    whole = lines(data)
    assert whole == [(TEXT, "xé\n[201 no end\nz".encode()), (TEXT, b"next")]
    editor, found = Editor(1000), []
    for byte in data:
        editor.feed(bytes([byte]))
        found += iter(editor.next_event, None)
    assert found == whole


def test_control_characters_of_a_paste_do_nothing():
    """Neither a record's mark, nor a key, nor the end of input is obeyed in there."""
    data = b'\x1e{"a":1}\n\x04\x15\x03\x1b[A\x7fb\tc'
    assert lines(pasted(data) + b"\r") == [(TEXT, b'{"a":1}\n[Ab\tc')]


def test_a_paste_that_is_too_long_is_told_at_its_enter():
    for size, kind in ((9, TEXT), (10, TEXT), (11, TOO_LONG)):
        editor = Editor(10)
        editor.feed(pasted(b"x\n" * (size // 2) + b"y" * (size % 2)) + b"\r")
        assert editor.next_event()[0] == kind


def test_ctrl_c_ends_a_paste_whose_end_was_lost():
    editor = Editor(100)
    editor.feed(b"\x1b[200~one\ntwo")
    assert editor.next_event() is None
    editor.interrupt()
    editor.feed(b"three\r")
    assert editor.next_event() == (TEXT, b"three")


def test_a_text_of_several_lines_is_one_row_until_it_is_sent():
    it = Typist()
    it.type(pasted(b"one\ntwo"))
    assert it.glass.text() == ["> one\u21b5two"]
    it.type("\r")
    assert it.glass.text() == ["> one", "two", ">"] and it.lines == [b"one\ntwo"]
    it.type(UP)
    assert it.row == "> one\u21b5two"


# -- records


def test_a_record_is_neither_edited_nor_shown_nor_remembered():
    it = Typist()
    assert it.type(b'\x1e{"a\x7f\x1b[D\x04":1', b"\xff}", b"\n") == b""
    assert it.lines == [(RECORD, b'{"a\x7f\x1b[D\x04":1\xff}')]
    it.type(UP, "typed", b"\x1e\n", b"\x1e1\n\x1e2\nb\n")
    assert it.lines[1:] == [b"typed", (RECORD, b"1"), (RECORD, b"2"), b"b"]


def test_a_record_that_is_too_long_is_told():
    it = Typist(limit=10)
    it.type(b"\x1e" + b"x" * 9 + b"\n", b"\x1e" + b"x" * 10 + b"\n")
    assert it.lines == [(RECORD, b"x" * 9), (TOO_LONG, b"11")]


def test_ctrl_c_ends_a_record_that_nobody_ends():
    it = Typist()
    it.type(b"\x1etyped by mistake")
    it.editor.interrupt()
    it.type("hello\n")
    assert it.lines == [b"hello"]


# -- output while a person types


def test_output_comes_above_what_is_typed():
    it = Typist()
    it.type("half a li", LEFT)
    it.editor.show(b"Pumped.\n")
    it.flush()
    assert it.glass.text() == ["Pumped.", "> half a li"]
    it.type("X")
    assert it.row == "> half a lXi"


def test_pieces_stay_on_one_line_and_typing_waits_for_its_end():
    it = Typist()
    it.type("go\n")
    it.editor.ask(False)  # no prompt: a turn runs
    for piece in (b"The soil", b" is", b" dry"):
        it.editor.show(piece, True)
        it.type("x")
    assert it.glass.text() == ["> go", "The soil is dry"]
    it.editor.show(b".\nReally", True)
    it.flush()
    assert it.row == "Really"
    it.editor.prompt("> ")
    it.flush()
    assert it.glass.text() == ["> go", "The soil is dry.", "Really", "> xxx"]


def test_the_pieces_of_an_answer_to_a_line_that_waited_stay_on_one_line():
    """The prompt of the turn before is open when they come."""
    it = Typist()
    for piece in (b"And aga", b"in."):
        it.editor.show(piece, True)
        it.flush()
    it.editor.prompt("> ")
    it.flush()
    assert it.glass.text() == ["And again.", ">"]


def test_a_piece_leaves_a_question_open():
    it = Typist()
    it.editor.ask(True)
    it.editor.prompt("[y/N] ")
    it.editor.show(b"The soil", True)
    it.flush()
    assert it.row == "[y/N]"


def test_a_line_sent_while_nobody_waits_for_one_is_shown():
    it = Typist()
    it.editor.ask(False)
    it.editor.show(b"The soil", True)
    it.editor.feed(b"echo\nmo")
    assert it.editor.next_event() == (TEXT, b"echo")
    it.flush()
    assert it.editor.next_event() is None
    it.editor.show(b" is dry.\n", True)
    it.flush()
    assert it.glass.text() == ["The soil", "echo", " is dry.", "mo"]


def test_a_record_that_goes_out_begins_a_line():
    it = Typist()
    it.type("ha")
    it.editor.record(b"\x1e{}\n".replace(b"\x1e", b"#"))
    it.flush()
    assert it.glass.text() == ["", "#{}", "> ha"]


def test_a_question_has_a_line_of_its_own():
    it = Typist()
    it.type("one\n", "hal")
    it.editor.ask(True)
    it.editor.show(b"Approve?\n")
    it.editor.prompt("[y/N] ")
    it.flush()
    assert it.row == "[y/N]"
    it.type(UP, "ye")  # no history here
    assert it.row == "[y/N] ye"
    it.editor.ask(False)  # it ran out
    it.editor.prompt("> ")
    it.flush()
    assert it.row == "> hal"
    it.editor.ask(True)
    it.editor.prompt("[y/N] ")
    it.type("y\n")
    it.editor.ask(True)  # another one, at once
    it.type("n\n")
    it.editor.ask(False)
    it.editor.prompt("> ")
    it.type("f\n", UP, UP)
    assert it.lines == [b"one", b"y", b"n", b"half"] and it.row == "> one"


def test_ctrl_c_leaves_the_line_where_it_stands():
    it = Typist()
    it.type("never mind", LEFT, LEFT)
    it.editor.interrupt()
    it.editor.show(b"Press\n")
    it.flush()
    assert it.glass.text() == ["> never mind", "Press", ">"]
    it.editor.ask(True)
    it.editor.interrupt()
    it.editor.ask(False)
    it.editor.prompt("> ")
    it.flush()
    assert it.row == ">" and it.type("\n") == b"\n> " and it.lines == [b""]


def test_the_end_leaves_the_line_whole():
    it = Typist()
    it.type("half", HOME)
    it.editor.close()
    it.glass.write(it.editor.output())
    assert it.glass.text() == ["> half", ""] and it.glass.x == 0


# -- lines that are wider than the terminal


@pytest.mark.parametrize("columns", [8, 20, 40])
def test_a_long_line_is_shown_around_the_cursor_and_whole_in_the_end(columns):
    it = Typist(columns)
    line = "".join(chr(97 + n % 26) for n in range(100))
    for c in line:
        it.type(c)
        assert it.row.endswith(c) and len(it.glass.rows) == 1
    it.type(HOME)
    assert it.row == "> " + line[: columns - 3] and it.glass.x == 2
    for n in range(100):
        it.type(RIGHT)
        assert it.row[it.glass.x - 1] == line[n] and len(it.glass.rows) == 1
    it.type(LEFT * 50, "X\n")
    assert "".join(it.glass.text()[:-1]) == "> " + line[:50] + "X" + line[50:]


def test_wide_characters_and_marks_keep_their_cells():
    it = Typist(20)
    it.type("日本語", LEFT, "e\u0301")
    assert it.row == "> 日本e\u0301語" and it.glass.x == 2 + 4 + 1
    it.type(b"\x7f")  # the mark alone
    assert it.row == "> 日本e語" and it.glass.x == 7
    it.type("日" * 30)
    assert len(it.glass.rows) == 1 and it.glass.x < 20
    assert [east_asian_width(c) for c in "日e"] == ["W", "Na"] and cells("日e\u0301") == 3


def test_another_width():
    it = Typist(40)
    it.type("x" * 30)
    it.editor.resize(20)
    it.glass.columns = 20
    it.flush()
    assert len(it.row) <= 20 and it.row.startswith("> xxx")


def test_what_would_drive_the_terminal_is_not_shown():
    assert plain("a\u202eb\x1b[2J\x07\u009b\udcff\tc") == "a\ufffdb\ufffd[2J\ufffd\ufffd\ufffd c"
    it = Typist()
    it.editor.prompt("\x1b[2J> ")
    it.flush()
    assert it.row == "\ufffd[2J>"
    it.editor.prompt("p" * 100)
    it.type("abc")
    assert it.row == "p" * 20 + "abc"


# -- fuzz

KEYS = {
    "left": [LEFT, b"\x02", b"\x1bOD"],
    "right": [RIGHT, b"\x06"],
    "home": [HOME, b"\x01"],
    "end": [END, b"\x05"],
    "backspace": [b"\x7f", b"\x08"],
    "delete": [DELETE],
    "cut": [b"\x0b"],
    "cut before": [b"\x15"],
    "up": [UP, b"\x10"],
    "down": [DOWN, b"\x0e"],
    "enter": [b"\r", b"\r\n"],
    "nothing": [b"\x1b[15~", b"\x00", b"\x1b[[A"],
}
pressed = st.one_of([st.sampled_from([(name, data) for data in KEYS[name]]) for name in KEYS])
typed = st.text(
    st.characters(exclude_categories=("Cs", "Cc")) | st.just("\t"), min_size=1, max_size=12
).map(lambda text: (tuple(text), text.encode()))
cuts = st.lists(st.integers(0, 400), max_size=12)


def portions(data: bytes, at: list) -> list:
    edges = [0, *sorted(min(n, len(data)) for n in at), len(data)]
    return [data[a:b] for a, b in zip(edges, edges[1:])]


class Model:
    """What the keys mean, as simple code that the editor is compared with."""

    def __init__(self):
        self.before, self.after, self.lines, self.history, self.back, self.draft = (
            [],
            [],
            [],
            [],
            0,
            [],
        )

    def press(self, name):
        if name == "left" and self.before:
            self.after.insert(0, self.before.pop())
        elif name == "right" and self.after:
            self.before.append(self.after.pop(0))
        elif name == "home":
            self.before, self.after = [], self.before + self.after
        elif name == "end":
            self.before, self.after = self.before + self.after, []
        elif name == "backspace":
            self.before = self.before[:-1]
        elif name == "delete":
            self.after = self.after[1:]
        elif name == "cut":
            self.after = []
        elif name == "cut before":
            self.before = []
        elif name in ("up", "down"):
            self.recall(self.back + (1 if name == "up" else -1))
        elif name == "enter":
            self.enter()
        elif name not in KEYS:
            self.before += name

    def recall(self, back):
        if 0 <= back <= len(self.history):
            if self.back == 0:
                self.draft = self.before + self.after
            self.before, self.after, self.back = (
                list(self.history[len(self.history) - back] if back else self.draft),
                [],
                back,
            )

    def enter(self):
        line = "".join(self.before + self.after)
        self.lines.append(line.encode())
        if line.strip() and self.history[-1:] != [line]:
            self.history.append(line)
        self.before, self.after, self.back = [], [], 0


@EXAMPLES
@given(st.lists(pressed | typed, max_size=30), cuts, st.integers(8, 60))
def test_lines_are_what_a_simple_model_says(keys, at, columns):
    it, model = Typist(columns, 100000), Model()
    for name, _ in keys:
        model.press(name)
    it.type(*portions(b"".join(data for _, data in keys), at))
    assert it.lines == model.lines
    assert it.editor._text == "".join(model.before + model.after) and it.editor._pos == len(
        model.before
    )


@EXAMPLES
@given(st.lists(pressed | typed, max_size=30), st.integers(8, 60))
def test_the_screen_shows_the_line_and_the_cursor(keys, columns):
    it, model = Typist(columns, 100000), Model()
    for name, data in keys:
        model.press(name)
        it.type(data)
        before, after = plain("".join(model.before)), plain("".join(model.after))
        row = "".join(it.glass.rows[it.glass.y])
        marks = len(after)
        while marks and cells(after[:marks]):
            marks -= 1  # those at the cursor stand with the character before it
        shown, after = before + after[:marks], after[marks:]
        left = "".join(it.glass.rows[it.glass.y][: it.glass.x])
        assert it.glass.x < columns and left.startswith("> ") and shown.endswith(left[2:])
        assert after.startswith(row[len(left) :])
        if 2 + cells(before + after) < columns:
            assert left[2:] == shown and row == left + after


@EXAMPLES
@given(st.binary(max_size=400), cuts, st.integers(8, 60))
def test_no_bytes_raise_and_portions_do_not_matter(data, at, columns):
    whole, parts = Typist(columns, 50), Typist(columns, 50)
    whole.type(data)
    parts.type(*portions(data, at))
    assert parts.lines == whole.lines and parts.editor.at_end == whole.editor.at_end
    assert parts.editor._text == whole.editor._text


@EXAMPLES
@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                ["show", "piece", "ask", "over", "prompt", "interrupt", "resize", "record", "type"]
            ),
            st.binary(max_size=20),
        ),
        max_size=40,
    )
)
def test_no_order_of_events_raises_or_draws_over_output(steps):
    it = Typist(20, 50)
    said = b""
    for what, data in steps:
        if what == "type":
            it.type(data)
            continue
        word = b"<%d>" % len(said)
        if what in ("show", "piece", "record"):
            said += word
        {
            "show": lambda: it.editor.show(word + b"\n"),
            "piece": lambda: it.editor.show(word, True),
            "ask": lambda: it.editor.ask(True),
            "over": lambda: it.editor.ask(False),
            "prompt": lambda: it.editor.prompt("> "),
            "interrupt": it.editor.interrupt,
            "resize": lambda: it.editor.resize(20),
            "record": lambda: it.editor.record(word + b"\n"),
        }[what]()
        it.flush()
    if b"\x0c" not in b"".join(data for what, data in steps if what == "type"):
        seen = "".join(it.glass.text())
        for n in [word for word in said.decode().split(">") if word]:
            at = seen.find(n + ">")
            assert at >= 0, n
            seen = seen[at:]

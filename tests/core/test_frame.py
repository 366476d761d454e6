"""core/frame: people and programs share one line."""

from clawlite.core.line.frame import RECORD, TEXT, TOO_LONG, Framer


def events(framer) -> list:
    result = []
    event = framer.next_event()
    while event is not None:
        result.append(event)
        event = framer.next_event()
    return result


def run(data, portion=None, limit=8192, plain_json=False) -> list:
    """Return the events of *data*, fed whole or in portions, then finished."""
    framer = Framer(limit, plain_json)
    result = []
    portion = portion or len(data) or 1
    for pos in range(0, len(data), portion):
        framer.feed(data[pos : pos + portion])
        result.extend(events(framer))
    framer.finish()
    return result + events(framer)


MIX = (
    b'hello\n\x1e{"a":1}\n{"typed":"by a person"}\r\n\n\r\n\x1e{"b":2}\r\n\x1e\ntail '
    b'\x1e{"c":3}\n\x1e\x1e{}\nend'
)


def test_console_only_marked_lines_are_records():
    assert run(MIX) == [
        (TEXT, b"hello"),
        (RECORD, b'{"a":1}'),
        (TEXT, b'{"typed":"by a person"}'),
        (TEXT, b""),
        (TEXT, b""),
        (RECORD, b'{"b":2}'),
        (TEXT, b'tail \x1e{"c":3}'),
        (RECORD, b"\x1e{}"),
        (TEXT, b"end"),
    ]


def test_serve_every_line_is_a_record():
    assert run(MIX, plain_json=True) == [
        (RECORD, b"hello"),
        (RECORD, b'{"a":1}'),
        (RECORD, b'{"typed":"by a person"}'),
        (RECORD, b'{"b":2}'),
        (RECORD, b'tail \x1e{"c":3}'),
        (RECORD, b"\x1e{}"),
        (RECORD, b"end"),
    ]


def test_any_portions_give_the_same_events():
    for plain_json in (False, True):
        for limit in (1, 5, 7, 8, 9, 22, 23, 100):
            whole = run(MIX, limit=limit, plain_json=plain_json)
            for portion in (1, 2, 3, 5, 7, 11, 64):
                assert run(MIX, portion, limit, plain_json) == whole, (limit, portion)


def test_blank_lines_are_no_records_with_or_without_spaces():
    for blank in (b"\n", b"\r\n", b"  \n", b"\t \r\n", b"\x1e\n", b"\x1e \t\n"):
        for portion in (None, 1):
            assert run(blank + b"{} \n", portion, plain_json=True) == [(RECORD, b"{} ")], blank


def test_only_one_cr_before_the_lf_is_dropped():
    assert run(b"a\r\r\nb\rc\n\rd\n") == [(TEXT, b"a\r"), (TEXT, b"b\rc"), (TEXT, b"\rd")]


def test_any_kind_of_buffer_is_copied():
    framer = Framer()
    data = bytearray(b"ab\nc")
    framer.feed(memoryview(data))
    data[0] = data[3] = 120
    assert framer.next_event() == (TEXT, b"ab")
    framer.feed(bytearray(b"d\n"))
    kind, line = framer.next_event()
    assert (kind, line) == (TEXT, b"cd") and type(line) is bytes
    assert framer.next_event() is None


def test_limit_one_below_at_and_above():
    for line in (b"x" * 9, b"\x1e" + b"x" * 8, b"x" * 8 + b"\r"):
        for portion in (1, 4, None):
            text = line.rstrip(b"\r")
            expected = (RECORD, text[1:]) if line[0] == 0x1E else (TEXT, text)
            for limit in (9, 10):
                assert run(line + b"\nok\n", portion, limit) == [expected, (TEXT, b"ok")], (
                    line,
                    portion,
                )
            assert run(line + b"\nok\n", portion, 8) == [(TOO_LONG, b"9"), (TEXT, b"ok")], (
                line,
                portion,
            )


def test_too_long_is_told_once_with_its_length():
    data = b"a\n" + b"y" * 20000 + b"\nb\n" + b"z" * 8193 + b"\r\nc"
    for portion in (1, 100, 8192, None):
        for plain_json in (False, True):
            kind = RECORD if plain_json else TEXT
            assert run(data, portion, 8192, plain_json) == [
                (kind, b"a"),
                (TOO_LONG, b"20000"),
                (kind, b"b"),
                (TOO_LONG, b"8194"),
                (kind, b"c"),
            ]


def test_nothing_is_told_before_the_line_ends():
    framer = Framer(4)
    for _ in range(3):
        framer.feed(b"12345")
        assert framer.next_event() is None
    framer.feed(b"\n")
    assert framer.next_event() == (TOO_LONG, b"15")
    assert framer.next_event() is None


def test_finish_ends_an_open_line_only():
    for data, expected in (
        (b"", []),
        (b"a\n", [(TEXT, b"a")]),
        (b"a", [(TEXT, b"a")]),
        (b"a\nb\r", [(TEXT, b"a"), (TEXT, b"b")]),
        (b"\n", [(TEXT, b"")]),
        (b"\x1e{}", [(RECORD, b"{}")]),
    ):
        for drained in (False, True):
            framer = Framer()
            framer.feed(data)
            got = events(framer) if drained else []
            framer.finish()
            got.extend(events(framer))
            framer.finish()
            assert got + events(framer) == expected, data
    assert run(b"123456", limit=5) == [(TOO_LONG, b"6")]


def test_feed_without_reading_loses_nothing():
    framer = Framer(5)
    for portion in (b"a\nb", b"", b"c\n123", b"456\n", b"d\n"):
        framer.feed(portion)
    assert events(framer) == [(TEXT, b"a"), (TEXT, b"bc"), (TOO_LONG, b"6"), (TEXT, b"d")]


def test_many_lines_in_one_chunk_and_many_chunks_in_one_line():
    """Linear in the input: a quadratic reader would take minutes here."""
    assert run(b"line\n" * 10000) == [(TEXT, b"line")] * 10000
    framer = Framer(100000)
    for _ in range(20000):
        framer.feed(b"abc")
        assert framer.next_event() is None
    framer.feed(b"\n")
    assert framer.next_event() == (TEXT, b"abc" * 20000)


def test_send_marks_records_on_a_console():
    assert Framer().send(b'{"a":1}') == b'\x1e{"a":1}\n'
    assert Framer(plain_json=True).send(b'{"a":1}') == b'{"a":1}\n'
    for plain_json in (False, True):
        framer = Framer(plain_json=plain_json)
        for text in (b'{"a":\n1}', b"{}\n", b"\n"):
            try:
                framer.send(text)
            except ValueError:
                pass
            else:
                assert False, text


def test_a_pair_understands_each_other():
    for plain_json in (False, True):
        sender = Framer(plain_json=plain_json)
        receiver = Framer(plain_json=plain_json)
        records = [b"{}", b'{"a":"\xc3\xa9"}', b"[" + b"1," * 4000 + b"1]"]
        wire = b"".join([sender.send(record) for record in records])
        got = []
        for i in range(len(wire)):
            receiver.feed(wire[i : i + 1])
            got.extend(events(receiver))
        assert got == [(RECORD, record) for record in records]

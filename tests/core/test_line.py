"""core/line: records on a UART, whole, once and in order; tests/core/test_line_noise.py has the
noise.
"""

from clawlite.core.base.errors import ClawError
from clawlite.core.line.frame import RECORD, TEXT, TOO_LONG
from clawlite.core.line.line import DOWN, UNSURE, UP, Line
from clawlite.core.line.lineframe import (
    ACK,
    COST,
    CUT,
    DATA,
    HELLO,
    LONG,
    LOOSE,
    MARKED,
    MORE,
    OVER,
    RESET,
    Splitter,
    decode,
    encode,
    greeting,
    parse_hello,
)
from clawlite.core.line.linereceive import RESERVE, Receiver
from clawlite.core.line.linesend import MAX_FLIGHT, Sender
from clawlite.core.line.linestop import WITHIN_MS, Stop

HOST, BOARD = 0x1001, 0x2002  # nonces; the host's hello adds one to its own
SEED = 0x1002 ^ 0x2002


def written(line) -> bytes:
    data, result = line.output(), b""
    while data:
        result += data
        data = line.output()
    return result


def told(line, data: bytes, now: int = 0) -> list:
    """Feed *data* and return the events."""
    line.feed(data, now)
    result = []
    event = line.next_event()
    while event:
        result.append(event)
        event = line.next_event()
    return result


def pair(window: int = 260, fragment: int = 160, limit: int = 8192, **options) -> tuple:
    """Return a host and a board with a session."""
    host, board = Line(HOST, 4096, 160, **options), Line(BOARD, window, fragment, limit, **options)
    host.hello(0)
    assert told(board, written(host)) == [(UP, b"4096")]
    assert told(host, written(board)) == [(UP, b"%d" % window)]
    return host, board


def settle(one, other, now: int = 0) -> list:
    """Carry bytes both ways until nothing moves; return what *other* was told."""
    result = []
    moved = True
    while moved:
        there = one.output()
        result += told(other, there, now)
        back = other.output()
        assert [event for event in told(one, back, now) if event[0] != RECORD] == []
        moved = there or back
    return result


def frames(data: bytes, seed: int = SEED) -> list:
    """Return the frames in *data*, each of which must be whole; a hello has seed 0."""
    result = []
    for line in data.split(b"\n")[:-1]:
        frame = decode(line, 0 if line[6:7] == b"h" else seed)
        assert frame, line
        result.append(frame)
    return result


# -- frames and items


def test_a_frame_byte_by_byte():
    assert encode(1, 258, DATA, b'{"a":1}', SEED) == b"\x1edAQKTWTaM" + b'{"a":1}\n'
    assert decode(encode(1, 258, DATA, b'{"a":1}', SEED)[:-1], SEED) == (1, 2, DATA, b'{"a":1}')
    assert (
        greeting(0x1002, 0, 4096, 160)
        == b"\x1e~0000he00e201e" + b"020000100200000000" + b"1000a0\n"
    )
    assert encode(0, 0, RESET, b"", 0) == b"\x1e~0000rd20e7449\n" and decode(
        b"\x1e~0000rd20e7449", 0
    ) == (0, 0, RESET, b"")
    assert parse_hello(b"0200001002000020020104a0later") == (2, 0x1002, 0x2002, 260, 160)
    for payload in (b"", b"0200001002000020020104a", b"0200001002000020020104ag"):
        assert parse_hello(payload) == (0, 0, 0, 0, 0)


def test_no_flipped_bit_and_no_missing_byte_passes():
    frame = encode(7, 9, MORE, b'{"text":"water"}', SEED)[:-1]
    for i in range(len(frame)):
        assert decode(frame[:i], SEED) is None
        if i > 1:  # the marks are the splitter's
            assert decode(frame[:i] + frame[i + 1 :], SEED) is None
            for bit in range(8):
                assert (
                    decode(frame[:i] + bytes([frame[i] ^ (1 << bit)]) + frame[i + 1 :], SEED)
                    is None
                ), (i, bit)


def test_a_frame_of_another_session_does_not_pass():
    frame = encode(0, 0, DATA, b"{}", SEED)[:-1]
    for bit in range(32):
        assert decode(frame, SEED ^ (1 << bit)) is None


def items(data: bytes, portion: int, limit: int) -> list:
    splitter = Splitter(limit)
    result = []
    for pos in range(0, len(data), portion):
        splitter.feed(memoryview(data)[pos : pos + portion])
        item = splitter.next_item()
        while item:
            result.append(item)
            item = splitter.next_item()
    return result


def test_items_in_any_portion():
    data = b"hello\r\n> \x1e~0\n\n\x1e~1\x1e\x1e2\r\nabc\x1e\nthe last"
    expected = [
        (LOOSE, b"hello"),
        (LOOSE, b"> "),
        (MARKED, b"\x1e~0"),
        (LOOSE, b""),
        (CUT, b"\x1e~1"),
        (CUT, b"\x1e"),
        (MARKED, b"\x1e2"),
        (LOOSE, b"abc"),
        (MARKED, b"\x1e"),
    ]
    for portion in (1, 2, 3, 5, 7, 100):
        assert items(data, portion, 8) == expected, portion


def test_the_limits_of_items_one_below_at_and_above():
    for portion in (1, 3, 100):
        for size in (7, 8):
            assert items(b"x" * size + b"\n", portion, 8) == [(LOOSE, b"x" * size)]
            assert items(b"\x1e" + b"x" * (size - 1) + b"\n", portion, 8) == [
                (MARKED, b"\x1e" + b"x" * (size - 1))
            ]
        assert items(b"x" * 9 + b"\nok\n", portion, 8) == [(LONG, b"9"), (LOOSE, b"ok")]
        assert items(b"\x1e" + b"x" * 8 + b"\x1eok\n", portion, 8) == [
            (OVER, b"9"),
            (MARKED, b"\x1eok"),
        ]


# -- a plain line


def test_a_plain_line_is_text_and_records():
    line = Line(BOARD, 260, 60, limit=80)
    for portion in (1, 2, 1000):
        data = (
            b'hi\r\n\x1e{"a":1}\n{"b":2}\n> \x1e[3]\n\x1e[4\x1e\n'
            + b"y" * 81
            + b"\n\x1e"
            + b"z" * 80
            + b"\n"
        )
        events = []
        for pos in range(0, len(data), portion):
            events += told(line, data[pos : pos + portion])
        assert events == [
            (TEXT, b"hi"),
            (RECORD, b'{"a":1}'),
            (TEXT, b'{"b":2}'),
            (TEXT, b"> "),
            (RECORD, b"[3]"),
            (TOO_LONG, b"81"),
            (TOO_LONG, b"81"),
        ]
    line.send(b"{}", 0)
    assert (
        line.waiting == 2
        and written(line) == b"\x1e{}\n"
        and line.waiting == 0
        and line.deadline() is None
    )


def test_a_line_that_is_not_plain_believes_nothing_before_a_hello():
    line = Line(BOARD, 260, plain=False)
    line.send(b"{}", 0)
    assert (
        told(line, b"open the valve\n\x1e{}\n") == [(UNSURE, b"open the valve")]
        and line.damaged == 1
    )
    assert written(line) == b""
    assert told(line, greeting(HOST, 0, 4096, 160)) == [(UP, b"4096")]
    assert [frame[2] for frame in frames(written(line), HOST ^ BOARD)] == [HELLO, DATA]


def test_in_a_session_text_is_unsure_and_a_plain_record_is_noise():
    host, board = pair()
    assert told(board, b'open the valve"}\n\x1e{"jsonrpc":"2.0"}\n' + b"x" * 9000 + b"\n") == [
        (UNSURE, b'open the valve"}')
    ]
    assert board.damaged == 2  # a host has no text in a session: it is asked to go back
    assert told(host, b"Traceback\nKeyError> ") == [(UNSURE, b"Traceback")]


# -- sessions


def test_hello_behind_a_prompt_and_in_single_bytes():
    board = Line(BOARD, 260)
    events = []
    for byte in b"> \x1e~00\x1e" + greeting(HOST, 0, 512, 80)[1:]:
        events += told(board, bytes([byte]))
    assert events == [(TEXT, b"> "), (UP, b"512")]
    assert decode(written(board)[:-1], 0) == (0, 0, HELLO, b"0200001001000020020104a0")


def test_hello_is_said_again_until_there_is_an_answer():
    host = Line(HOST, 4096)
    host.hello(1000)
    first, times = written(host), []
    while host.deadline() is not None and len(times) < 99:
        times.append(host.deadline())
        host.tick(times[-1] - 1)
        assert written(host) == b""
        host.tick(times[-1])
        again = written(host)
        assert again == (first if host.deadline() is not None else b"")
    answer = 4096 * 10000 // 115200  # ms of what the peer may have written before
    assert [times[i + 1] - times[i] - answer for i in range(5)] == [600, 1200, 2400, 4000, 4000]
    assert times[0] == 1300 + answer and 31000 <= times[-1] <= 35400
    assert told(host, b"") == [(DOWN, b"silent 0")]
    host.hello(40000)
    assert written(host) not in (b"", first)  # a nonce of its own


def test_a_repeated_hello_changes_nothing():
    host, board = pair()
    host.send(b'{"a":1}', 0)
    assert settle(host, board) == [(RECORD, b'{"a":1}')]
    assert told(board, greeting(0x1002, 0, 4096, 160)) == []
    answer = written(board)
    assert frames(answer)[0][2] == HELLO and told(host, answer) == []
    host.send(b'{"a":2}', 0)
    assert settle(host, board) == [(RECORD, b'{"a":2}')]


def test_late_and_echoed_hellos_are_ignored():
    host, board = pair()
    late = (
        greeting(0x999, 0x3333, 260, 160)
        + greeting(0x1002, 0, 4096, 160)
        + greeting(0x1002, 0, 1, 1)
    )
    assert told(host, late) == [] and written(host) == b""
    assert (
        told(board, greeting(0x1002, BOARD, 260, 160) + greeting(0, 0, 4096, 160)) == []
        and written(board) == b""
    )
    host.send(b"{}", 0)
    assert settle(host, board) == [(RECORD, b"{}")]


def test_another_version_is_told_and_answered():
    def said(version, host, board):
        payload = b"%02x%08x%08x0104a0" % (version, host, board)
        return encode(0, 0, HELLO, payload, 0)

    host, board = Line(HOST, 4096), Line(BOARD, 260)
    host.hello(0)
    host.send(b"{}", 0)
    written(host)
    assert (
        told(host, said(9, 0x1002, BOARD)) == [(DOWN, b"version 1")]
        and host.waiting == 0
        and host.deadline() is None
    )
    assert told(board, said(9, HOST, 0)) == []
    assert frames(written(board))[0][3][:2] == b"02"
    board.send(b"{}", 0)
    assert written(board) == b"\x1e{}\n"


def test_a_new_host_starts_anew_and_old_frames_do_not_pass():
    host, board = pair()
    board.send(b'{"old":1}', 0)
    old = written(board)
    host.send(b'{"cut":"' + b"x" * 200 + b'"}', 0)
    started = host.output()
    assert told(board, started) == []
    host = Line(0x5000, 4096)
    host.hello(0)
    assert told(host, old) == []
    assert told(board, written(host)) == [(DOWN, b"restarted 1"), (UP, b"4096")]
    assert told(host, written(board)) == [(UP, b"260")]
    assert (
        told(host, old) == []
        and told(board, started) == []
        and (host.damaged, board.damaged) == (2, 1)
    )
    host.send(b'{"new":1}', 0)
    assert settle(host, board) == [(RECORD, b'{"new":1}')]


def test_a_board_that_restarted_says_so_and_the_host_starts_anew():
    host, board = pair()
    host.send(b'{"a":1}', 0)
    host.send(b'{"a":2}', 0)
    board = Line(0x7777, 260)
    assert told(board, written(host)) == []
    reset = written(board)
    assert decode(reset[:-1], 0) == (0, 0, RESET, b"")
    assert told(host, reset) == []
    assert told(board, written(host)) == [(UP, b"4096")]
    assert told(host, written(board)) == [(DOWN, b"restarted 2"), (UP, b"260")]
    assert host.waiting == 0
    host.send(b'{"a":3}', 0)
    assert settle(host, board) == [(RECORD, b'{"a":3}')]


def test_a_board_that_has_just_begun_to_listen_is_greeted_at_once():
    host = Line(HOST, 4096)
    host.hello(0)
    first = written(host)  # nobody heard it
    reset = encode(0, 0, RESET, b"", 0)
    assert (
        told(host, encode(0, 0, RESET, b"", 7) + encode(0, 0, ACK, b"", 0)) == []
        and written(host) == b""
    )
    assert told(host, reset) == [] and written(host) == first
    board = Line(BOARD, 260)
    assert told(board, first) == [(UP, b"4096")] and told(host, written(board)) == [(UP, b"260")]


def test_a_forged_reset_only_asks_for_a_hello():
    host, board = pair()
    assert (
        told(host, encode(0, 0, RESET, b"", 0)) == []
        and told(board, encode(0, 0, RESET, b"", 0)) == []
    )
    assert told(board, written(host)) == [] and told(host, written(board)) == []
    host.send(b"{}", 0)
    assert settle(host, board) == [(RECORD, b"{}")]


def test_close_tells_the_peer_once_and_again_when_it_goes_on():
    host, board = pair()
    board.send(b"{}", 0)
    late = written(board)
    host.send(b"{}", 0)
    host.close(0)
    lost = written(host)
    assert written(host) == b"" and host.waiting == 0 and host.deadline() is None
    assert told(host, late) == []  # the first reset was lost
    again = written(host)
    assert again == lost
    assert told(board, again) == [(DOWN, b"closed 1")]
    assert told(board, b"a person\n") == [(TEXT, b"a person")]


def test_a_frame_before_a_hello_in_the_same_portion_does_not_end_the_session():
    board = Line(BOARD, 260)
    assert told(board, encode(3, 3, DATA, b"{}", 99) + greeting(HOST, 0, 4096, 160)) == [
        (UP, b"4096")
    ]
    assert [frame[2] for frame in frames(written(board))] == [HELLO]


# -- records


def test_records_of_every_size_around_a_fragment_and_the_limit():
    host, board = pair(limit=1000)
    for size in (1, 2, 159, 160, 161, 319, 320, 321, 999, 1000):
        for one, other in ((host, board), (board, host)):
            record = b"[" + b"1" * (size - 1)
            one.send(record, 0)
            assert settle(one, other) == [(RECORD, record)], size
    host.send(b"x" * 1001, 0)
    host.send(b"{}", 0)
    assert settle(host, board) == [(TOO_LONG, b"1001"), (RECORD, b"{}")]


def test_what_is_no_record_is_refused():
    host, board = pair()
    for record in (b"", b"a\nb", b"\x1e", b"{}\r", b"a\x03", b"x" * 8193):
        for line in (host, Line(1, 260)):
            try:
                line.send(record, 0)
            except ValueError:
                pass
            else:
                assert False, record
    host.send(b"x" * 8192, 0)
    assert host.waiting == 8192


def test_the_backlog_one_below_at_and_above():
    for line in (
        pair(backlog=9000)[0],
        Line(1, 260, backlog=9000),
        Line(1, 260, backlog=9000, plain=False),
    ):
        line.send(b"x" * 8000, 0)
        for size, fits in ((999, True), (1, True), (1, False)):
            try:
                line.send(b"y" * size, 0)
            except ClawError as e:
                assert not fits and e.message == "the line is full: 9000 bytes wait to be sent"
            else:
                assert fits
    host, board = pair(backlog=9000)
    host.send(b"x" * 8192, 0)
    settle(host, board)
    told(host, encode(0, 52, ACK, b"", SEED))
    assert host.waiting == 0


def test_windows_and_fragments_one_below_at_and_above():
    smallest = 80
    for window, fragment, limit, good in (
        (79, 10, 80, False),
        (80, 25, 80, True),
        (81, 26, 80, True),
        (80, 26, 80, False),
        (65535, 240, 999, True),
        (65535, 241, 999, False),
        (65536, 240, 999, False),
        (260, 0, 80, False),
        (260, 205, 999, True),
        (260, 206, 999, False),
        (260, 1, 79, False),
        (260, 1, 80, True),
        (260, 160, 170, False),
        (260, 160, 171, True),
    ):
        try:
            Line(1, window, fragment, limit)
        except ValueError:
            assert not good, (window, fragment)
        else:
            assert good, (window, fragment)
    host, board = pair(smallest, 16)
    host.send(b"x" * 100, 0)
    assert settle(host, board) == [(RECORD, b"x" * 100)]


def test_the_sender_keeps_to_the_window_whatever_the_size_of_records():
    for window in (80, 100, 239, 240, 260, 512):
        fragment = min(160, window - 55)
        for size in (1, 8, 59, 60, 100, 160, 200):
            host, board = pair(window, fragment)
            for _ in range(40):
                host.send(b"x" * size, 0)
            got, most = [], 0
            while host.waiting:
                sent = written(host)
                most = max(most, len(sent))
                assert 0 < len(sent) <= window - RESERVE
                got += told(board, sent)
                board.tick(60)  # the acknowledgement need not wait
                told(host, written(board))
            assert got == [(RECORD, b"x" * size)] * 40
            assert most + min(size, fragment) + COST > window - RESERVE


def test_never_more_frames_in_flight_than_half_the_numbers():
    sender = Sender(115200, 4096)
    sender.records = [b"x"] * 300
    sender.begin(160, 65535, 0)
    count = 0
    while sender.next_frame(0):
        count += 1
    assert count == MAX_FLIGHT == 127
    # 128: not sent; 255: old
    assert sender.acknowledge(128, 0) == 0 and sender.acknowledge(255, 0) == 0
    assert sender.acknowledge(127, 0) == 127 and sender.next_frame(0)[0] == 127


def test_numbers_wrap():
    host, board = pair()
    for number in range(600):
        host.send(b"[%d]" % number, number)
        board.send(b"[%d]" % -number, number)
        assert told(board, written(host), number) == [(RECORD, b"[%d]" % number)]
        assert told(host, written(board), number) == [(RECORD, b"[%d]" % -number)]
    assert (host.damaged, board.damaged) == (0, 0)


# -- acknowledgements and going back


def test_an_acknowledgement_waits_for_a_frame_that_goes_its_way():
    host, board = pair()
    host.send(b"{}", 0)
    assert told(board, written(host), 5) == [(RECORD, b"{}")]
    assert written(board) == b"" and board.deadline() == 65
    board.send(b"[]", 20)
    frame = frames(written(board))
    assert frame == [(0, 1, DATA, b"[]")] and board.deadline() > 300
    told(host, encode(0, 1, DATA, b"[]", SEED), 30)
    host.tick(89)
    assert host.waiting == 0 and written(host) == b""
    host.tick(90)
    assert frames(written(host)) == [(0, 1, ACK, b"")] and host.deadline() is None


def test_an_acknowledgement_does_not_wait_when_the_peer_may():
    host, board = pair()
    host.send(b"x" * 400, 0)
    assert told(board, written(host)) == [] and frames(written(board)) == [(0, 1, ACK, b"")]


def test_a_damaged_frame_is_asked_for_again_and_never_acted_on():
    host, board = pair(512)
    for number in range(3):
        host.send(b"[%d]" % number, 0)
    sent = written(host)
    assert told(board, sent.replace(b"[0]", b"[7]"), 1) == [] and board.damaged == 1
    asked = written(board)
    assert frames(asked) == [(1, 0, ACK, b"")]
    assert told(host, asked, 10) == []
    again = written(host)  # half as many
    assert sent.startswith(again) and len(frames(again)) == 2
    assert told(board, again, 11) == [(RECORD, b"[0]"), (RECORD, b"[1]")]
    assert told(host, written(board), 12) == [] and told(board, written(host), 13) == [
        (RECORD, b"[2]")
    ]
    assert frames(written(board)) == [(0, 3, ACK, b"")]


def test_a_missing_frame_is_asked_for_once():
    host, board = pair(512)
    for number in range(4):
        host.send(b"[%d]" % number, 0)
    one = host.output()
    assert one
    rest = [host.output() for _ in range(3)]
    assert told(board, rest[0]) == [] and frames(written(board)) == [(1, 0, ACK, b"")]
    assert told(board, rest[1] + rest[2]) == [] and written(board) == b""
    assert told(board, one) == [(RECORD, b"[0]")] and frames(written(board)) == [(0, 1, ACK, b"")]


def test_a_frame_that_came_before_is_acknowledged_and_not_handed_on():
    host, board = pair()
    host.send(b"{}", 0)
    sent = written(host)
    assert told(board, sent + sent + sent, 0) == [(RECORD, b"{}")]
    assert frames(written(board)) == [(0, 1, ACK, b"")]


def test_old_and_new_numbers_differ_up_to_half_of_them():
    for ahead, nak, ack_at in (
        (1, True, None),
        (127, True, None),
        (128, False, 5),
        (255, False, 5),
    ):
        receiver = Receiver(260, 160, 8192)
        assert receiver.take(ahead, DATA, b"{}", 5) is None and (receiver.nak, receiver.ack_at) == (
            nak,
            ack_at,
        ), ahead


def test_a_frame_whose_lf_is_lost_is_whole_when_the_next_begins():
    host, board = pair(512)
    host.send(b"[1]", 0)
    host.send(b"[2]", 0)
    assert (
        told(board, host.output()[:-1] + b"\r" + host.output())
        == [(RECORD, b"[1]"), (RECORD, b"[2]")]
        and board.damaged == 0
    )


def test_going_back_twice_takes_the_time_of_the_first():
    sender = Sender(9600, 260)
    sender.records = [bytes([number]) * 89 for number in b"xyz!"]
    sender.begin(160, 200, 0)
    assert sender.next_frame(1000) and sender.next_frame(1000) and not sender.next_frame(1000)
    sender.go_back(1010)
    assert (
        sender.next_frame(1010) == (0, DATA, b"x" * 89)
        and sender.resent == 1
        and not sender.next_frame(1010)
    )
    sender.go_back(1209)  # 200 bytes at 9600 baud take 210 ms: they may still come
    assert not sender.next_frame(1209)
    sender.go_back(1210)
    assert sender.next_frame(1210)[0] == 0 and sender.resent == 2
    assert sender.acknowledge(2, 1300) == 178  # the second copy was not needed
    assert sender.next_frame(1300) == (2, DATA, b"z" * 89)
    sender.go_back(1301)  # for the next frame at once
    assert sender.next_frame(1301) == (2, DATA, b"z" * 89)


def test_time_out_back_off_and_end():
    host, board = pair()
    host.send(b"x" * 100, 0)
    host.send(b"y" * 20, 0)
    first, times = host.output(), []
    assert first and written(host)
    while host.deadline() is not None and len(times) < 99:
        times.append(host.deadline())
        host.tick(times[-1] - 1)
        assert written(host) == b""
        host.tick(times[-1])
        # one frame, until there is an answer
        assert written(host) == (first if host.deadline() is not None else b"")
    pauses = [times[i + 1] - times[i] for i in range(5)]
    answer = 4096 * 10000 // 115200  # ms of what the peer may have written before
    assert times[0] == 10 + 3 + answer + 300 and pauses == [
        pause + 10 + answer for pause in (600, 1200, 2400, 4000, 4000)
    ]
    assert 30000 <= times[-1] <= 34100
    assert told(host, b"") == [(DOWN, b"silent 2")] and host.waiting == 0
    assert told(host, encode(0, 1, ACK, b"", SEED)) == []


def test_patience_begins_when_something_is_sent():
    host, board = pair()
    host.send(b"{}", 0)
    settle(host, board)
    board.tick(60)
    told(host, written(board), 60)
    host.send(b"[]", 100000)
    assert written(host)
    host.tick(host.deadline())
    assert written(host) and told(host, b"", 101000) == []


def test_an_answer_ends_the_back_off():
    host, board = pair()
    host.send(b"x" * 400, 0)
    host.output()
    host.tick(400)
    host.output()
    told(host, encode(0, 1, ACK, b"", SEED), 500)
    assert (
        frames(host.output())[0][0] == 1
        and host.deadline() == 500 + 300 + 15 + 4096 * 10000 // 115200
    )


def test_a_record_too_long_for_the_receiver_is_counted():
    for size, expected in ((9, RECORD), (10, RECORD), (11, TOO_LONG), (30, TOO_LONG)):
        receiver = Receiver(260, 4, 10)
        number, event = 0, None
        for at in range(0, size, 4):
            event = receiver.take(
                number, MORE if at + 4 < size else DATA, b"x" * min(4, size - at), 0
            )
            number += 1
        assert event == (expected, b"x" * size if expected == RECORD else b"%d" % size)


# -- three in a row


def test_three_in_a_row_leave():
    for portions in ((b"\x03\x03\x03",), (b"a\x03", b"\x03", b"\x03")):
        stop = Stop()
        results = [stop.feed(data, 0) for data in portions]
        assert [left for _, left in results] == [False] * (len(portions) - 1) + [
            True
        ] and stop.pressed == 3


def test_fewer_or_with_something_between_or_too_slowly_do_not():
    stop = Stop()
    assert stop.feed(b"\x03\x03a\x03\x03", 0) == (b"a", False)
    assert stop.feed(b"hello", 0) == (b"hello", False)
    assert stop.feed(b"\x03", 0) == (b"", False) and stop.feed(b"", 0) == (b"", False)
    assert stop.feed(b"\x03", 1) == (b"", False)
    assert stop.feed(b"\x03", WITHIN_MS + 1) == (b"", False)
    assert stop.feed(b"\x03rest", WITHIN_MS + 1) == (b"", True)
    assert stop.pressed == 8


def test_three_within_the_time_leave():
    for last, left in ((WITHIN_MS - 1, True), (WITHIN_MS, True), (WITHIN_MS + 1, False)):
        stop = Stop()
        assert stop.feed(b"\x03", 0) == stop.feed(b"\x03", 0) == (b"", False)
        assert stop.feed(b"\x03", last) == (b"", left)

"""The record log (clawlite/linux/files/record_log.py)."""

import os

import pytest
from faults import SHORT, Faults

from clawlite.linux.files import files, record_log
from clawlite.linux.files.record_log import Fold, RecordLog, frame, is_sealed, seal


@pytest.fixture
def log(tmp_path):
    one = RecordLog(str(tmp_path / "a" / "records"), "the test")
    one.open()
    yield one
    one.close()


def test_what_is_appended_is_there(log):
    log.append(b"one\n", False)
    log.append(b"two\n", True)
    assert log.contents() == b"one\ntwo\n" and log.contents(4) == b"two\n" and log.size == 8
    assert os.stat(log.path).st_mode & 0o777 == 0o600


@pytest.mark.parametrize("count", [2, 3])  # the write fails; what undoes it fails, too
def test_a_part_of_a_record_is_taken_back_at_once_or_before_the_next(log, count, monkeypatch):
    log.append(b"one\n", False)
    with Faults(monkeypatch, [record_log, files]).at(1, SHORT, count):
        with pytest.raises(OSError):
            log.append(b"half of it is written\n", False)
    assert (log.contents() == b"one\n") == (count == 2)
    log.append(b"two\n", False)
    assert log.contents() == b"one\ntwo\n" and log.size == 8


def test_a_rewrite_takes_the_place_of_the_file_and_is_open(log):
    log.append(b"old\n", False)
    log.rewrite([b"new\n", b"lines\n"], True)
    log.append(b"more\n", False)
    with open(log.path, "rb") as file:
        assert file.read() == b"new\nlines\nmore\n"
    assert os.listdir(os.path.dirname(log.path)) == ["records"]


def test_a_rewrite_follows_no_link(log, tmp_path):
    other = tmp_path / "other"
    other.write_text("mine")
    os.symlink(other, log.path + ".new")
    log.rewrite([b"new\n"], False)
    assert other.read_text() == "mine" and not os.path.islink(log.path)


def test_who_replaces_the_file_is_told_of(log, capfd):
    assert not log.was_replaced()
    os.unlink(log.path)
    assert log.was_replaced() and log.fd is None
    assert "the test %s was removed or replaced" % log.path in capfd.readouterr().err


def test_what_is_set_aside_stays_beside_it(log):
    log.append(b"one\ntwo\n", False)
    names = [log.set_aside(), log.set_aside(4)]
    assert names == [log.path + ".damaged", log.path + ".damaged.2"]
    with open(names[0], "rb") as first, open(names[1], "rb") as second:
        assert (first.read(), second.read()) == (b"one\ntwo\n", b"two\n")


def test_a_sealed_line_with_any_bit_changed_is_none():
    line = seal(b'["+",1]')[:-1]
    assert is_sealed(line) and line[:-9] == b'["+",1]'
    for bit in range(8 * len(line)):
        changed = bytearray(line)
        changed[bit // 8] ^= 1 << bit % 8
        assert not is_sealed(bytes(changed))


def _lines(log, data: bytes, *about, **more) -> tuple:
    """Return ([line that was applied], what ``fold`` says) of a file with *data*; a line "bad" is
    damaged.
    """
    log.rewrite([data], False)
    found = []

    def apply(line):
        found.append(line)
        return line != b"bad"

    return found, log.fold(apply, *about, **more)


def test_whole_lines_are_applied_and_a_torn_end_is_not(log):
    assert _lines(log, b"") == ([], Fold(0, [], 0, 0))
    assert _lines(log, b"one\ntwo\nth") == ([b"one", b"two"], Fold(2, [], 8, 10))
    assert _lines(log, b"one\ntwo\nth", start=4) == ([b"two"], Fold(1, [], 8, 10))


def test_damaged_lines_are_counted_and_the_end_is_behind_the_last_good_one(log):
    lines, read = _lines(log, b"bad\none\nbad\nx")
    assert lines == [b"bad", b"one", b"bad"] and read == Fold(3, [1, 3], 8, 13)


@pytest.mark.parametrize("end", [b"", b"\x0b"])
def test_a_last_line_without_its_line_feed_counts_when_it_is_known_to_be_whole(log, end):
    data = seal(b"one") + seal(b"two")[:-1]
    found, read = _lines(log, data + end, is_sealed)
    assert found == [seal(b"one")[:-1], seal(b"two")[:-1]]
    assert read == Fold(2, [], len(data), len(data + end), True)


def test_a_file_is_read_in_pieces_open_or_not(log, monkeypatch):
    monkeypatch.setattr(record_log, "_PIECE", 3)
    expected = [b"one", b"and two"], Fold(2, [], 12, 14)
    assert _lines(log, b"one\nand two\nth") == expected
    log.close()
    found = []
    assert (found, log.fold(found.append)) == expected and log.fd is None
    os.unlink(log.path)
    assert log.fold(found.append) == Fold(0, [], 0, 0) and not os.path.exists(log.path)


def _frames(log, data: bytes) -> tuple:
    log.rewrite([data], False)
    found = []
    return found, log.fold_framed(found.append)


def test_framed_records_end_before_the_first_that_is_torn_or_damaged(log):
    data = frame(b"one") + frame(b"two")
    assert _frames(log, data) == ([b"one", b"two"], Fold(2, [], 22, 22))
    for size in range(11, 22):
        assert _frames(log, data[:size]) == ([b"one"], Fold(1, [], 11, size))
    for bit in range(8 * 11, 8 * 22):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        assert _frames(log, bytes(changed)) == ([b"one"], Fold(1, [], 11, 22))
    assert log.fold_framed(lambda payload: False) == Fold(0, [], 0, 22)

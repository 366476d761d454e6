"""The record log (clawlite/linux/files/record_log.py)."""

import os

import pytest
from faults import SHORT, Faults

from clawlite.linux.files import files, record_log
from clawlite.linux.files.record_log import RecordLog, frame, is_sealed, payloads, seal


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
    names = [log.set_aside(b"first"), log.set_aside(b"second")]
    assert names == [log.path + ".damaged", log.path + ".damaged.2"]
    with open(names[0], "rb") as file:
        assert file.read() == b"first"


def test_a_sealed_line_with_any_bit_changed_is_none():
    line = seal(b'["+",1]')[:-1]
    assert is_sealed(line) and line[:-9] == b'["+",1]'
    for bit in range(8 * len(line)):
        changed = bytearray(line)
        changed[bit // 8] ^= 1 << bit % 8
        assert not is_sealed(bytes(changed))


def test_framed_records_end_before_the_first_that_is_torn_or_damaged():
    data = frame(b"one") + frame(b"two")
    assert list(payloads(data)) == [(b"one", 11), (b"two", 22)]
    for size in range(11, 22):
        assert list(payloads(data[:size])) == [(b"one", 11)]
    for bit in range(8 * 11, 8 * 22):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        assert list(payloads(bytes(changed))) == [(b"one", 11)]

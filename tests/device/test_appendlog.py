"""The append-only log of boards: its bytes, its bounds, what damage does to it, and power that
goes at any moment.
"""

import json
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pico_stack
import pytest

HERE = Path(__file__).parent
STORES = HERE.parents[1] / "firmware-host/micropython/stores"


@pytest.fixture
def log(monkeypatch, tmp_path):
    """The module, as CPython runs it, and a path."""
    monkeypatch.syspath_prepend(str(STORES))
    import appendlog

    yield appendlog, str(tmp_path / "a.log")
    del sys.modules["appendlog"]


def contents(log) -> list:
    return [log[0].read(log[1], *place) for place in log[0].walk(log[1])]


def test_bytes_of_a_record(log):
    assert log[0].start(log[1]) == (0, 0)
    assert log[0].append(log[1], b"hello", 0) == 13
    crc = zlib.crc32(b"hello", zlib.crc32(b"\0\0\0\5"))
    assert Path(log[1]).read_bytes() == struct.pack(">II", 5, crc) + b"hello"
    assert (
        log[0].append(log[1], b"x", 13) == 22
        and contents(log) == [b"hello", b"x"]
        and log[0].start(log[1]) == (22, 0)
    )


def test_bounds_of_a_payload(log):
    most = log[0].MAX_PAYLOAD
    end = log[0].append(log[1], b"x" * most, log[0].append(log[1], b"x" * (most - 1), 0))
    for payload in (b"", b"x" * (most + 1)):
        with pytest.raises(ValueError, match="expected a payload of 1 to 8192 bytes"):
            log[0].append(log[1], payload, end)
    assert [len(one) for one in contents(log)] == [most - 1, most]


@pytest.mark.parametrize("at", range(0, 26))
def test_whatever_is_damaged_ends_the_log_there(log, at):
    """A byte that is another one, and a file that ends there: two records of 13 bytes."""
    for torn in (False, True):
        end = log[0].append(log[1], b"three", log[0].append(log[1], b"hello", 0))
        data = bytearray(Path(log[1]).read_bytes())
        data[at] ^= 0x41
        Path(log[1]).write_bytes(data[:at] if torn else data)
        whole = at // 13 * 13
        assert log[0].start(log[1]) == (whole, (at if torn else end) - whole)
        left = contents(log)
        assert left == [b"hello"][: at // 13]
        assert log[0].append(log[1], b"next", whole) == whole + 12 and contents(log) == left + [
            b"next"
        ]
        os.remove(log[1])


def test_a_length_beyond_all_bounds(log):
    Path(log[1]).write_bytes(b"\xff" * 300)
    assert log[0].start(log[1]) == (0, 300) and contents(log) == []


def test_a_rewrite_that_was_ended(log):
    """Before its rename: forgotten.  On FAT, after the old name went: finished."""
    end = log[0].append(log[1], b"hello", 0)
    Path(log[1] + ".new").write_bytes(b"half of it")
    assert log[0].start(log[1]) == (end, 0) and not os.path.exists(log[1] + ".new")
    os.rename(log[1], log[1] + ".new")
    assert log[0].start(log[1]) == (end, 0) and contents(log) == [b"hello"]


def powerless(micropython, tmp_path, folder: Path = STORES) -> dict:
    done = subprocess.run(
        [
            *pico_stack.program(HERE / "log_board.py", before=(folder,)),
            "12",
            tmp_path / "out.json",
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    return json.loads((tmp_path / "out.json").read_text())


def test_power_that_goes_at_any_moment(micropython, tmp_path):
    found = powerless(micropython, tmp_path)
    assert found["wrong"] == [] and found["states"] > 60, found


@pytest.mark.parametrize("bug", ["a record in two", "the old one goes first"])
def test_the_checker_bites(micropython, tmp_path, bug):
    source = (STORES / "appendlog.py").read_text()
    for before, after in {
        "a record in two": [
            (
                "    file.write(head + struct.pack",
                "    file.write(head)\n    file.flush()\n    file.write(struct.pack",
            )
        ],
        "the old one goes first": [
            (
                '    os.rename(path + ".new", path)\n    return',
                '    os.remove(path)\n    os.rename(path + ".new", path)\n    return',
            ),
            ('            os.rename(path + ".new", path)\n', "            return 0, 0\n"),
        ],
    }[bug]:
        assert before in source
        source = source.replace(before, after)
    (tmp_path / "appendlog.py").write_text(source)
    assert powerless(micropython, tmp_path, tmp_path)["wrong"]

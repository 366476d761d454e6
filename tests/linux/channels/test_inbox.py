"""The file of messages that are not done: torn, damaged, rewritten, killed, and what a broker
sends again.
"""

import random
import signal
import subprocess
import sys

import pytest
from agents import environment
from faults import SHORT, Faults

from clawlite.linux.channels import inbox
from clawlite.linux.channels.inbox import REMEMBERED, Inbox, digest_of
from clawlite.linux.files import files, record_log


def opened(folder) -> Inbox:
    return Inbox(str(folder / "jobs.queue"))


def take(box: Inbox, *texts: str, first: int = 1) -> list:
    return box.take(
        [
            (first + number, digest_of("t", text.encode()), "ann", text, b"\0c")
            for number, text in enumerate(texts)
        ]
    )


def texts(box: Inbox) -> list:
    return [item.text for item in box.waiting.values()]


def test_what_is_not_done_is_there_again(tmp_path):
    box = opened(tmp_path)
    one, two, three = take(box, "one", "two", "thr\u00e9e\n")
    box.begins(two)
    box.remove(one)
    again = opened(tmp_path)
    assert texts(again) == ["two", "thr\u00e9e\n"] and [
        item.begun for item in again.waiting.values()
    ] == [1, 0]
    assert [(item.actor, item.correlation) for item in again.waiting.values()] == [
        ("ann", b"\0c")
    ] * 2
    assert take(again, "four")[0].number == 4, "no number is used twice"


def test_what_lacks_its_replys_arrival_has_its_reply_again(tmp_path, monkeypatch):
    monkeypatch.setattr(inbox, "REWRITE_BYTES", 2000)
    box = opened(tmp_path)
    one, two = take(box, "one", "two")
    box.keep_answer(one, "It is \u00e9.")
    assert [item.answer for item in opened(tmp_path).waiting.values()] == ["It is \u00e9.", None]
    for number in range(40):
        box.remove(take(box, "text %d" % number)[0])
    again = opened(tmp_path)
    assert [item.answer for item in again.waiting.values()] == ["It is \u00e9.", None] and (
        tmp_path / "jobs.queue"
    ).stat().st_size < 6000
    again.remove(list(again.waiting.values())[0])
    assert texts(opened(tmp_path)) == ["two"]


def test_what_comes_again_is_known_by_its_packet_and_its_content(tmp_path):
    box = opened(tmp_path)
    take(box, "one", first=7)
    for known in (box, opened(tmp_path)):
        assert known.knows(7, digest_of("t", b"one"))
        assert (
            not known.knows(8, digest_of("t", b"one"))
            and not known.knows(7, digest_of("t", b"two"))
            and not known.knows(7, digest_of("u", b"one"))
        )
    box.forget()
    assert not box.knows(7, digest_of("t", b"one"))


@pytest.mark.parametrize("more, known", [(REMEMBERED - 1, True), (REMEMBERED, False)])
def test_so_many_are_remembered(more, known):
    box = Inbox(None)
    take(box, "one", first=70000)
    take(box, *["x"] * more)
    assert box.knows(70000, digest_of("t", b"one")) is known


def test_every_torn_end_loses_what_was_not_acknowledged_alone(tmp_path):
    box = opened(tmp_path)
    take(box, "one")
    whole = (tmp_path / "jobs.queue").stat().st_size
    take(box, "two")
    data = (tmp_path / "jobs.queue").read_bytes()
    for end in range(whole, len(data)):
        (tmp_path / "jobs.queue").write_bytes(data[:end])
        again = opened(tmp_path)
        assert texts(again) in (["one"], ["one", "two"]) and (
            texts(again) == ["one"] or end == len(data) - 1 or data[:end].endswith(b"]")
        )
        take(again, "three")
        assert texts(opened(tmp_path))[-1] == "three", (
            "what comes next is not glued to the torn line"
        )
        again.close()


def test_damage_is_passed_over(tmp_path):
    box = opened(tmp_path)
    take(box, "one", "two", "three")
    lines = (tmp_path / "jobs.queue").read_bytes().split(b"\n")
    for damage in (
        b"\xff\0",
        b"[]",
        b'["+"]',
        b'["+",2,1,"d",7,"x",""]',
        b'["+","2",1,"d","a","x",""]',
        b'["+",2,1,"d","a","x","zz"]',
        b'["b",99]',
        b'["-",99]',
        b'["m",7]',
        b'["r",1,7]',
        b'["r",1]',
        b'["r",99,"x"]',
        b"{}",
        b"7",
    ):
        (tmp_path / "jobs.queue").write_bytes(b"\n".join([lines[0], damage, *lines[2:]]))
        assert texts(opened(tmp_path)) == ["one", "three"], damage


def test_it_is_rewritten_when_it_is_long_and_nothing_is_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(inbox, "REWRITE_BYTES", 2000)
    box = opened(tmp_path)
    kept = take(box, "kept", first=900)[0]
    box.begins(kept)
    for number in range(100):
        (item,) = take(box, "text %d" % number, first=number)
        box.remove(item)
    assert (tmp_path / "jobs.queue").stat().st_size < 12000 and not (
        tmp_path / "jobs.queue~"
    ).exists()
    again = opened(tmp_path)
    assert (
        texts(again) == ["kept"]
        and again.waiting[1].begun == 1
        and again.knows(99, digest_of("t", b"text 99"))
        and again.knows(900, digest_of("t", b"kept"))
    )


def test_a_write_that_is_cut_short_leaves_nothing(tmp_path, monkeypatch):
    box = opened(tmp_path)
    take(box, "one")
    with Faults(monkeypatch, [files, record_log]).at(1, SHORT, 2), pytest.raises(OSError):
        take(box, "two")
    assert texts(box) == ["one"] and take(box, "three")[0].number == 2
    assert texts(opened(tmp_path)) == ["one", "three"]


def test_the_file_is_its_owners(tmp_path):
    box = opened(tmp_path / "channels")
    take(box, "one")
    assert (tmp_path / "channels" / "jobs.queue").stat().st_mode & 0o777 == 0o600 and (
        tmp_path / "channels"
    ).stat().st_mode & 0o777 == 0o700


WRITER = """
import os, sys
from clawlite.linux.files import files; from clawlite.linux.channels import inbox
inbox.REWRITE_BYTES = 3000
box = inbox.Inbox(sys.argv[1])
for item in list(box.waiting.values()):
    os.write(1, b"again %d\\n" % item.number)
    box.remove(item)
number = 0
while True:
    number += 1
    items = box.take([(number, "d", "", "m" * 50, b"")] * 3)
    os.write(1, b"".join(b"taken %d\\n" % item.number for item in items))
    for item in items[:2]:
        os.write(1, b"done %d\\n" % item.number)
        box.remove(item)
"""


def test_nothing_that_was_acknowledged_is_lost_over_kills(tmp_path):
    chance, open_ones, checked = random.Random(1), set(), 0
    for _ in range(25):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path / "jobs.queue")],
            env=environment(tmp_path),
            stdout=subprocess.PIPE,
        )
        lines = [writer.stdout.readline() for _ in range(chance.randrange(1, 300))]
        writer.send_signal(signal.SIGKILL)
        lines += writer.stdout.read().splitlines(True)
        writer.stdout.close()
        writer.wait()
        said = [line.split() for line in lines if line.endswith(b"\n")]
        again = {int(number) for word, number in said if word == b"again"}
        if any(word == b"taken" for word, _ in said):
            assert open_ones <= again, "taken, not done, and not there again"
            checked += len(open_ones)
        open_ones = {int(number) for word, number in said if word == b"taken"} - {
            int(number) for word, number in said if word == b"done"
        }
    assert checked > 100


def test_each_flipped_bit_is_told_and_the_file_is_set_aside(tmp_path, capfd):
    box = opened(tmp_path)
    take(box, "one", "two", "three")
    box.close()
    path = tmp_path / "jobs.queue"
    whole = path.read_bytes()
    rng = random.Random(13)
    for _ in range(300):
        data = bytearray(whole)
        data[rng.randrange(len(data) - 1)] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        again = opened(tmp_path)
        assert len(texts(again)) < 3 and set(texts(again)) <= {"one", "two", "three"}
        assert "was damaged" in capfd.readouterr().err
        assert (tmp_path / "jobs.queue.damaged").read_bytes() == data
        (tmp_path / "jobs.queue.damaged").unlink()
        assert texts(opened(tmp_path)) == texts(again) and not capfd.readouterr().err, (
            "it is told once"
        )


def test_lines_of_an_earlier_version_are_read(tmp_path, capfd):
    line = b'["+", 1, 7, "d1", "ann", "it is 12345678", "00"]\n["b", 1]\n'
    (tmp_path / "jobs.queue").write_bytes(line)
    box = opened(tmp_path)
    assert texts(box) == ["it is 12345678"] and box.waiting[1].begun == 1 and box.knows(7, "d1")
    take(box, "two", first=8)
    assert texts(opened(tmp_path)) == ["it is 12345678", "two"] and not capfd.readouterr().err
    box.close()

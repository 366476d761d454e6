"""The conversation of a board goes on after its end, whatever that was: what a provider is shown, retention, damage, a flash that fails."""
import os
import subprocess

import pytest
import words32
from llm_server import Server
from talking_board import answer, project, shown, turns


@pytest.fixture
def server():
    with Server(answer) as found:
        yield found


@pytest.fixture
def talk(micropython, tree, server, tmp_path):
    """Return a function that boots an image, says lines and ends: (image, *lines) -> what the board said; ``talk.log`` is its file."""
    def run(image, *lines, start: str = "start.py", path: str = ""):
        done = subprocess.run([micropython, "-X", "heapsize=400k", tree / start, image], input="".join(line + "\n" for line in lines).encode(),
                              capture_output=True, timeout=60, env=dict(os.environ, MICROPYPATH=path + f"{tree}:.frozen"))
        assert done.returncode == 0 and done.stderr == b"", (done.stdout, done.stderr)
        return done.stdout.decode()
    run.log = tmp_path / "garden/conversation.log"
    return run


@pytest.mark.parametrize("scope", ["", ", scope: per-identity", ", scope: per-channel"])
def test_it_goes_on_after_an_end(talk, server, tmp_path, scope):
    image = project(tmp_path / "garden", server, scope)
    talk(image, "my cat is Mia", "look at bed 2")
    said = talk(image, "and now?", "/memory")
    assert shown(server.requests[-1]) == turns("my cat is Mia", "look at bed 2") + ["user and now?"]
    assert "talk keeps this conversation over sessions.\n" in said and "see this conversation again: 3 turns" in said


def test_an_agent_without_a_store_has_no_file(talk, server, tmp_path):
    image = project(tmp_path / "garden", server)
    manifest = tmp_path / "garden/claw.yaml"
    manifest.write_text(manifest.read_text().partition("  memory:")[0])
    from clawlite.host import build
    talk(build.build_beside(str(tmp_path / "garden")), "hello")
    assert not talk.log.exists() and image


def test_another_agent_on_the_board_sees_none_of_it(talk, server, tmp_path):
    talk(project(tmp_path / "garden", server), "my cat is Mia")
    other = project(tmp_path / "garden", server, name="other")
    talk(other, "hello")
    assert shown(server.requests[-1]) == ["user hello"]
    talk(project(tmp_path / "garden", server), "and now?")
    assert shown(server.requests[-1]) == turns("my cat is Mia") + ["user and now?"]


def test_a_turn_without_its_answer_is_not_kept(talk, server, tmp_path):
    image = project(tmp_path / "garden", server)
    talk(image, "one")
    server.script = lambda request: {"status": 500, "body": b"down"}
    assert "provider remote: " in talk(image, "two")
    server.script = answer
    talk(image, "three")
    assert shown(server.requests[-1]) == turns("one") + ["user three"]


def test_a_torn_tail_is_cut_off_and_said_once(talk, server, tmp_path):
    image = project(tmp_path / "garden", server)
    talk(image, "one", "two")
    data = talk.log.read_bytes()
    talk.log.write_bytes(data[:-3])
    said = talk(image, "three")
    torn = len(data) // 2 - 3
    assert f"The conversation's log was damaged: its last {torn} bytes are lost.\n" in said
    assert shown(server.requests[-1]) == turns("one") + ["user three"]
    assert "damaged" not in talk(image, "four") and shown(server.requests[-1]) == turns("one", "three") + ["user four"]


def test_only_as_much_as_a_provider_sees_again_is_read(talk, server, tmp_path):
    """2 KiB of what was said; 32 KiB of it stay in flash."""
    image = project(tmp_path / "garden", server)
    texts = ["turn %d %s" % (number, "x" * 700) for number in range(40)]
    talk(image, *texts[:32])
    talk(image, *texts[32:])
    assert 16384 <= talk.log.stat().st_size <= 32768
    talk(image, "and now?")
    assert shown(server.requests[-1]) == turns(texts[-1]) + ["user and now?"]


def test_the_newest_entries(talk, server, tmp_path):
    image = project(tmp_path / "garden", server, ", retention: { max_entries: 5 }")
    texts = ["turn %d" % number for number in range(30)]
    talk(image, *texts)
    size = talk.log.stat().st_size
    talk(image, "and now?")
    assert shown(server.requests[-1]) == turns(*texts[-2:]) + ["user and now?"] and size < 11 * 80


def test_truncate_leaves_the_newest_half(talk, server, tmp_path):
    image = project(tmp_path / "garden", server, ", retention: { max_entries: 8 }, compaction: { strategy: truncate }")
    talk(image, *["turn %d" % number for number in range(5)])
    talk(image, "and now?")
    assert shown(server.requests[-1]) == turns("turn 3", "turn 4") + ["user and now?"]


def test_what_is_too_old(talk, server, tmp_path):
    """The clock of the machine stands; that of the records is set back."""
    import struct
    import zlib
    image = project(tmp_path / "garden", server, ", retention: { max_age: 1h }")
    talk(image, "one", "two", "three")
    records, data = [], talk.log.read_bytes()
    while data:
        length, = struct.unpack(">I", data[:4])
        records.append(data[8:8 + length])
        data = data[8 + length:]
    now, = struct.unpack(">I", records[0][:4])
    records[0] = b"\0\0\0\0" + records[0][4:]           # before the clock was set
    records[1] = struct.pack(">I", now - 3700) + records[1][4:]
    for record in records:
        head = struct.pack(">I", len(record))
        data += head + struct.pack(">I", zlib.crc32(head + record)) + record
    talk.log.write_bytes(data)
    talk(image, "and now?")
    assert shown(server.requests[-1]) == turns("three") + ["user and now?"]


def test_a_turn_that_is_too_long_loses_its_tools(talk, server, tmp_path):
    image = project(tmp_path / "garden", server)
    talk(image, "look at " + "a" * 3000)
    said = talk(image, "\u00fc" * 4000)
    assert "That turn has 1" in said and "the conversation's log takes 8192" in said
    data = talk.log.read_bytes()
    assert data.count(b"look at ") == 1 and b'"tool"' not in data and len(data) < 3200


def test_a_flash_that_is_full_or_read_only(talk, server, tmp_path):
    image = project(tmp_path / "garden", server)
    talk(image, "one")
    talk.log.unlink()
    talk.log.mkdir()                    # as a file system that takes no file
    said = talk(image, "two", "three")
    assert said.count("The conversation's log cannot be ") == 2 and said.count("cannot be written") == 1 and "Heard: three." in said
    assert "Next: make room in the flash." in said


def test_a_log_of_many_short_turns_is_written_anew_in_a_small_heap(micropython, tree, tmp_path):
    """555 turns fill it; a list of those that stay took 25 KB.  112k, with words of 64 bits."""
    folder = words32.project(tmp_path / "sample", words32._CLAW % "reflex" + words32._TALK, **words32._REFLEX)
    done = subprocess.run([micropython, "-X", "heapsize=112k", tree / "start.py", folder / "claw.cbor"], input=b"hello\n" * 600,
                          capture_output=True, timeout=60, env=dict(os.environ, MICROPYPATH=f"{tree}:.frozen"))
    assert done.returncode == 0 and done.stdout.count(b"Hello!") == 600 and b"cannot be" not in done.stdout, done.stdout[-300:]
    assert 16384 < (folder / "conversation.log").stat().st_size < 20000

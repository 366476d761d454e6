"""The conversation of a board goes on after its end, whatever that was: what a provider is
shown, what an operator finds, retention, damage.
"""

import json
import os
import struct
import subprocess
import zlib

import pico_stack
import pytest
import words32
from agents import INITIALIZE, UUID, environment, linux
from llm_server import Server
from talking_board import answer, project, shown, turns

from clawlite.host.builder import build

ALL = {"type": "time-range", "time_range": {"from": "2000-01-01", "to": "2100-01-01"}}


@pytest.fixture
def server():
    with Server(answer) as found:
        yield found


@pytest.fixture
def talk(micropython, tree, server, tmp_path):
    """Return a function that boots an image, says lines and ends: (image, *lines) -> what the board
    said; ``talk.log`` is its file.

    operator  the lines are records, not a person's;  stderr  what it says there
    """

    def run(image, *lines, operator: bool = False, stderr: str = ""):
        done = subprocess.run(
            [pico_stack.micropython(), "-X", "heapsize=400k", tree / "start.py", image]
            + ["--stdio"] * operator,
            input="".join(line + "\n" for line in lines).encode(),
            capture_output=True,
            timeout=300,
            env=dict(os.environ, MICROPYPATH=f"{tree}:.frozen"),
        )
        assert done.returncode == 0 and done.stderr.decode() == stderr, (done.stdout, done.stderr)
        return done.stdout.decode()

    run.log = tmp_path / ("garden/memory-%08x.log" % zlib.crc32(b"garden"))
    run.old = tmp_path / "garden/conversation.log"
    return run


def requests(*asked) -> list:
    """Return an operator's lines: claw.initialize, and (method, params), ... of claw.memory."""
    rows = [("claw.initialize", INITIALIZE)] + [
        ("claw.memory." + method, dict({"store": "talk"}, **params)) for method, params in asked
    ]
    return [
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        for number, (method, params) in enumerate(rows)
    ]


def answered(said: str) -> list:
    """Return what came for each of ``requests`` but the first, without times."""
    replies = {
        reply["id"]: reply["result"]
        for reply in map(json.loads, said.replace("\x1e", "").splitlines())
        if "id" in reply
    }
    for reply in replies.values():
        for entry in reply.get("entries", ()):
            assert entry.pop("timestamp").startswith("20")
    return [replies[number] for number in range(1, len(replies))]


def messages(*texts) -> list:
    """Return the contents of a store in which finished turns with these texts are."""
    found = []
    for text in texts:
        found.append({"role": "user", "text": text})
        if text.startswith("look at "):
            found += [
                {
                    "role": "assistant",
                    "text": "",
                    "calls": [["call_1", "look", json.dumps({"where": text[8:]})]],
                },
                {
                    "role": "tool",
                    "text": "3 at " + text[8:],
                    "id": "call_1",
                    "tool": "look",
                    "failed": False,
                },
            ]
        found.append(
            {
                "role": "assistant",
                "text": "Heard: %s." % ("the tool" if text.startswith("look at ") else text),
            }
        )
    return found


@pytest.mark.parametrize("scope", ["", ", scope: per-identity", ", scope: per-channel"])
def test_it_goes_on_after_an_end(talk, server, tmp_path, scope):
    image = project(tmp_path / "garden", server, scope)
    talk(image, "my cat is Mia", "look at bed 2")
    said = talk(image, "and now?", "/memory")
    assert shown(server.requests[-1]) == turns("my cat is Mia", "look at bed 2") + ["user and now?"]
    assert (
        "talk keeps this conversation over sessions.\n" in said
        and "see this conversation again: 3 turns" in said
    )


@pytest.mark.parametrize(
    "scope, context",
    [("", {}), (", scope: per-identity", {}), (", scope: per-channel", {"channel": "cli"})],
)
def test_an_operator_finds_it_as_on_linux(talk, server, tmp_path, scope, context):
    """Turns at the console, then an operator that asks, stores and compacts, then turns again:
    each reply, and what the provider is shown.
    """
    image = project(
        tmp_path / "garden",
        server,
        scope + ", retention: { max_entries: 12 }, compaction: { strategy: truncate }",
    )
    more = {"context": context} if context else {}

    def linux_talk(*lines, operator: bool = False) -> str:
        words = linux("serve", "--stdio", image) if operator else linux("run", image)
        done = subprocess.run(
            words,
            input="".join(line + "\n" for line in lines).encode(),
            capture_output=True,
            timeout=300,
            env=environment(tmp_path / "home"),
        )
        assert done.returncode == 0 and done.stderr == b"", (done.stdout, done.stderr)
        return done.stdout.decode()

    def played(say) -> list:
        server.requests.clear()  # their number is in the ids of calls
        say("my cat is Mia", "look at bed 2")
        first = say(
            *requests(
                ("query", dict(more, query=ALL)),
                (
                    "query",
                    dict(more, query={"type": "semantic", "text": "cat bed Mia", "top_k": 3}),
                ),
                (
                    "store",
                    {
                        "entries": [
                            {"content": "a note on Mia", "key": "k", "metadata": {"by": "op"}}
                        ],
                        "context": dict(context, request_id=UUID % 1),
                    },
                ),
                ("query", dict(more, query={"type": "key", "key": "k"})),
                ("query", dict(more, query=dict(ALL, top_k=2))),
            ),
            operator=True,
        )
        say("three", "four")
        shown_then = shown(server.requests[-1])
        second = say(
            *requests(
                ("query", dict(more, query=ALL)),
                ("compact", more),
                ("query", dict(more, query=ALL)),
                ("compact", {}),
            ),
            operator=True,
        )
        say("five", "six", "seven", "eight")
        third = say(
            *requests(
                ("query", dict(more, query=ALL)),
                ("query", dict(more, query={"type": "semantic", "text": "seven eight"})),
            ),
            operator=True,
        )
        return [
            answered(first),
            shown_then,
            answered(second),
            shown(server.requests[-1]),
            answered(third),
        ]

    here, there = played(lambda *lines, **more: talk(image, *lines, **more)), played(linux_talk)
    for on_board, on_linux in zip(here, there):
        assert on_board == on_linux
    contents = [entry["content"] for entry in here[0][0]["entries"]]
    calls = [content["calls"][0] for content in contents if "calls" in content]
    assert [call[1] for call in calls] == ["look"] and json.loads(calls[0][2]) == {"where": "bed 2"}
    wanted = messages("my cat is Mia", "look at bed 2")
    for content in wanted + contents:
        content.pop("calls", None)
        content.pop("id", None)
    assert contents == wanted and here[0][0]["entries"][-1]["id"] == "entry-1-6"
    assert here[1] == turns("my cat is Mia", "look at bed 2", "three") + ["user four"]
    assert here[2][1] == {"entries_before": 11, "entries_after": 6, "strategy": "truncate"}
    assert [entry["content"] for entry in here[2][2]["entries"]][2:] == messages("three", "four")
    assert here[3][-1] == "user eight" and here[4][1]["entries"][0]["content"]["text"].endswith(
        "eight"
    )


def test_an_agent_without_a_store_has_no_file(talk, server, tmp_path):
    image = project(tmp_path / "garden", server)
    manifest = tmp_path / "garden/claw.yaml"
    manifest.write_text(manifest.read_text().partition("  memory:")[0])
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
    place = 8 + struct.unpack(">I", data[:4])[0]
    talk.log.write_bytes(data[:-3])
    talk(
        image,
        "three",
        stderr="clawlite: the memory's last %d bytes were not whole, and are "
        "lost\n" % ((len(data) - place) // 2 - 3),
    )
    assert shown(server.requests[-1]) == turns("one") + ["user three"]
    talk(image, "four")
    assert shown(server.requests[-1]) == turns("one", "three") + ["user four"]


def test_a_log_that_is_damaged_is_said_and_the_agent_goes_on_talking(talk, server, tmp_path):
    image = project(tmp_path / "garden", server)
    talk(image, "one", "two")
    data = bytearray(talk.log.read_bytes())
    data[60] ^= 4
    talk.log.write_bytes(data)
    said = talk(image, "three", "four")
    assert (
        said.count(" is damaged at byte ") == 2
        and said.count("; what was said before is not known. Next: copy it to a computer") == 1
    )
    assert (
        said.count("; this is forgotten when the agent ends. Next: ") == 1
        and "Heard: four." in said
        and talk.log.read_bytes() == data
    )
    assert shown(server.requests[-1]) == turns("three") + ["user four"]


def test_only_as_much_as_a_provider_sees_again_is_read(talk, server, tmp_path):
    """2 KiB of what was said."""
    image = project(tmp_path / "garden", server)
    texts = ["turn %d %s" % (number, "x" * 700) for number in range(40)]
    talk(image, *texts[:32])
    talk(image, *texts[32:])
    talk(image, "and now?")
    assert shown(server.requests[-1]) == turns(texts[-1]) + ["user and now?"]


def test_the_newest_entries(talk, server, tmp_path):
    image = project(tmp_path / "garden", server, ", retention: { max_entries: 5 }")
    texts = ["turn %d" % number for number in range(60)]
    talk(image, *texts[:30])
    talk(image, *texts[30:])
    talk(image, "and now?")
    assert (
        shown(server.requests[-1]) == turns(*texts[-2:]) + ["user and now?"]
        and talk.log.stat().st_size < 42 * 120
    )
    assert [
        entry["content"]
        for entry in answered(talk(image, *requests(("query", {"query": ALL})), operator=True))[0][
            "entries"
        ]
    ] == messages(texts[-2], texts[-1], "and now?")[-5:]


def test_without_a_number_the_newest_256_messages(talk, server, tmp_path):
    """The console takes no room from other stores without end."""
    folder = words32.project(
        tmp_path / "garden",
        (words32._CLAW % "reflex").replace("sample", "garden") + words32._TALK,
        **words32._REFLEX,
    )
    image = str(folder / "claw.cbor")
    talk(image, *["hello"] * 127)
    compact = requests(("compact", {}))
    assert answered(talk(image, *compact, operator=True)) == [
        {"entries_before": 254, "entries_after": 254, "strategy": "sliding-window"}
    ]
    talk(image, *["hello"] * 30)
    assert answered(talk(image, *compact, operator=True))[0]["entries_before"] == 256


def test_what_is_too_old(talk, server, tmp_path):
    """The clock of the machine stands; that of the records is set back."""
    image = project(tmp_path / "garden", server, ", retention: { max_age: 1h }")
    talk(image, "one", "two", "three")
    records, data = [], talk.log.read_bytes()
    while data:
        (length,) = struct.unpack(">I", data[:4])
        records.append(bytearray(data[8 : 8 + length]))
        data = data[8 + length :]
    (now,) = struct.unpack(">I", records[1][29:33])
    # the first before the clock was set
    for record, when in ((records[1], 0), (records[2], now - 3700)):
        at = 25
        while at < len(record):
            record[at + 4 : at + 8] = struct.pack(">I", when)
            at += 14 + struct.unpack(">H", record[at + 12 : at + 14])[0]
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
    assert (
        "entries[0].content: expected at most 4096 bytes; this is forgotten when the agent ends."
        in said
    )
    data = talk.log.read_bytes()
    assert data.count(b"look at ") == 1 and b'"tool"' not in data and len(data) < 3400


def test_a_flash_that_is_full_or_read_only(talk, server, tmp_path):
    image = project(tmp_path / "garden", server)
    talk(image, "one")
    talk.log.unlink()
    talk.log.mkdir()  # as a file system that takes no file
    said = talk(image, "two", "three")
    assert (
        said.count("it cannot be read or written") == 2
        and said.count("this is forgotten") == 1
        and "Heard: three." in said
    )
    assert "Next: look at the flash." in said


def test_many_turns_work_in_a_small_heap(micropython, tree, tmp_path):
    """600 turns; the index is made anew, and the log.  116k do with words of 64 bits.  The rest is
    for the threads in which a board of tests imports: on a busy machine they end late, and until
    then what they held is not free.
    """
    folder = words32.project(
        tmp_path / "sample", words32._CLAW % "reflex" + words32._TALK, **words32._REFLEX
    )
    done = subprocess.run(
        [pico_stack.micropython(), "-X", "heapsize=136k", tree / "start.py", folder / "claw.cbor"],
        input=b"hello\n" * 600,
        capture_output=True,
        timeout=300,
        env=dict(os.environ, MICROPYPATH=f"{tree}:.frozen"),
    )
    assert (
        done.returncode == 0
        and done.stdout.count(b"Hello!") == 600
        and b"forgotten" not in done.stdout
    ), done.stdout[-300:]
    assert 16384 < next(folder.glob("memory-*.log")).stat().st_size < 600 * 2 * 60


# -- the log of older versions


def old(text: str, when: int, whose: str = "garden\ntalk\n") -> bytes:
    """Return a turn as versions before 0.3 kept it, in a record of its own: two messages, or
    four with a tool.
    """
    rows = [["user", text], ["assistant", "Heard: %s." % text]]
    if text.startswith("look at "):
        rows = [
            ["user", text],
            ["assistant", "", [["c1", "look", "{}"]]],
            ["tool", "3 at " + text[8:], "c1", "look", False],
            ["assistant", "Heard: the tool."],
        ]
    payload = (
        struct.pack(">IIH", when, zlib.crc32(whose.encode()), len(rows)) + json.dumps(rows).encode()
    )
    head = struct.pack(">I", len(payload))
    return head + struct.pack(">I", zlib.crc32(head + payload)) + payload


def test_what_an_older_version_kept_is_found(talk, server, tmp_path):
    """Its turns, with their times; other agents' stay where they were, a torn end is said."""
    image = project(tmp_path / "garden", server)
    foreign = old("not mine", 1750000000, "other\ntalk\n")
    talk.old.write_bytes(
        old("my cat is Mia", 0)
        + foreign
        + old("look at bed 2", 1750000000)
        + old("torn", 1750000001)[:-4]
    )
    lost = "clawlite: of the conversation of an older version %d bytes are lost\n" % (
        len(old("torn", 1)) - 4
    )
    talk(image, "and now?", stderr=lost)
    assert (
        shown(server.requests[-1]) == turns("my cat is Mia", "look at bed 2") + ["user and now?"]
        and talk.old.read_bytes() == foreign
    )
    found = json.loads(
        talk(
            image,
            *requests(
                ("query", {"query": dict(ALL, type="semantic", text="cat bed Heard and now")})
            ),
            operator=True,
        )
        .splitlines()[-1]
        .strip("\x1e")
    )
    assert {entry["timestamp"] for entry in found["result"]["entries"]} >= {
        "unset",
        "2025-06-15T15:06:40.000Z",
    }
    talk(image, "again")
    assert shown(server.requests[-1]) == turns("my cat is Mia", "look at bed 2", "and now?") + [
        "user again"
    ]


def test_an_operator_finds_what_an_older_version_kept(talk, server, tmp_path):
    image = project(tmp_path / "garden", server)
    talk.old.write_bytes(old("one", 1750000000) + old("two", 1750000001))
    assert [
        entry["content"]
        for entry in answered(talk(image, *requests(("query", {"query": ALL})), operator=True))[0][
            "entries"
        ]
    ] == messages("one", "two")
    assert not talk.old.exists()


def test_a_version_before_that_is_flashed_again_in_between_loses_nothing(talk, server, tmp_path):
    """It begins an old log anew, perhaps with the same words."""
    image = project(tmp_path / "garden", server)
    talk.old.write_bytes(old("one", 1750000000) + old("two", 1750000001))
    talk(image, "three")
    talk.old.write_bytes(old("four", 1750000010) + old("one", 1750000011) + old("two", 1750000012))
    talk(image, "five")
    assert shown(server.requests[-1]) == turns("one", "two", "three", "four", "one", "two") + [
        "user five"
    ]

"""A board that is unplugged: its whole firmware on littlefs, booted from what each write of a block
leaves behind.

All writes and erases of a conversation, and of two flashes, are recorded; then the disk is made as
it was after N of them, with the next one half done (torn) or not done (dropped), and the real agent
boots from it and is asked.  Of all moments some 16 are taken, evenly, the same each time; also
those around every third acknowledgement of a turn (its prompt had come) or of a request, the last
among them, and at both ends of a flash.  ``make soak`` takes some 32, and those around each
acknowledgement: 79 boots of a conversation, 104 of one with requests to its store in between, 57
and 27 of flashes, 90 where bugs are planted."""

import base64
import concurrent.futures
import dataclasses
import itertools
import json
import os
import subprocess
from pathlib import Path

import pico_stack
import pytest
from agents import INITIALIZE, UUID, Agent
from flash_model import Model
from llm_server import Server
from talking_board import answer, project, shown, turns

import clawlite.core
from clawlite.host.base.data import firmware_dir
from clawlite.host.builder import build
from clawlite.host.firmware import firmware
from clawlite.host.flash import flash
from clawlite.linux.audit import files
from clawlite.linux.audit.chain import verify

HERE = Path(__file__).parent
TEXTS = [
    text + " " + "words " * 18 + "end"
    for text in (
        "one",
        "look at bed 2",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
    )
]
KEPT = 8  # messages: the log is written anew in the middle


@pytest.fixture(scope="module")
def server():
    with Server(answer) as found:
        yield found


def words(micropython, *arguments) -> list:
    return [*pico_stack.program(HERE / "power_board.py", "24M"), *map(str, arguments)]


def changes(log: Path) -> list:
    """Return [(offset, bytes)] of a log."""
    data, at, found = log.read_bytes(), 0, []
    while at < len(data):
        offset, length = (
            int.from_bytes(data[at : at + 4], "big"),
            int.from_bytes(data[at + 4 : at + 8], "big"),
        )
        found.append((offset, data[at + 8 : at + 8 + length]))
        at += 8 + length
    return found


def after(disk: bytes, log: list, is_torn: bool = False) -> bytes:
    """Return *disk* after these changes, of the last one half when it is torn."""
    made = bytearray(disk)
    for number, (at, data) in enumerate(log):
        data = data[: len(data) // 2] if is_torn and number == len(log) - 1 else data
        made[at : at + len(data)] = data
    return bytes(made)


class Power:
    """Boards in *folder*.

    taken  how many moments are looked at, evenly
    every  around every so many of the acknowledgements they are looked at, too
    """

    def __init__(self, micropython, folder: Path, taken: int, every: int):
        self.micropython, self.folder, self._numbers = micropython, folder, itertools.count()
        self._taken, self._every = taken, every

    def around(self, made: list, by=(-1, 0, 1)) -> list:
        """Return moments around acknowledgements, the last among them.  made: how many changes had
        been made at each; by: how far around it.
        """
        return [at + step for at in made[:: -self._every] for step in by]

    def moments(self, count: int, more: list) -> list:
        """Return those moments, of 0 .. *count* changes made, that are looked at: (changes made,
        whether another one is torn).  more: those that are looked at in any case.
        """
        taken = {*range(0, count, max(1, count // (self._taken // 2))), *more}
        return [
            (at, is_torn)
            for at in sorted(taken)
            for is_torn in (False, True)
            if 0 <= at <= count - is_torn
        ]

    def path(self, name: str) -> Path:
        return self.folder / f"{name}-{next(self._numbers)}"

    def disk(self, data: bytes) -> Path:
        path = self.path("disk")
        path.write_bytes(data)
        return path

    def write(self, disk: bytes, steps: list) -> tuple:
        """Carry out the steps of a flash; return (changes, the disk after them).  disk: b"" for
        an empty one.
        """
        script, log, path = self.path("script"), self.path("log"), self.disk(disk)
        script.write_text(json.dumps(steps))
        done = subprocess.run(
            words(self.micropython, "write", path, log, script), capture_output=True, timeout=300
        )
        assert done.returncode == 0 and not done.stderr, done
        return changes(log), path.read_bytes()

    def talk(self, disk: bytes, texts: list) -> tuple:
        """Say *texts*; return (changes, [how many of them had been made when each was
        acknowledged]).
        """
        log, acknowledged = self.path("log"), []
        with Agent(
            words(self.micropython, "boot", self.disk(disk), log),
            self.folder,
            env={"MICROPYPATH": ".frozen"},
        ) as it:
            it.expect("is ready. /help lists the commands.\n> ")
            begun = len(changes(log))
            for text in texts:
                it.line(text)
                it.expect("Heard: %s.\n> " % ("the tool" if text.startswith("look") else text))
                acknowledged.append(len(changes(log)))
            it.end()
            assert it.wait() == 0
        return changes(log), [begun] + acknowledged

    def play(self, disk: bytes, steps: list) -> tuple:
        """Do *steps*, a person's lines and an operator's requests (method, params); return
        (changes, [how many of them had been made when each was acknowledged], [what the stores had
        then])."""
        log, acknowledged, had = self.path("log"), [], []
        with Agent(
            words(self.micropython, "boot", self.disk(disk), log),
            self.folder,
            env={"MICROPYPATH": ".frozen"},
        ) as it:
            it.expect("is ready. /help lists the commands.\n> ")
            reply(it, "claw.initialize", INITIALIZE)
            for step in [None] + steps:
                if isinstance(step, str):
                    it.line(step)
                    it.expect(
                        "Heard: %s.\n> " % ("the tool" if step.startswith("look") else step), 30
                    )
                elif step:
                    assert "result" in reply(it, *step), step
                acknowledged.append(len(changes(log)))
                had.append(
                    [
                        contents_of(reply(it, "claw.memory.query", question))
                        for question in QUESTIONS
                    ]
                )
                assert len(changes(log)) == acknowledged[-1], "a question writes nothing"
            it.end()
            assert it.wait() == 0
        return changes(log), acknowledged, had

    def asked(self, disk: bytes, server, question: str, records: bytes = b"") -> tuple:
        """Boot, and ask; return (what the board said, what the provider was shown before that).
        records: what an operator asks before it.
        """
        done = subprocess.run(
            words(self.micropython, "boot", self.disk(disk), self.path("log")),
            input=records + question.encode() + b"\n",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=300,
            env=dict(os.environ, MICROPYPATH=".frozen"),
        )
        said = done.stdout.decode()
        assert done.returncode == 0 and f"Heard: {question}.\n" in said, said
        seen = [shown(request) for request in server.requests]
        return said, next(one[:-1] for one in seen if one[-1] == "user " + question)


def record(method: str, params: dict, number: int) -> bytes:
    return (
        b"\x1e%s\n"
        % json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()
    )


def reply(it, method: str, params: dict) -> dict:
    """Return the answer to a request on the line of a console."""
    it.number = getattr(it, "number", 0) + 1
    it.send(record(method, params, it.number))
    while True:
        it.expect("\x1e")
        found = json.loads(it.expect("\n"))
        if found.get("id") == it.number:
            return found


def contents_of(answer: dict) -> list:
    return [entry["content"] for entry in answer["result"]["entries"]]


QUESTIONS = [
    {
        "store": store,
        "query": {"type": "time-range", "time_range": {"from": "2000-01-01", "to": "2100-01-01"}},
    }
    for store in ("talk", "facts")
]
ASKED = record("claw.initialize", INITIALIZE, 1) + b"".join(
    record("claw.memory.query", one, number) for number, one in enumerate(QUESTIONS, 2)
)


@pytest.fixture(
    params=[
        pytest.param((16, 3), id="some moments"),
        pytest.param((32, 1), id="more moments", marks=pytest.mark.soak),
    ]
)
def power(micropython, tmp_path, request):
    return Power(micropython, tmp_path, *request.param)


@pytest.fixture(scope="module")
def contents(server, micropython, mpy_cross, tmp_path_factory):
    """Return a function that builds an agent: (version) -> what a flash of it shall bring."""
    folder = tmp_path_factory.mktemp("projects")

    def build(version: str, policy: str = ""):
        if not (folder / version).exists():
            image = project(
                folder / version, server, ", retention: { max_entries: %d }" % KEPT, version=version
            )
            claw = folder / version / "claw.yaml"
            claw.write_text(
                claw.read_text().replace(
                    "scope: all }] }",
                    "scope: all }], %s }" % policy if policy else "scope: all }] }",
                )
            )
            (folder / version / "clawlite.toml").write_text(
                "[boot]\nwindow_ms = 10%s\n" % version[0]
            )
            assert image
        # the modules of a Pico W's slot are one file
        packed = "pico-w" if version == "2.0.0" else None
        return flash.contents(str(folder / version), packed, None, True)

    return build


@pytest.fixture(scope="module")
def mixed(server, micropython, mpy_cross, tmp_path_factory):
    """Return what a flash of an agent brings whose conversation lies beside another store."""
    folder = tmp_path_factory.mktemp("mixed")
    project(
        folder,
        server,
        ", retention: { max_entries: %d }, compaction: { strategy: truncate, "
        "enabled: false } }, { name: facts, type: key-value" % KEPT,
    )
    return flash.contents(str(folder))


@pytest.fixture(scope="module")
def first(contents):
    """Return (a ``Model`` with version 1 on it, the steps that brought it)."""
    board = Model()
    return board, board.flash(contents("1.0.0"))


def newest(texts: list) -> list:
    """Return what a provider sees again of these turns."""
    seen = []
    for text in reversed(texts):
        seen = turns(text) + seen
        if len([one for one in seen if not one.startswith("call ")]) > KEPT:
            return seen[len(turns(text)) :]
    return seen


def each(work, items: list) -> list:
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(work, items))


def held(power, server, disk: bytes, log: list, acknowledged: list, name: str) -> list:
    """Return what is wrong: [(changes made, torn, what is remembered, acknowledged turns)]."""

    def at(moment) -> list:
        count, is_torn = moment
        _, seen = power.asked(
            after(disk, log[: count + is_torn], is_torn),
            server,
            "%s %d %d" % (name, count, is_torn),
        )
        turn = sum(count >= made for made in acknowledged[1:])
        may = [newest(TEXTS[:turn]), newest(TEXTS[: turn + 1])]
        return [] if seen in may else [(count, is_torn, seen, turn)]

    return sum(each(at, power.moments(len(log), power.around(acknowledged))), [])


def test_every_acknowledged_turn_is_there_and_none_half(power, first, server):
    disk = power.write(b"", first[1])[1]
    log, acknowledged = power.talk(disk, TEXTS)
    assert len(log) > 40 and acknowledged == sorted(set(acknowledged)), acknowledged
    assert held(power, server, disk, log, acknowledged, "held") == []


def test_an_acknowledgement_before_the_write_is_caught(
    power, contents, server, mpy_cross, tmp_path
):
    source = (firmware_dir() / "micropython/stores/stores.py").read_text()
    before = "        yield from keep(self._place(), history)\n"
    assert source.count(before) == 1
    late = (
        "        self.late, history.turn, turn = history.turn, self.late, history.turn\n       "
        " if history.turn:\n    %s        history.turn = turn\n"
    )
    (tmp_path / "stores.py").write_text(
        source.replace(before, late % before).replace(
            "    def __init__(self, agent, path",
            "    late = None\n\n    def __init__(self, agent, path",
        )
    )
    names = firmware.build(tmp_path / "late", mpy_cross, {"stores": tmp_path / "stores.py"})
    want = contents("1.0.0")
    want = dataclasses.replace(
        want,
        slot={**want.slot, **{name: (tmp_path / "late" / name).read_bytes() for name in names}},
    )
    disk = power.write(b"", Model().flash(want))[1]
    log, acknowledged = power.talk(disk, TEXTS[:3])
    assert held(power, server, disk, log, acknowledged, "late")


def stored(number: int, store: str, *entries) -> tuple:
    return "claw.memory.store", {
        "store": store,
        "entries": list(entries),
        "context": {"request_id": UUID % number},
    }


def values(number: int) -> tuple:
    """Return a request that stores twelve values of one key: eleven of them are gone."""
    return stored(
        number,
        "facts",
        *[{"key": "k", "content": "value %d of %d" % (each, number)} for each in range(12)],
    )


STEPS = [
    TEXTS[0],
    values(1),
    TEXTS[1],
    stored(2, "talk", {"content": "a note"}),
    values(3),
    TEXTS[2],
    TEXTS[3],
    ("claw.memory.compact", {"store": "talk"}),
    values(4),
    TEXTS[4],
    TEXTS[5],
]


def seen_of(messages: list) -> list:
    """Return what a provider is shown of the contents of a conversation's store: its whole
    turns.
    """
    seen, turn = [], []
    for one in messages:
        if isinstance(one, dict):
            turn = [] if one["role"] == "user" else turn
            if turn or one["role"] == "user":
                turn += ["%s %s" % (one["role"], one["text"])] if one["text"] else []
                turn += ["call " + name for _, name, _ in one.get("calls", ())]
            if turn and one["role"] == "assistant" and not one.get("calls"):
                seen, turn = seen + turn, []
    return seen


def agreed(power, server, disk: bytes, played: tuple, name: str) -> list:
    """Return what is wrong after power went: [(changes made, torn, what the stores have, what a
    provider is shown, acknowledged steps)].
    """
    log, acknowledged, had = played

    def at(moment) -> list:
        count, is_torn = moment
        said, seen = power.asked(
            after(disk, log[: count + is_torn], is_torn),
            server,
            "%s %d %d" % (name, count, is_torn),
            ASKED,
        )
        replies = [json.loads(line[1:]) for line in said.split("\n") if line[:1] == "\x1e"]
        found = [contents_of(one) for one in replies if one.get("id") in (2, 3)]
        step = sum(count >= made for made in acknowledged) - 1
        right = found in had[max(0, step) : step + 2] and seen == seen_of(found[0])
        return [] if right else [(count, is_torn, found, seen, step)]

    return sum(each(at, power.moments(len(log), power.around(acknowledged))), [])


def test_turns_and_requests_of_one_log(power, mixed, server):
    """Turns, requests to the conversation and to another store, a compaction, the log written anew:
    all of it is there up to the last acknowledged, and a provider is shown what an operator
    finds."""
    disk = power.write(b"", Model().flash(mixed))[1]
    played = power.play(disk, STEPS)
    talk, facts = played[2][-1]
    wrote = [made - before for before, made in zip(played[1], played[1][1:])]
    assert wrote[9] > 2 * wrote[10], "the log is written anew for the last turn but one"
    assert [
        one["text"] for one in talk if isinstance(one, dict) and one["role"] == "user"
    ] == TEXTS[2:6] and facts == ["value 11 of 4"]
    assert (
        "a note" in played[2][7][0]
        and "a note" not in talk
        and played[2][8][0] == played[2][7][0][-KEPT // 2 :]
    )
    assert agreed(power, server, disk, played, "mixed") == []


def test_a_turn_that_is_stored_message_by_message_is_caught(
    power, mixed, server, mpy_cross, tmp_path
):
    source = (Path(clawlite.core.__file__).parent / "memory/conversation.py").read_text()
    before = """\
            stored = yield from ask(
                "store", *place, (None, entries + [_entry(message) for message in turn])
            )
"""
    assert source.count(before) == 1
    (tmp_path / "conversation.py").write_text(
        source.replace(
            before,
            """\
            for message in turn:
                stored = yield from ask("store", *place, (None, [_entry(message)]))
""",
        )
    )
    names = firmware.build(
        tmp_path / "parts", mpy_cross, {"conversation": tmp_path / "conversation.py"}
    )
    want = dataclasses.replace(
        mixed,
        slot={**mixed.slot, **{name: (tmp_path / "parts" / name).read_bytes() for name in names}},
    )
    disk = power.write(b"", Model().flash(want))[1]
    assert agreed(power, server, disk, power.play(disk, STEPS[:3]), "parts")


def kept(power, server, disk: bytes, question: str) -> list:
    """Boot, ask, and return the audit's records, when ``clawlite audit verify`` finds nothing
    wrong.
    """
    path, log = power.disk(disk), power.path("log")
    done = subprocess.run(
        words(power.micropython, "boot", path, log),
        input=question.encode() + b"\n",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=300,
        env=dict(os.environ, MICROPYPATH=".frozen"),
    )
    assert done.returncode == 0 and f"Heard: {question}.\n" in done.stdout.decode(), done.stdout
    shown = subprocess.run(
        words(power.micropython, "show", path, log, "/state/audit-garden"),
        capture_output=True,
        timeout=300,
    )
    folder = power.path("audit")
    folder.mkdir()
    for name, data in json.loads(shown.stdout).items():
        (folder / name).write_bytes(base64.b64decode(data))
    lines, head, _ = files.read(str(folder))
    lines = list(lines)
    found = verify(lines, head, "garden")
    assert found["ok"], found
    return [json.loads(line) for line in lines]


def test_every_call_of_an_acknowledged_turn_is_on_record_and_the_chain_is_whole(
    power, contents, server, first
):
    """Each call is two records, before it and after it: none that was begun lacks its begin, and
    none that was acknowledged its end.
    """
    want = contents("4.0.0", "audit: { log_outputs: true }")
    disk = power.write(b"", Model().flash(want))[1]
    texts = ["look at bed %d" % number for number in range(3)]
    log, acknowledged = power.talk(disk, texts)

    def at(moment) -> list:
        count, is_torn = moment
        found = kept(
            power,
            server,
            after(disk, log[: count + is_torn], is_torn),
            "audit %d %d" % (count, is_torn),
        )
        turn = sum(count >= made for made in acknowledged[1:])
        ends = [record["arguments"] for record in found if record["event"] == "tool.call"]
        begun = [record["arguments"] for record in found if record["event"] == "tool.begin"]
        wanted = ['{"where":"%s"}' % text[8:] for text in texts]
        right = (
            ends in (wanted[:turn], wanted[: turn + 1])
            and begun in (wanted[:turn], wanted[: turn + 1])
            and len(begun) >= len(ends)
        )
        return (
            []
            if right and not [record for record in found if record["event"] == "audit.problem"]
            else [(count, is_torn, turn, found)]
        )

    assert sum(each(at, power.moments(len(log), power.around(acknowledged, (-1, 0)))), []) == []


def flashed(power, server, disk: bytes, steps: list, versions: tuple, name: str) -> list:
    """Return what is wrong with a board that is flashed: [(changes made, torn, what it said,
    what is remembered)]; it begins with two turns.
    """
    log, _ = power.write(disk, steps)

    def at(moment) -> list:
        count, is_torn = moment
        try:
            said, seen = power.asked(
                after(disk, log[: count + is_torn], is_torn),
                server,
                "%s %d %d" % (name, count, is_torn),
            )
        except AssertionError as e:
            return [(count, is_torn, str(e), None)]
        window, version = said.split(" ms ")[0][-3:], said.partition("garden ")[2][:5]
        right = (
            version in (versions[1:] if count == len(log) else versions)
            and window in ("101", "102", "103")
            and "boot.json" not in said
        )
        return [] if right and seen == newest(TEXTS[:2]) else [(count, is_torn, said, seen)]

    ends = [*range(6), *range(len(log) - 6, len(log) + 1)]
    return sum(each(at, power.moments(len(log), ends)), [])


def test_a_flash_leaves_the_old_agent_or_the_new_one_and_its_conversation(power, contents, server):
    """A packed slot into one that is empty, of some 150 KB; then single files into one that has an
    older image, and the same with the boot record first, which is caught.
    """
    board = Model()
    disk = power.write(b"", board.flash(contents("1.0.0")))[1]
    disk = after(disk, power.talk(disk, TEXTS[:2])[0])
    board.boot()
    steps = board.flash(contents("2.0.0"))
    assert sum(len(step[2]) for step in steps if step[0] in ("write", "copy")) > 100000
    assert flashed(power, server, disk, steps, ("1.0.0", "2.0.0"), "second") == []
    disk = power.write(disk, steps)[1]
    disk = after(disk, power.talk(disk, [])[0])
    board.boot()
    steps = board.flash(contents("3.0.0"))
    assert flashed(power, server, disk, steps, ("2.0.0", "3.0.0"), "third") == []
    first = [step for step in steps if step[1].startswith("/claw.boot")]
    wrong = flashed(
        power,
        server,
        disk,
        first + [step for step in steps if step not in first],
        ("2.0.0", "3.0.0"),
        "bug",
    )
    assert wrong and all("garden 1.0.0 is ready" in said for _, _, said, _ in wrong)


@pytest.mark.parametrize("what", ["full", "locked"])
def test_a_flash_that_takes_nothing_more_is_said_once(power, first, server, what):
    """littlefs finds room for some turns in blocks that are begun: the board talks until there
    is none, and beyond.
    """
    disk = power.write(b"", first[1])[1]
    disk = after(disk, power.talk(disk, TEXTS[:1])[0])
    if what == "full":
        disk = power.write(disk, [["fill", "/filler"]])[1]
    lines = "".join("turn %d %s\n" % (number, "x" * 300) for number in range(30))
    done = subprocess.run(
        words(
            power.micropython,
            "boot" if what == "full" else what,
            power.disk(disk),
            power.path("log"),
        ),
        input=lines.encode(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=300,
    )
    said = done.stdout.decode()
    assert said.count("Heard: turn") == 30 and done.returncode == 0, said
    why = (
        ("it cannot be written", "make the flash writable")
        if what == "locked"
        else ("the flash ", "")
    )
    assert (
        said.count("; this is forgotten when the agent ends. Next: %s" % why[1]) == 1
        and "/state/memory-" in said
        and why[0] in said
    ), said
    wanted = newest(TEXTS[:1])
    assert shown(server.requests[-30])[: len(wanted)] == wanted
    assert power.asked(disk, server, what)[1] == wanted


# -- calls with request ids: none runs twice, and what was answered is answered again

CALLER = """claw: "0.3.0"
kind: Claw
metadata: { name: once, version: "1.0.0" }
spec:
  identity: { inline: { personality: "You water.", autonomy: autonomous } }
  providers: [{ inline: { protocol: custom, endpoint: "builtin:reflex", model: m, auth: { type: none } } }]
  sandbox: { inline: { level: none } }
  policies: [{ inline: { rules: [{ id: all, action: allow, scope: all }] } }]
"""  # noqa: E501
WATER = '''def water(who: str) -> str:
    """Water."""
    return who + " at " + power_moment()
'''
_READY = "is ready. /help lists the commands.\n> "
CALLS, MEASURED = 14, 60


@pytest.fixture(scope="module")
def watering(tmp_path_factory):
    """Return the steps that bring a board whose tool says when it ran."""
    folder = tmp_path_factory.mktemp("calls")
    for name, text in (
        ("claw.yaml", CALLER),
        ("tools.py", WATER),
        ("clawlite.toml", 'reflex = "reflex.toml"\n[boot]\nwindow_ms = 101\n'),
        ("reflex.toml", '[[rule]]\nwhen = "hello"\nsay = "Hello!"\n'),
    ):
        (folder / name).write_text(text)
    build.build_beside(str(folder))
    return Model().flash(flash.contents(str(folder)))


def called(power: Power, disk: bytes, numbers) -> tuple:
    """Boot, and call with each of *numbers* as its request id; return (changes, [how many had
    been made when each was answered], answers).
    """
    log, made, answers = power.path("log"), [], []
    with Agent(
        words(power.micropython, "boot", power.disk(disk), log),
        power.folder,
        env={"MICROPYPATH": ".frozen"},
    ) as it:
        it.expect(_READY, 60)
        reply(it, "claw.initialize", INITIALIZE)
        made.append(len(changes(log)))
        for number in numbers:
            found = reply(
                it,
                "claw.tool.call",
                {
                    "name": "water",
                    "arguments": {"who": f"w{number}"},
                    "context": {"request_id": UUID % number, "identity": "once"},
                },
            )
            answers.append(
                found["error"]["code"]
                if "error" in found
                else found["result"]["content"][0]["text"]
            )
            made.append(len(changes(log)))
        it.end()
        assert it.wait() == 0
    return changes(log), made, answers


def test_no_call_runs_twice_and_what_was_answered_is_answered_again(power, watering):
    disk = power.write(b"", watering)[1]
    log, made, answers = called(power, disk, range(CALLS))
    began = [int(answer.rpartition(" ")[2]) for answer in answers]

    def wrong(moment) -> list:
        count, is_torn = moment
        found = called(power, after(disk, log[: count + is_torn], is_torn), range(CALLS))[2]
        return [
            (count, is_torn, number, again)
            for number, again in enumerate(found)
            if again != answers[number]
            and (count >= made[number + 1] or count >= began[number] and again != -32014)
        ]

    near = power.around(sorted(made[1:] + began))
    assert sum(each(wrong, power.moments(len(log), near)), []) == []


def test_what_a_call_costs_the_flash(power, watering):
    disk = power.write(b"", watering)[1]
    log, made, answers = called(power, disk, range(MEASURED))
    assert all(isinstance(answer, str) for answer in answers)
    calls = [data for _, data in log[made[0] : made[-1]]]
    erased = [data for data in calls if data == b"\xff" * 4096]
    written = sum(map(len, calls)) - 4096 * len(erased)
    assert written < 1850 * MEASURED and len(erased) < 0.6 * MEASURED, (
        written / MEASURED,
        len(erased) / MEASURED,
    )

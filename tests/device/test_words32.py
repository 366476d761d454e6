"""What ``clawlite build`` says of heap and flash is what MicroPython measures, with 32-bit words,
as boards have, and 64: never less than the work of users needs.
"""

import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import board_work
import gateways
import mcp_agents
import pico_stack
import pytest
import trading_desk
import words32
from agents import INITIALIZE, UUID, Agent
from msgspec import structs

from clawlite.host.bench import agent
from clawlite.host.bench import micropython as bench_micropython
from clawlite.host.boards import boards
from clawlite.host.builder.build import build_beside
from clawlite.host.firmware import board_files, firmware, slot
from clawlite.host.fit import heap
from clawlite.host.flash.plan import FILES, file_list
from clawlite.host.projects import new

# Of flash.
WITHIN = 0.15
# Too much is the better mistake: a board that holds less still runs.  What `build` asks for is
# never less than what the work of users takes, as tests below show.  Of what is held, to which it
# adds room for that work, so much less may be said.
BELOW = {32: 0.04, 64: 0.05}
ABOVE = {32: 0.22, 64: 0.27}
# With 64 bits a collection takes for pointers what lies on the stack, up to 11 KB more in some
# runs, so while a number is above what may be, the least of more of them counts.
MOST_RUNS = {32: 1, 64: 7}
GOLDEN = Path(__file__).parents[1] / "golden"
ROOT = Path(__file__).parents[2]
BOARDS_PAGE = ROOT / "docs/boards.md"
AGENTS = (
    "greenhouse",
    "chat",
    "blink",
    "empty",
    "bench",
    "rules",
    "tools",
    "calls",
    "both",
    "talk",
    "skills",
    "kept",
    "watched",
)
TOOL = '''

def tool_%d(text: str, count: int = 1) -> str:
    """Give the text back, number %d."""
    total = 0
    for i in range(count):
        if text == "alpha" or text.startswith("beta"):
            total += len(text) * 3
        else:
            total -= 1
    return "%%s counted %%d of them in this loop" %% (text, total)
'''
RULE = (
    '[[rule]]\nwhen = ["hello number%d please", "good {words:text}"]\nsay = "Hello to you '
    'number %d!"\n'
)


@pytest.fixture(scope="module")
def board(micropython, mpy_cross, tmp_path_factory):
    return words32.tree(tmp_path_factory.mktemp("board"))


@pytest.fixture(scope="module")
def agents(tmp_path_factory):
    """Return {name: folder of a built project}: others than those that the table of sizes comes
    from.
    """
    folder = tmp_path_factory.mktemp("agents")
    found = {}
    for name in ("greenhouse", "chat", "blink", "empty"):
        new.new(str(folder / name), name, None, None, False)
        build_beside(str(folder / name))
    (folder / "bench").mkdir()
    build_beside(agent.write(str(folder / "bench")))
    reflex = "".join(RULE % (number, number) for number in range(20))
    words32.project(folder / "rules", clawlite_toml='reflex = "reflex.toml"\n', reflex_toml=reflex)
    words32.project(
        folder / "tools",
        words32._CLAW % "reflex" + words32._ALLOW % ("allow", ""),
        clawlite_toml='reflex = "reflex.toml"\n',
        reflex_toml=reflex,
        tools_py='"""Tools."""\n' + "".join(TOOL % (number, number) for number in range(40)),
    )
    words32.project(folder / "talk", words32._CLAW % "reflex" + words32._TALK, **words32._REFLEX)
    words32.project(
        folder / "skills",
        words32.remote("openai-compatible") + words32._SKILL + words32._ALLOW % ("allow", ""),
        tools_py=words32._TOOL,
    )
    words32.project(
        folder / "kept",
        words32._CLAW % "reflex" + words32._BLOCKS % "audit: { log_outputs: true }",
        **words32._LOOKS,
        tools_py=words32._TOOL,
    )
    words32.project(
        folder / "calls",
        words32._CLAW % "reflex"
        + words32._ALLOW % ("allow", ", rate_limits: { tool_calls_per_minute: 20 }"),
        **words32._LOOKS,
        tools_py=words32._TOOL + "".join(TOOL % (number, number) for number in range(10)),
    )
    watching = (
        "prompt_injection: { detection: pattern }, secret_scanning: { enabled: true }, "
        "audit: { log_outputs: true }"
    )
    words32.project(
        folder / "watched",
        words32._CLAW % "reflex" + words32._BLOCKS % watching + words32._TALK,
        **words32._LOOKS,
        tools_py=words32._TOOL,
    )
    words32.project(folder / "both", words32.remote("anthropic-native", "openai-compatible"))
    for name in AGENTS:
        found[name] = folder / name
    for name, text in (("greenhouse", "is the soil dry?"), ("blink", "blink")):
        (folder / name / "says").write_text(text)
    return found


def test_words_of_32_bits_have_a_picos_stack(board, agents, monkeypatch):
    """With a quarter of it free; what is held is the same as with all of that port's stack."""
    if words32.missing():
        pytest.skip(words32.missing())
    found = {}
    for stack in (3500, words32.STACK, 30000):
        monkeypatch.setattr(words32, "STACK", stack)
        found[stack] = words32.measure(board, agents["greenhouse"], 32)
    little, pico, whole = found.values()
    # what a step takes differs by the digits of the times in it, and by what a stack seems to name
    pairs = [*zip(pico.pop("most"), whole.pop("most"), strict=True)]
    pairs += [(pico[key], whole[key]) for key in whole] + [(little["ready"], whole["ready"])]
    assert all(abs(one - other) <= 64 for one, other in pairs), found
    # the turn needs more, and its modules are not there afterwards
    assert little["after"] < whole["after"] - 8192, found


@pytest.mark.parametrize("name", ["greenhouse", "both"])
def test_a_packed_slot_takes_what_is_said_and_no_more_stack(board, agents, name):
    """Beside the same files unpacked, both in a Pico's stack with a quarter free."""
    if words32.missing():
        pytest.skip(words32.missing())
    folder, pico = agents[name], boards.profile("pico")
    data, tools_py = (folder / "claw.cbor").read_bytes(), words32.source(folder)
    slots = board, words32.pack(board, [*slot.parts(words32.opened(folder)), "bank"])
    files, packed = (words32.measure(one, folder, 32) for one in slots)
    more = packed["start"] + packed["after"] - files["start"] - files["after"]
    roomy = structs.replace(pico, flash_bytes=slot.FILES_FLASH)
    said = [heap.heap_after_calls(data, tools_py, 32, one) for one in (roomy, pico)]
    assert 0.5 * more < said[1] - said[0] < 1.25 * more, (more, said, files, packed)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("name", AGENTS)
def test_the_heap_that_is_held_is_what_is_said(board, agents, name, bits):
    if bits == 32 and words32.missing():
        pytest.skip(words32.missing())
    folder = agents[name]
    said = heap.heap_after_calls((folder / "claw.cbor").read_bytes(), words32.source(folder), bits)
    measured = least(board, folder, bits, said)
    assert -BELOW[bits] * measured <= said - measured <= ABOVE[bits] * measured, (
        f"said {said}, measured {measured}; python tests/helpers/words32.py measures the code again"
    )


def least(board, folder: Path, bits: int, said: int) -> int:
    """Return the bytes that the agent in *folder* holds after a turn; *said*: what build says."""
    found = [words32.measure(board, folder, bits)["after"]]
    while len(found) < MOST_RUNS[bits] and said < (1 - BELOW[bits]) * min(found):
        found.append(words32.measure(board, folder, bits)["after"])
    return min(found)


@pytest.mark.parametrize("name", AGENTS)
def test_a_turn_works_in_the_heap_that_is_said(board, agents, name):
    """With 64-bit words: nothing else collects in the middle of a turn."""
    folder = agents[name]
    data, tools_py = (folder / "claw.cbor").read_bytes(), words32.source(folder)
    start = words32.measure(board, folder, 64)["start"]
    size = heap.count_need(data, tools_py, 64) + start
    done = subprocess.run(
        [
            pico_stack.micropython(),
            "-X",
            f"heapsize={size}",
            board / "start.py",
            folder / "claw.cbor",
        ],
        capture_output=True,
        text=True,
        timeout=300,
        env=dict(os.environ, MICROPYPATH=f"{board}:.frozen"),
    )
    assert done.returncode == 0 and '"after"' in done.stdout, done.stderr[-500:]


# Bytes of heap that are free before an agent, and in which MicroPython on a Cortex-M3 did its work
# (docs/boards.md); what `build` says is at most 15 % above.
WORKS = {
    row["case"]: row["value"]
    for row in map(json.loads, (ROOT / "benchmarks/results/boards/cortex-m3.jsonl").open())
}
MORE = 1.15
ESP32 = boards.profile("esp32").heap_bytes


def estimate_of(folder: Path, name: str) -> int:
    """Return what `build` says of one of ``board_work.PROJECTS``, which is built in *folder*."""
    image = Path(board_work.PROJECTS[name](folder))
    return heap.count_need(image.read_bytes(), words32.source(image.parent), 32)


@pytest.mark.parametrize("name", board_work.PROJECTS)
def test_what_is_said_is_what_a_cortex_m3_needed_and_little_more(tmp_path, name):
    said = estimate_of(tmp_path / "agent", name)
    assert WORKS[name] <= said <= MORE * WORKS[name], (said, WORKS[name])


def test_an_audited_greenhouse_fits_an_esp32(tmp_path):
    assert estimate_of(tmp_path / "agent", "greenhouse with audit") <= ESP32 == 134544


@pytest.mark.parametrize("name", board_work.PROJECTS)
def test_the_page_of_boards_says_what_build_says(tmp_path, name):
    row = re.search(rf"\| {name}\b[^|]*\| ([\d,]+) \| ([\d,]+) \|", BOARDS_PAGE.read_text())
    needed, said = (int(number.replace(",", "")) for number in row.groups())
    now = estimate_of(tmp_path / "agent", name)
    assert needed == WORKS[name] and abs(said - now) < 0.01 * now, f"build says {now:,}"


DIALOGUE = ("hello", "/tools", "/status", "/help", "%s", "n", "/trace", "%s", "y", "/trace")
WORK = {
    "greenhouse": ("water the plants for 1 seconds", "Watered for 1 s."),
    "blink": ("blink", "linked"),
    "chat": ("how are you", "> "),
}


@pytest.mark.parametrize("name", ["greenhouse", "blink"])
def test_a_dialogue_with_approvals_works_in_the_heap_that_is_said(board, tmp_path, name):
    """Each command of the console, and approvals given and refused."""
    new.new(str(tmp_path / name), name, offline=name == "greenhouse")
    image = Path(build_beside(str(tmp_path / name)))
    words = within(board, image, tmp_path)
    with Agent(words, tmp_path, env={"MICROPYPATH": f"{board}:.frozen"}) as it:
        it.expect("> ")
        for answer in ("n", "y"):
            for text in (
                "hello",
                "/tools",
                "/status",
                "/help",
                "water the plants for 1 seconds" if name == "greenhouse" else "blink",
                "/trace",
            ):
                it.line(text)
                said = it.expect("[y/N] " if text.startswith("water") else "> ")
                if text.startswith("water"):
                    it.line(answer)
                    said += it.expect("> ")
                    assert ("Watered for 1 s." in said) is (answer == "y")
                assert "out of memory" not in said, (text, said)
        it.end()
        assert it.wait() == 0


@pytest.mark.parametrize("name", WORK)
def test_no_step_of_a_dialogue_takes_more_than_is_said_of_32_bits(board, tmp_path, name):
    """With an approval given and one refused, and nothing collected within a step."""
    if words32.missing():
        pytest.skip(words32.missing())
    new.new(str(tmp_path / name), name, offline=name != "blink")
    image = Path(build_beside(str(tmp_path / name)))
    asked, answered = WORK[name]
    lines = [line.replace("%s", asked) for line in DIALOGUE]
    if name != "greenhouse":
        lines = [line for line in lines if line not in ("n", "y")]
    image.with_name("says").write_text("\n".join(lines))
    image.with_name("hears").write_text(answered)
    found = words32.measure(board, image.parent, 32)
    said = heap.count_need(image.read_bytes(), words32.source(image.parent), 32)
    assert found["most"][0] <= said, (found, said)


def test_no_call_with_a_request_id_takes_more_than_is_said_of_32_bits(
    micropython, mpy_cross, tmp_path
):
    """20 tools, 30 rules, 6 skills, 330 calls of which half go on record: nothing is collected
    within a step of a call.
    """
    if words32.missing():
        pytest.skip(words32.missing())
    image, board = recorded(tmp_path)
    found = words32.measure(board, image.parent, 32)
    said = heap.count_need(image.read_bytes(), words32.source(image.parent), 32)
    assert found["most"][board_work.REWRITES] <= said, (found, said)


@pytest.mark.parametrize("bits", [32, 64])
def test_calls_with_request_ids_work_in_the_heap_that_is_said(board, tmp_path, bits):
    """Half of them go on record; beyond the 64 that are remembered those are refused, and none
    for memory.  bits: of whose heap; objects of 64 bits are larger, so what suffices for them does
    for a board.  In its heap they may put off writing the journal anew, and say so.
    """
    image = Path(bench_micropython.write_mixed(str(tmp_path)))
    count, most = bench_micropython.MIXED, bench_micropython.RECORDED
    done = subprocess.run(
        [*within(board, image, tmp_path, bits), "--stdio"],
        input=agent.opening() + b"".join(bench_micropython.alternate_calls(count)),
        capture_output=True,
        timeout=300,
        env=dict(os.environ, MICROPYPATH=f"{board}:.frozen"),
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()][2:]
    codes = [answer["error"]["code"] for answer in answers if "error" in answer]
    assert (len(answers), set(codes), len(codes)) == (count, {-32600}, count // 2 - most)
    later = b"clawlite: the journal of calls cannot be written anew: "
    assert all(bits == 32 and line.startswith(later) for line in done.stderr.splitlines()), done


@pytest.mark.parametrize("bits", [32, 64])
def test_what_is_left_after_calls_with_request_ids_leaves_room_for_a_turn(
    micropython, mpy_cross, tmp_path, bits
):
    """20 tools, 30 rules, 6 skills, and 330 calls of which half go on record."""
    if bits == 32 and words32.missing():
        pytest.skip(words32.missing())
    image, board = recorded(tmp_path)
    left = words32.measure(board, image.parent, bits)["after"]
    said = heap.count_need(image.read_bytes(), words32.source(image.parent), bits)
    assert left + heap._ROOM[bits] <= said


def test_a_rehearsal_has_the_room_that_it_asks_for(micropython, mpy_cross, tmp_path):
    """The freezer's: what it holds, and a line that it reads beside."""
    if words32.missing():
        pytest.skip(words32.missing())
    new.new(str(tmp_path / "agent"), "freezer", offline=True)
    image = Path(build_beside(str(tmp_path / "agent")))
    began_s = (int(time.time()) // 3600 - 24) * 3600
    values = ",".join("%d,%d" % (60 * at, -20 + at // 4) for at in range(60))
    lines = '["!",%d,[0,[0,[]]]]\n["freezer",%d,[%s]]\n' % (began_s, began_s, values)
    image.with_name("%d.readings" % (began_s // 86400)).write_text(lines)
    image.with_name("says").write_text("/rehearse warm")
    board = words32.tree(tmp_path / "board", runs="words32_rehearsal.py")
    source = firmware.firmware_dir() / "micropython/rules/boardrules.py"
    room = int(re.search(r"^_ROOM = const\((\d+)\)", source.read_text(), re.M)[1])
    held = []
    while not held or min(held) > room - 2048 and len(held) < 16:  # numbers that pass for pointers
        found = words32.measure_beside(board, image.parent, 16 * len(held))
        held.append(found["held"] - found["ready"])
    assert room - 12288 < min(held) <= room - 2048, held


def test_what_an_answer_with_samples_on_record_holds(micropython, mpy_cross, tmp_path):
    """A day of the freezer's, a sample a minute: between its steps at most 12 KiB more than before,
    and afterwards the first one's new names.
    """
    if words32.missing():
        pytest.skip(words32.missing())
    new.new(str(tmp_path / "agent"), "freezer", offline=True)
    image, now_s = Path(build_beside(str(tmp_path / "agent"))), int(time.time())
    for day in (now_s // 86400 - 1, now_s // 86400):
        values = ",".join("%d,%.1f" % (60 * at, at % 7 - 20.5) for at in range(10))
        lines = [
            '["freezer",%d,[%s]]\n' % (day * 86400 + at, values) for at in range(0, 86400, 600)
        ]
        image.with_name("%d.readings" % day).write_text("".join(lines))
    asked = agent.line("claw.reading.history", {"name": "freezer"}, 3)
    image.with_name("lines").write_bytes(agent.opening() + asked)
    board = words32.tree(tmp_path / "board", runs="words32_history.py")
    held = []
    while not held or min(held) > 12288 and len(held) < 8:  # numbers that pass for pointers
        found = words32.measure_beside(board, image.parent, 16 * len(held))
        held.append(found["held"] - found["ready"])
    assert 4096 < min(held) <= 12288 and found["after"] <= found["ready"] + 2048, (
        held,
        found,
    )


def recorded(folder: Path) -> tuple:
    """Return (image, what runs on a board) of an operator's calls, of which half go on record."""
    (folder / "agent").mkdir()
    image = Path(bench_micropython.write_mixed(str(folder / "agent")))
    lines = bench_micropython.alternate_calls(bench_micropython.MIXED)
    image.with_name("lines").write_bytes(agent.opening() + b"".join(lines))
    return image, words32.tree(folder / "board", runs="words32_calls.py")


def within(board, image: Path, folder: Path, bits: int = 64) -> list:
    """Return the words that start the agent of *image* in the heap that is said of it on *bits*."""
    start = words32.measure(board, image.parent, 64)["start"]
    for path in image.parent.glob("calls.*"):
        path.unlink()
    (folder / "main_of.py").write_text("import sys, main\nsys.exit(main.main(sys.argv[1:]))\n")
    size = heap.count_need(image.read_bytes(), words32.source(image.parent), bits) + start
    return [pico_stack.micropython(), "-X", f"heapsize={size}", folder / "main_of.py", image]


def test_requests_to_stores_work_in_the_heap_that_is_said(board, tmp_path):
    """Entries of all sizes, and questions whose answers are as long as they get."""
    image = tmp_path / "claw.cbor"
    image.write_bytes((GOLDEN / "memory/claw.cbor").read_bytes())
    (tmp_path / "main_of.py").write_text("import sys, main\nsys.exit(main.main(sys.argv[1:]))\n")
    size = (
        heap.count_need(image.read_bytes(), "", 64)
        + words32.measure(board, image.parent, 64)["start"]
    )
    image.with_name("memory-ea6d3435.log").unlink(missing_ok=True)

    def store(number: int, *contents) -> tuple:
        return "claw.memory.store", {
            "store": "room",
            "entries": [{"content": content} for content in contents],
            "context": {"request_id": UUID % number},
        }

    def query(**question) -> tuple:
        return "claw.memory.query", {"store": "room", "query": question}

    asked = [("claw.initialize", INITIALIZE), store(1, "x" * 4096), store(2, *["y"] * 26)] + [
        store(number, "pump %d " % number + "z" * 280) for number in range(3, 60)
    ]
    asked += [
        query(type="semantic", text="pump 17"),
        query(type="time-range", time_range={"from": "1970-01-01", "to": "2100-01-01"}),
        ("claw.memory.compact", {"store": "room"}),
    ]
    lines = "".join(
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"
        for number, (method, params) in enumerate(asked)
    )
    done = subprocess.run(
        [
            pico_stack.micropython(),
            "-X",
            f"heapsize={size}",
            tmp_path / "main_of.py",
            image,
            "--stdio",
        ],
        input=lines,
        capture_output=True,
        text=True,
        timeout=300,
        env=dict(os.environ, MICROPYPATH=f"{board}:.frozen"),
    )
    answers = [json.loads(line.lstrip("\x1e")) for line in done.stdout.splitlines()]
    assert len(answers) == len(asked) and all("result" in answer for answer in answers), (
        done.stderr,
        [answer for answer in answers if "error" in answer],
    )
    assert answers[-3]["result"]["entries"][0]["content"].startswith("pump 17 ")


FLASH = """
import os, sys, vfs

class Flash:
    def __init__(self, blocks):
        self.data = bytearray(blocks * 4096)
    def readblocks(self, block, buffer, offset=0):
        at = block * 4096 + offset
        buffer[:] = self.data[at:at + len(buffer)]
    def writeblocks(self, block, buffer, offset=None):
        at = block * 4096 + (offset or 0)
        self.data[at:at + len(buffer)] = buffer
    def ioctl(self, op, arg):
        return len(self.data) // 4096 if op == 4 else 4096 if op == 5 else 0

flash = Flash(352)
vfs.VfsLfs2.mkfs(flash)
vfs.mount(flash, "/flash")
free = os.statvfs("/flash")[3]
for slot in ("/flash/claw-a/", "/flash/claw-b/"):
    os.mkdir(slot[:-1])
    for path in sys.argv[1:]:
        with open(path, "rb") as old, open(slot + path.split("/")[-1], "wb") as new:
            new.write(old.read())
print((free - os.statvfs("/flash")[3]) * 4096)
"""


@pytest.mark.parametrize("name", ["tools", "greenhouse", "both"])
@pytest.mark.parametrize("profile", ["pico-w", "pico2"])
def test_the_flash_is_what_is_said(micropython, mpy_cross, agents, name, profile, tmp_path):
    """On littlefs, as a Pico has it, in both slots."""
    there, folder = boards.profile(profile), agents[name]
    (tmp_path / "flash.py").write_text(FLASH)
    files = board_files.board_files(str(folder / "claw.cbor"), str(tmp_path / "lib"), there)
    slots = []
    for path, place in files:
        if place.startswith("/claw-a"):
            slots.append(shutil.copy(path, tmp_path / os.path.basename(place)))
    listed = {
        os.path.basename(path): open(path, "rb").read()
        for path in slots
        if not str(path).endswith(".cbor")
    }
    (tmp_path / FILES).write_bytes(file_list(listed))
    slots.append(tmp_path / FILES)
    done = subprocess.run(
        [micropython, "-X", "heapsize=8m", tmp_path / "flash.py", *slots],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    said = heap.flash((folder / "claw.cbor").read_bytes(), words32.source(folder), there)
    assert abs(said - int(done.stdout)) <= WITHIN * int(done.stdout), (said, done.stdout)


@pytest.fixture(scope="module")
def with_stand_ins(micropython, mpy_cross, tmp_path_factory):
    return words32.tree(tmp_path_factory.mktemp("with"), True)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("name", ["greenhouse", "blink", "rules"])
def test_the_heap_that_is_held_with_real_pins_and_a_radio(with_stand_ins, agents, name, bits):
    if bits == 32 and words32.missing():
        pytest.skip(words32.missing())
    folder = agents[name]
    said = heap.heap_after_calls(
        (folder / "claw.cbor").read_bytes(), words32.source(folder), bits, boards.profile("pico-w")
    )
    measured = least(with_stand_ins, folder, bits, said)
    assert -BELOW[bits] * measured <= said - measured <= ABOVE[bits] * measured, (
        f"said {said}, measured {measured}; python tests/helpers/words32.py measures the code again"
    )


def test_every_part_of_the_code_has_its_sizes():
    sizes = heap.sizes()
    parts = {
        "agent",
        "anthropic",
        "audit",
        "buses",
        "cron",
        "gateway",
        "guard",
        "injection",
        "lan",
        "leaks",
        "limits",
        "log",
        "machinepins",
        "memory",
        "openai",
        "pins",
        "reflex",
        "relayed",
        "remote",
        "replay",
        "rules",
        "skills",
        "swarmmember",
        "swarmstop",
        "tools",
        "wifi",
    }
    assert set(sizes) == {"32", "64", "flash"} and set(sizes["32"]) == set(sizes["64"]) == parts
    # a pool of names doubles in the part that fills it, with one size of words earlier than with
    # the other
    names = 3584
    assert (
        all(0 < sizes["32"][part] < sizes["64"][part] + names for part in parts)
        and sizes["32"]["agent"] < sizes["64"]["agent"]
    )


def test_the_files_of_the_table_are_those_that_there_are():
    """The estimate of flash chooses among them as a flash does; a few may have come or gone
    since ``python tests/helpers/words32.py`` wrote them.
    """
    table, there = heap.sizes()["flash"], slot.ways()
    assert set(table["sizes"]) == {f"{name}.mpy" for name in table["ways"]} | {"sentences"}
    assert (
        sum(table["ways"].get(name) != ways for name, ways in there.items())
        + len(set(table["ways"]) - set(there))
        <= len(there) // 20
    )


def test_twenty_tools_of_a_mediated_service(board, tmp_path):
    """Of 8 KiB on 32-bit words, code and tables together, beside the same agent without them."""
    if words32.missing():
        pytest.skip(words32.missing())
    tools = [
        {**trading_desk.DESCRIPTOR["tools"][1], "name": f"order_{number}"} for number in range(20)
    ]
    provider = (
        "{ name: remote, protocol: openai-compatible, "
        'endpoint: "http://127.0.0.1:9/v1", model: m, auth: { type: none } }'
    )
    found = []
    for name, grants in (("without", 'surfaces = ["service://trading-api"]\n'), ("with", None)):
        folder = trading_desk.write(
            tmp_path / name,
            descriptor={**trading_desk.DESCRIPTOR, "tools": tools, "skill": None, "feeds": []},
            allow='"all"',
            service='mode = "mediated"\n',
            more="[gateway]\n",
            provider=provider,
            grants=grants,
            reflex=RULE % (1, 1),
        )
        text = (folder / "services/trading-api.json").read_text()
        (folder / "services/trading-api.json").write_text(text.replace('"skill": null,', ""))
        build_beside(str(folder))
        found.append(words32.measure(board, folder, 32))
    more = {key: found[1][key] - found[0][key] for key in ("ready", "after")}
    assert 0 < max(more.values()) <= 8192, (more, found)


def test_twenty_tools_of_a_mediated_mcp_server(board, tmp_path):
    """Of 8 KiB on 32-bit words, code and tables together, beside the same agent without them."""
    if words32.missing():
        pytest.skip(words32.missing())
    found = []
    for count in (0, 20):
        tools = [mcp_agents.tool("tool-%d" % n, "many_%03d" % n) for n in range(count)]
        (tmp_path / str(count)).mkdir()
        folder = mcp_agents.write(tmp_path / str(count), ("many",), tools=tools)
        settings = folder / "clawlite.toml"
        settings.write_text(settings.read_text() + 'mode = "mediated"\n[gateway]\n')
        (folder / "reflex.toml").write_text(RULE % (1, 1))
        build_beside(str(folder))
        found.append(words32.measure(board, folder, 32))
    more = {key: found[1][key] - found[0][key] for key in ("ready", "after")}
    assert 0 < max(more.values()) <= 8192, (more, found)  # 3,616 bytes on 32 bits


def test_the_stop_of_a_swarm(board, tmp_path):
    """What ``[gateway] obeys_stop_of`` costs, beside the same agent without it."""
    if words32.missing():
        pytest.skip(words32.missing())
    found = []
    for name, more in (("without", ""), ("with", 'obeys_stop_of = "team"\n')):
        folder = tmp_path / name
        gateways.project(folder, "http://127.0.0.1:9/v1", gateway=more)
        (folder / "reflex.toml").write_text(RULE % (1, 1))
        build_beside(str(folder))
        found.append(words32.measure(board, folder, 32))
    more = {key: found[1][key] - found[0][key] for key in ("ready", "after")}
    assert max(more.values()) <= 1152, (more, found)  # 1,120 bytes, with what keeps it in flash


def test_a_member_of_a_swarm(board, tmp_path):
    """What a Swarm costs a board behind a gateway, beside the same agent without it."""
    if words32.missing():
        pytest.skip(words32.missing())
    found = []
    for name, more in (("without", ""), ("with", words32.SWARM % "garden")):
        folder = tmp_path / name
        gateways.project(folder, "http://127.0.0.1:9/v1")
        claw = (folder / "claw.yaml").read_text()
        (folder / "claw.yaml").write_text(claw + more)
        (folder / "reflex.toml").write_text(RULE % (1, 1))
        build_beside(str(folder))
        found.append(words32.measure(board, folder, 32))
    more = {key: found[1][key] - found[0][key] for key in ("ready", "after")}
    assert max(more.values()) <= 4096, (more, found)

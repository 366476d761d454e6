"""How much heap and flash an image takes on MicroPython, for words of 32 or 64 bits.

1. Code: the measured size of each part in ``board_sizes.json`` (tests/helpers/words32.py).
2. Data: the objects that a board makes of the image, counted as MicroPython lays them out.
3. tools.py: its functions, counted from its bytecode on this computer.  Tests check that the sum is
   within 15 % of what MicroPython measures.
"""

import functools
import json
import pathlib
import warnings

from clawlite.core.idempotency.idempotency import IDS
from clawlite.core.image import image as layout
from clawlite.core.image import memories
from clawlite.core.image.image import RULE_ACTION, SUPERVISED
from clawlite.core.policy import policy
from clawlite.core.rules import table
from clawlite.host.firmware import slot
from clawlite.host.image.image_reader import read
from clawlite.host.memory import board_stores as stores
from clawlite.protocols.image.features import KINDS

BLOCK_BYTES = 4096  # of littlefs on boards' flash
SIZES = pathlib.Path(__file__).with_name("board_sizes.json")
# py/map.c
# fmt: off
_DICT_SLOTS = (
    0, 2, 4, 6, 8, 10, 12, 17, 23, 29, 37, 47, 59, 73, 97, 127, 167, 223, 293, 389, 521, 691, 919,
    1223, 1627, 2161, 3229, 4831, 7243, 10861, 16273, 24407, 36607, 54907,
)
# fmt: on
# Fitted to 32-bit words: a function's objects, a name that is known nowhere else, a text that is
# kept once and not as a name.
_FUNCTION_WORDS, _NAME_WORDS, _SHORT = 12, 4, 10
# what is known of a reading or of a rule beside its record, with what survives of it, and what a
# run is put on record with
_EACH_RULE_WORDS = 140
# For the work of users, beyond what is held (ADR 0014): with 64-bit words the smallest heaps on the
# unix port in which a dialogue with all console commands, approvals and 330 calls with request ids
# were done; with 32-bit words those on a Cortex-M3, and some 4 % of them more.
_ROOM = {32: 28672, 64: 32768}
_TOOLS_ROOM = {32: 3584, 64: 12288}
_APPROVAL_ROOM = {32: 7904, 64: 6144}
# of a turn with a remote model, where both codecs are there
_REMOTE_ROOM = {32: 7168, 64: 14336}
# for each tool and skill: 20 tools and 6 skills need it beside the ids of their calls
_EACH_ROOM = {32: 320, 64: 512}
# for channels that a gateway carries: what the first message loads, and texts that it has not
# confirmed (relayed.py).  Reckoned from their sizes, and not measured
_RELAYED_ROOM = {32: 8192, 64: 10240}
# of a turn that a Channel of type cron begins: it collects what the turn says
_CRON_ROOM = {32: 6144, 64: 8192}
# while a text of some 2 KB is looked at; one that does not fit is an error, not a pass
_LOOK_ROOM = {
    "leaks": {32: 8192, 64: 8192},
    "injection": {32: 20480, 64: 20480},
    "audit": {32: 20480, 64: 32768},
    # while a row is checked; reckoned from the sizes of boardteach.py and teachrows.py
    "teach": {32: 24576, 64: 40960},
}
# for a request to its stores, with 4 KiB of content; measured as above
_STORE_ROOM = 40960
# while tools.py is compiled, before most of our code is loaded; measured as above
_TOOLS_BASE, _TOOLS_FACTOR = 16384, 6
_OF_SWARM = ("swarmmember", "swarmstop")  # parts that an image loads for its swarm alone
_LISTED_BYTES = 32  # a line of a slot's list of files, host/flash/plan.py
# code of a packed slot's main.mpy, and a line of its index beside the name (boot/packed.py)
_PACKED_ROOM = {32: 1280, 64: 2048}
_INDEXED_BYTES = 8
_LOG_BYTES = 32768  # two files, logfile.py
_ENTRY_BYTES = 350  # of a text of 290 bytes in the log of stores (storelog.py)
# of those that name no number, and while their log is written anew; it takes half of what is free
_STORE_BYTES = 2 * 32768
# two segments, the head and a folder (auditlog.py): the least with which it works
_AUDIT_BYTES = 49152


@functools.cache
def sizes() -> dict:
    """Return what was measured: {"32": {part: bytes of heap}, "64": the same, "flash": {"sizes":
    {file of the firmware: bytes}, "ways": what ``slot.ways`` returned, "boot": [bytes of each file
    that chooses a slot]}}."""
    return json.loads(SIZES.read_text(encoding="utf-8"))


class Heap:
    """Sizes in bytes of objects on MicroPython with words of *bits* bits: its heap is handed out
    in blocks of four words.
    """

    def __init__(self, bits: int):
        self.bits = bits
        self.word = bits // 8
        self.block = 4 * self.word

    def blocks(self, size: int) -> int:
        return -(-size // self.block) * self.block

    def value(self, value: object) -> int:
        """Return what *value* (of CBOR, or a tuple) takes, all that it holds included."""
        if value is None or isinstance(value, bool):
            return 0
        if isinstance(value, int):
            return 0 if -1 << self.bits - 2 <= value < 1 << self.bits - 2 else 2 * self.block
        if isinstance(value, float):
            return self.block
        if isinstance(value, (str, bytes)):
            # a board holds half a character, which tools.py may have, in three bytes
            size = len(value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value)
            return self.block + self.blocks(size + 1) if size else 0
        if isinstance(value, dict):
            return self.table(len(value)) + sum(
                self.value(key) + self.value(item) for key, item in value.items()
            )
        items = sum(self.value(item) for item in value)
        return items + (
            self.blocks((2 + len(value)) * self.word)
            if isinstance(value, tuple)
            else self.list(len(value))
        )

    def list(self, count: int) -> int:
        slots = 4
        while slots < count:
            slots *= 2
        return self.block + self.blocks(slots * self.word)

    def table(self, count: int) -> int:
        slots = next((slots for slots in _DICT_SLOTS if slots >= count), count)
        return self.block + self.blocks(2 * slots * self.word)


def code_parts(image, profile=None) -> list[str]:
    """Return which parts of a board's code an image (``image.Image``) loads, sorted, as
    ``board_sizes.json`` names them; *profile* of its board, whose pins are real and whose radio is
    used, or None."""
    found = {"agent", *slot.parts(image)} & set(sizes()["32"])
    if "tools" in image.requires and "remote" not in found:
        # what calls a tool, and what a call leaves; beside a provider it is forgotten for the next
        # request (host/firmware/overlays.py)
        found.add("tools")
    if "lan" in found:
        # what they share is in both; the line comes with a host, and is left while there is none
        found.discard("gateway")
    if profile:
        there = slot.of_board(profile)
        found |= {"wifi"} & set(there)
        if "machine" in there and "pins" in found:
            found = found - {"pins"} | {"machinepins"}
    return sorted(found)


@functools.lru_cache(maxsize=1)
def _open(data: bytes) -> layout.Image:
    return read(data)


def heap_after_calls(data: bytes, tools_py: str, bits: int, profile=None) -> int:
    """Return the bytes of heap that a board holds after a tool was called and every provider asked.

    data      the image
    tools_py  source of the tools.py that it needs, or ""
    profile   as in ``code_parts``
    """
    image = _open(data)
    heap = Heap(bits)
    code = sum(sizes()[str(bits)][part] for part in code_parts(image, profile))
    if slot.is_packed(profile):
        code += _PACKED_ROOM[bits] + _index_bytes(_files(slot.parts(image), profile))
    return code + content(heap, image) + (functions(heap, tools_py) if tools_py else 0)


def swarm(data: bytes, tools_py: str, bits: int, profile=None) -> int:
    """Return how many of the held bytes are code of the swarm's client; 0 without a swarm."""
    image = _open(data)
    return sum(sizes()[str(bits)][part] for part in code_parts(image, profile) if part in _OF_SWARM)


def count_need(data: bytes, tools_py: str, bits: int, profile=None) -> int:
    """Return the bytes of heap that the agent needs in use: the held bytes, room for what a turn
    allocates and leaves, and the requests that are remembered (core/idempotency/idempotency.py)."""
    image = _open(data)
    loaded = slot.parts(image)
    room = _ROOM[bits]
    # behind a gateway a turn leaves more free than the console's commands need
    if "remote" in loaded or bits == 64 and "gateway" in loaded:
        room += _REMOTE_ROOM[bits]
    if "tools" in image.requires:
        room += _TOOLS_ROOM[bits] + _EACH_ROOM[bits] * len(image.names)
        room += _APPROVAL_ROOM[bits] if _may_ask_person(image) else 0
        room += count_remembered(Heap(bits))
    room += _RELAYED_ROOM[bits] if "relayed" in loaded else 0
    room += _CRON_ROOM[bits] if "cron" in loaded else 0
    room += sum(_LOOK_ROOM[part][bits] for part in loaded if part in _LOOK_ROOM)
    room += (
        _STORE_ROOM + stores.index(memories.stores(image)) if image.size_of(layout.MEMORY) else 0
    )
    return max(
        heap_after_calls(data, tools_py, bits, profile) + room,
        _TOOLS_BASE + len(tools_py.encode()) * _TOOLS_FACTOR,
    )


def count_remembered(heap: Heap) -> int:
    """Return the bytes of as many calls as are remembered: the two tables of ``Idempotency``,
    beside the one that the second grew out of.
    """
    smaller = next(slots for slots in reversed(_DICT_SLOTS) if slots < IDS)
    return 2 * heap.table(IDS) + heap.table(smaller)


@functools.lru_cache(maxsize=1)  # a build asks for each kind of board
def _may_ask_person(image) -> bool:
    """Return whether a person may be asked before a tool runs."""
    if image.agent.autonomy == SUPERVISED:
        return True
    # the first offset says where the offsets end
    count = int.from_bytes(image.part(layout.RULES, 0, 4), "big") // 4 - 1
    return any(image.rule(number)[RULE_ACTION] == policy.APPROVE for number in range(count))


def flash(data: bytes, tools_py: str, profile=None) -> int:
    """Return the bytes of flash for two slots (docs/flash.md), each with what the image needs of
    the firmware (host/firmware/slot.py), the image and its tools.py, for what chooses one, and for
    what it writes as it runs; *profile* as in ``slot.of_board``."""
    image = _open(data)
    written = _LOG_BYTES if "log" in image.requires else 0
    if "memory" in image.requires:
        count = (
            sum(store.max_entries or 0 for store in memories.stores(image))
            if image.size_of(layout.MEMORY)
            else 0
        )
        written += max(_STORE_BYTES, 2 * _ENTRY_BYTES * count)
    written += _AUDIT_BYTES if "audit" in image.requires else 0
    having = slot.parts(image)
    written += BLOCK_BYTES if "limits" in having else 0
    files = _files(having, profile)
    if slot.is_packed(profile):
        modules = sum(files.values()) + _index_bytes(files) - files[slot.SENTENCES]
        files = {"main": 1, "modules": modules, slot.SENTENCES: files[slot.SENTENCES]}
    others = [len(files) * _LISTED_BYTES, len(" ".join(having)), len(data), len(tools_py.encode())]
    return 2 * on_flash([*files.values(), *others]) + on_flash(sizes()["flash"]["boot"]) + written


def _files(having: list, profile) -> dict:
    """Return {name: bytes} of the firmware's files for a slot with the parts *having*."""
    table = sizes()["flash"]
    names = slot.choose(table["sizes"], having + slot.of_board(profile), table["ways"])
    return {name: table["sizes"][name] for name in names}


def _index_bytes(files: dict) -> int:
    """Return the bytes of a pack's index of *files*."""
    return sum(len(name) - len(".mpy") + _INDEXED_BYTES for name in files)


def on_flash(files: list[int]) -> int:
    """Return the bytes of flash that files of these sizes take: whole blocks."""
    return sum(-(-size // BLOCK_BYTES) * BLOCK_BYTES for size in files)


def content(heap: Heap, image) -> int:
    """Return the bytes that an agent keeps in memory of its image."""
    total = heap.value(image.requires)
    total += sum(heap.value(value) for value in vars(image.agent).values())
    total += heap.value("\n" + "".join(name + "\n" for name in image.names)) + heap.value(
        bytes(4 * len(image.names) + 4)
    )
    total += heap.table(len(image.sections())) + len(image.sections()) * heap.value((0, 0))
    if "pins" in image.requires:
        pins = image.section(layout.PINS) or []
        total += (
            sum(heap.value(pin[0]) + heap.list(5) + heap.value(pin[4]) for pin in pins)
            + heap.table(len(pins))
            + heap.list(len(pins))
        )
    if "guard" in image.requires or "audit" in image.requires:
        total += sum(heap.value(part) for part in image.section(layout.GUARD)[1:5])
    if "rules" in image.requires:
        readings, rules, _ = section = image.section(table.SECTION)
        total += heap.value(section) + _EACH_RULE_WORDS * heap.word * (len(rules) + len(readings))
    if "cron" in image.requires:
        crons = [one for one in image.section(layout.CHANNELS) if KINDS[one[1]].ability == "cron"]
        total += heap.value(crons) + _EACH_RULE_WORDS * heap.word * len(crons)
    for number in set(image.agent.providers):
        total += heap.value(
            image.section((layout.REFLEX, layout.REPLAY)[max(number, 0)])
            if number < 2
            else image.provider(number - 2)
        )
    return total


def functions(heap: Heap, source: str) -> int:
    """Return the bytes of what tools.py defines: of each function, of their bytecode, and of
    names and texts.
    """
    count = units = 0
    names, texts = set(), set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as those about escapes: a run shows them
        todo = [compile(source, "tools.py", "exec", dont_inherit=True, optimize=2)]
    while todo:
        code = todo.pop()
        count += 1
        # 0 is CACHE
        units += sum(1 for at in range(0, len(code.co_code), 2) if code.co_code[at])
        names.update(code.co_names, code.co_varnames)
        for constant in code.co_consts:
            if hasattr(constant, "co_code"):
                todo.append(constant)
            elif isinstance(constant, (str, bytes)):
                (names if len(constant) <= _SHORT else texts).add(constant)
    return (
        _FUNCTION_WORDS * heap.word * count
        + units * 17 // 10
        + _NAME_WORDS * heap.word * len(names)
        + sum(map(heap.value, texts))
    )

"""The stores of a board whose flash fails, for test_board_stores.py: littlefs on a RAM disk, on
MicroPython.

    micropython store_board.py WHAT OUT        OUT is JSON

power   requests are stored, compacted and written anew; for each moment at which power can go:
        {"states", "wrong": [[state, what is there], ...], "anew": bool}
damage  each byte of a log is another one in turn: {"bytes", "damaged": how many were refused,
        "shorter": how many have lost the end, "wrong": [byte, ...]}
locked  what is said of a flash that takes no writing, and when it takes it again
unset   what is known of entries from before the clock was set: {"before", "after", "again", "old"}
moved   a log of turns of an older version is taken over; for each moment at which power can go:
        {"states", "wrong": [[state, what is there], ...]}
goes_on turns where index or flash are full, or others have filled it: {"index", "flash", "others",
...}
full    what is said while the flash fills, and when there is room again
"""

import json
import os
import struct
from binascii import crc32

# what the stores load when they need it; here it is compiled, for which no board has the stack
import oldturns  # noqa: F401
import storelog  # noqa: F401
import storequery  # noqa: F401
import storewrite  # noqa: F401
import vfs
import words  # noqa: F401
from appendlog import append, read, walk
from jsontext import dumps, loads
from ram_disk import Disk, states
from stores import Stores

from clawlite.core.base.errors import StoreError
from clawlite.core.image.memories import CONVERSATION, KEY_VALUE, SEMANTIC, TRUNCATE, WINDOW, Store

_BLOCK = 512
_ID = "c1a00000-0000-4000-8000-%012d"
_RECORDS = [
    [
        "notes",
        SEMANTIC,
        0,
        None,
        40,
        WINDOW,
        False,
        0,
        0,
        10,
        False,
        None,
        None,
        None,
        False,
        None,
        None,
    ],
    [
        "facts",
        KEY_VALUE,
        0,
        None,
        None,
        0,
        False,
        0,
        0,
        10,
        False,
        None,
        None,
        None,
        False,
        None,
        None,
    ],
    [
        "young",
        SEMANTIC,
        0,
        60,
        None,
        0,
        False,
        0,
        0,
        10,
        False,
        None,
        None,
        None,
        False,
        None,
        None,
    ],
    [
        "talk",
        CONVERSATION,
        0,
        None,
        None,
        0,
        False,
        0,
        0,
        10,
        False,
        None,
        None,
        None,
        False,
        None,
        None,
    ],
]
clock = [1800000000]
NOTES, FACTS, YOUNG, TALK = [Store(row) for row in _RECORDS]


class Agent:
    def __init__(self):
        self.image = self.agent = self
        self.name, self.identity = "a", "me"

    def section(self, number):
        return _RECORDS


def opened():
    return Stores(Agent(), "/disk/memory.log", lambda: clock[0], 900, (loads, dumps))


def do(log, verb, store, details):
    done, value = log.run(verb, store, "", details)
    if not done:
        raise value
    return value


def put(log, number, store, *entries):
    return do(
        log,
        "store",
        store,
        (_ID % number, [(key, content, None, None) for key, content in entries]),
    )["ids"]


def contents(log) -> list:
    found = []
    for store in (NOTES, FACTS):
        answer = do(log, "query", store, ("time-range", (0, 1 << 50), 1000, None))
        found.append([entry["content"] for entry in answer["entries"]])
    return found


def power():
    disk = Disk(_BLOCK, 128)
    vfs.VfsLfs2.mkfs(disk)
    vfs.mount(vfs.VfsLfs2(disk), "/disk")
    disk.log, begin, log = [], bytearray(disk.data), opened()
    done = [(0, contents(log))]  # (changes by then, what is there)
    jobs = [
        lambda: put(log, 1, NOTES, (None, "n1"), (None, "n2"), (None, "n3")),
        lambda: put(log, 2, FACTS, ("a", "1"), ("b", "2")),
    ]
    jobs += [
        lambda number=number: put(log, 10 + number, FACTS, ("a", "x" * number))
        for number in range(35)
    ]
    jobs += [
        lambda: put(log, 3, NOTES, *[(None, "m%d" % number) for number in range(39)]),
        lambda: do(log, "compact", NOTES, TRUNCATE),
        lambda: put(log, 4, NOTES, (None, "last")),
    ]
    is_new = False
    for job in jobs:
        clock[0] += 20
        end = log.end
        job()
        is_new = is_new or log.end < end
        done.append((len(disk.log), contents(log)))
    vfs.umount("/disk")
    found, wrong, at = 0, [], 0
    for count, torn in states(begin, disk.log, _BLOCK, 128):
        while at < len(done) - 1 and count >= done[at + 1][0]:
            at += 1
        vfs.mount(vfs.VfsLfs2(torn), "/disk")
        log = opened()
        here = contents(log)
        put(log, 5, NOTES, (None, "more"))
        may = [done[at][1], done[min(at + 1, len(done) - 1)][1]]
        if here not in may or contents(log)[0][-1] != "more" or contents(log)[1] != here[1]:
            wrong.append([count, here, may])
        vfs.umount("/disk")
        found += 1
    return {"states": found, "wrong": wrong[:3], "anew": is_new}


def said(log, verb, store, details):
    done, value = log.run(verb, store, "", details)
    return None if done else [value.code, value.message, value.hint, value.data]


def damage():
    disk = Disk(_BLOCK, 64)
    vfs.VfsLfs2.mkfs(disk)
    vfs.mount(vfs.VfsLfs2(disk), "/disk")
    log, states_ = opened(), [[[], []]]
    for number in range(1, 9):
        put(
            log,
            number,
            (NOTES, FACTS)[number % 2],
            ("k%d" % number, "value %d" % number),
            ("k", {"n": number}),
        )
        states_.append(contents(log))
    with open("/disk/memory.log", "rb") as file:
        data = file.read()
    found = {"bytes": len(data), "damaged": 0, "shorter": 0, "wrong": []}
    for at in range(len(data)):
        disk.log = []
        with open("/disk/memory.log", "wb") as file:
            file.write(data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1 :])
        try:
            here = contents(opened())
            found["shorter"] += 1
            if here not in states_[-2:]:
                found["wrong"].append(at)
        except StoreError as e:
            found["damaged"] += 1
            if e.data != {"cause": "damaged"}:
                found["wrong"].append(at)
    return found


def unset():
    disk = Disk(_BLOCK, 64)
    vfs.VfsLfs2.mkfs(disk)
    vfs.mount(vfs.VfsLfs2(disk), "/disk")

    def known(log):
        """Return (time stamps of what words find, the newest first; contents in a time range)."""
        found = do(log, "query", YOUNG, ("semantic", "note", 10, None))["entries"]
        return [entry["timestamp"] for entry in found], [
            entry["content"]
            for entry in do(log, "query", YOUNG, ("time-range", (0, 1 << 50), 10, None))["entries"]
        ]

    now, clock[0] = clock[0], None
    log = opened()
    again = put(log, 1, YOUNG, (None, "note 1")) == put(log, 1, YOUNG, (None, "note 1"))
    before = known(log)
    clock[0] = now
    put(log, 2, YOUNG, (None, "note 2"))
    after = known(opened())
    clock[0] = now + 61  # the second is too old, and so the first
    return {"before": before, "after": after, "again": again, "old": known(opened())}


def old(text: str, when: int, whose: str = "a\ntalk\n") -> bytes:
    """Return a turn as older versions kept it."""
    rows = [
        ["user", text],
        ["assistant", "", [["c", "look", "{}"]]],
        ["tool", "it", "c", "look", False],
        ["assistant", "Heard."],
    ]
    return struct.pack(">IIH", when, crc32(whose.encode()), len(rows)) + dumps(rows).encode()


def said_in(log) -> list:
    return [
        entry["content"]["text"]
        for entry in do(log, "query", TALK, ("time-range", None, 1000, None))["entries"]
        if entry["content"]["role"] == "user"
    ]


def moved():
    disk = Disk(_BLOCK, 128)
    vfs.VfsLfs2.mkfs(disk)
    vfs.mount(vfs.VfsLfs2(disk), "/disk")
    put(opened(), 1, FACTS, ("k", "v"))
    path, end, wanted = "/disk/conversation.log", 0, []
    for number in range(8):
        foreign = number in (0, 5)
        wanted += [] if foreign else ["turn %d" % (number // 2)]
        end = append(
            path,
            old(
                "turn %d" % (number // 2),
                (0, clock[0] + number)[number % 2],
                "b\ntalk\n" if foreign else "a\ntalk\n",
            ),
            end,
        )
    disk.log, begin = [], bytearray(disk.data)
    if said_in(opened()) != wanted:
        return {"states": 0, "wrong": said_in(opened())}
    vfs.umount("/disk")
    found, wrong = 0, []
    for count, torn in states(begin, disk.log, _BLOCK, 128):
        vfs.mount(vfs.VfsLfs2(torn), "/disk")
        here = [
            said_in(opened()),
            said_in(opened()),
            len([read(path, *place) for place in walk(path)]),
        ]
        if here != [wanted, wanted, 2]:
            wrong.append([count, here])
        vfs.umount("/disk")
        found += 1
    return {"states": found, "wrong": wrong[:3]}


def locked():
    disk = Disk(_BLOCK, 64)
    vfs.VfsLfs2.mkfs(disk)
    vfs.mount(vfs.VfsLfs2(disk), "/disk")
    put(opened(), 1, NOTES, (None, "one"))
    vfs.umount("/disk")
    vfs.mount(vfs.VfsLfs2(disk), "/disk", readonly=True)
    log = opened()
    refused = [
        said(log, "store", NOTES, (_ID % 2, [(None, "two", None, None)])),
        said(log, "compact", NOTES, TRUNCATE),
    ]
    there = contents(log)[0]
    vfs.umount("/disk")
    vfs.mount(vfs.VfsLfs2(disk), "/disk")
    return {"refused": refused, "there": there, "mended": put(log, 2, NOTES, (None, "two"))}


def goes_on():
    disk = Disk(_BLOCK, 64)
    vfs.VfsLfs2.mkfs(disk)
    vfs.mount(vfs.VfsLfs2(disk), "/disk")

    def turn(log, number, size=0):
        """Store a turn; return what is there of the conversation, numbers of turns, and of the
        facts; or the error.
        """
        done, value = log.run(
            "store",
            TALK,
            "",
            (
                None,
                [
                    (None, {"role": role, "text": "%d %s" % (number, size * "x")}, None, None)
                    for role in ("user", "assistant")
                ],
            ),
        )
        return (
            value
            if not done
            else [[int(text.split(" ")[0]) for text in said_in(log)], len(contents(log)[1])]
        )

    log, found = opened(), {}
    log.most = 20
    for number in range(8):
        put(log, 100 + number, FACTS, ("k%d" % number, "v"))
    found["index"] = [turn(log, number) for number in range(12)]
    found["refused"] = said(log, "store", TALK, (_ID % 200, [(None, "x", None, None)] * 20))
    log = opened()
    found["flash"] = [turn(log, number, 500) for number in range(12, 60)]
    found["again"] = turn(opened(), 60)
    with open("/disk/other", "wb") as file:
        try:
            while True:
                file.write(bytes(512))
                file.flush()
        except OSError:
            pass
    there = said_in(opened())
    found["others"] = [turn(opened(), number, 500).message for number in range(61, 64)]
    found["kept"] = said_in(opened()) == there
    os.remove("/disk/other")
    found["mended"] = turn(opened(), 64, 500)
    return found


def full():
    disk = Disk(_BLOCK, 96)
    vfs.VfsLfs2.mkfs(disk)
    vfs.mount(vfs.VfsLfs2(disk), "/disk")
    log, count, refused = opened(), 0, None
    while refused is None:
        count += 1
        refused = said(log, "store", FACTS, (_ID % count, [("k%d" % count, "y" * 400, None, None)]))
    kept = do(log, "compact", FACTS, WINDOW)[0], do(opened(), "compact", FACTS, WINDOW)[0]
    again = said(opened(), "query", FACTS, ("key", "k1", 1, None))
    over = said(log, "store", FACTS, (_ID % 5000, [("k1", "y" * 400, None, None)]))
    with open("/disk/other", "wb") as file:  # others take what is left for rewrites
        try:
            while True:
                file.write(bytes(512))
                file.flush()
        except OSError:
            pass
    crowded = said(opened(), "store", NOTES, (_ID % 5001, [(None, "y" * 400, None, None)]))
    there = do(opened(), "query", FACTS, ("key", "k%d" % (count - 1), 1, None))["entries"][0][
        "content"
    ]
    os.remove("/disk/other")
    with open("/disk/memory.log", "rb") as file:
        size = file.seek(0, 2)
    os.remove("/disk/memory.log")  # what a person may do
    log = opened()
    mended = put(log, 1, FACTS, ("k1", "new"))
    return {
        "count": count,
        "refused": refused,
        "kept": kept,
        "again": again,
        "over": over,
        "crowded": crowded,
        "there": there,
        "mended": mended,
        "bytes": size,
    }


def interrupted():
    """Ctrl-C after a record was written, and before the store knows of it."""
    disk = Disk(512, 128)
    vfs.VfsLfs2.mkfs(disk)
    vfs.mount(vfs.VfsLfs2(disk), "/disk")
    log, append = opened(), storewrite.append
    put(log, 1, NOTES, (None, "one"))

    def ends(*given):
        storewrite.append = append
        append(*given)
        raise KeyboardInterrupt

    storewrite.append = ends
    try:
        put(log, 2, NOTES, (None, "two"))
        raised = False
    except KeyboardInterrupt:
        raised = True
    put(log, 2, NOTES, (None, "two"))  # the same request again
    put(log, 3, NOTES, (None, "three"))
    return [raised, contents(log) == contents(opened()), str(contents(opened())).count("two")]


def main(what: str, out: str):
    result = {
        "power": power,
        "full": full,
        "damage": damage,
        "unset": unset,
        "moved": moved,
        "goes_on": goes_on,
        "locked": locked,
        "interrupted": interrupted,
    }[what]()
    with open(out, "w") as file:
        file.write(json.dumps(result))

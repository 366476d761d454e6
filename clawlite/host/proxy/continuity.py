"""Hidden rounds of tools, kept alive across turns (Clawdapus ADR-020, continuity).

A runner stores only what it was shown, so its next request lacks the rounds that ran here.  They
are kept beside the answer that followed them, and put before that answer whenever it comes back.

1. An answer with tool calls is known by their ids.  One without is known by its text and by what
   the person had said, around which a runner may have put other words.
2. The rounds of a request lie under the conversation as it stood from before its first call until
   its answer has been written.  When it fails, or the process ends, the same request goes on from
   there, and nothing runs twice.
3. Requests of one runner with the same conversation are answered one after the other (``alone``):
   what comes while another is under way may be that one again, whose connection broke.
4. Of each runner the last ``KEPT`` entries stay, ``KEPT_BYTES`` in all.
"""

import asyncio
import hashlib
import json
import weakref

from clawlite.host.proxy.dialect import json_text

KEPT = 128
KEPT_BYTES = 4 << 20
_SAID = 4096  # characters of what a person said that are compared


class Continuity:
    """The hidden rounds of all runners.

    rows  [(runner, anchor, asked, messages as JSON), ...] that were kept, the oldest first
    keep  function(runner, anchor, asked, messages as JSON): such a row lasts
    drop  function(runner, anchor): it is not needed any more
    """

    def __init__(self, rows=(), keep=None, drop=None):
        self._keep, self._drop = keep, drop
        self._entries = {}  # runner -> [(anchor, asked, json), ...]
        self._locks = weakref.WeakValueDictionary()  # (runner, anchor) -> asyncio.Lock
        for runner, *entry in rows:
            self._add(runner, tuple(entry))

    def restore(self, runner: str, dialect, messages: list) -> list:
        """Return *messages* with the hidden rounds of earlier turns where they were."""
        entries = self._entries.get(runner)
        if not entries:
            return messages
        places, used = {}, set()
        for index, calls, text, asked in reversed(dialect.anchors(messages)):
            anchor = _anchor(dialect, calls, text)
            for number in range(len(entries) - 1, -1, -1):
                if number in used or entries[number][0] != anchor:
                    continue
                if calls or _is_same_text(entries[number][1], asked):
                    places[index] = json.loads(entries[number][2])
                    used.add(number)
                    break
        made = []
        for index, message in enumerate(messages):
            made += places.get(index, ())
            made.append(message)
        return made

    def note_answer(self, runner: str, dialect, messages: list, final: dict, hidden: list) -> None:
        """Keep *hidden*, which came between *messages*, as the runner has them, and *final*."""
        if not hidden:
            return
        _, calls, text, asked = dialect.anchors([*messages, final])[-1]
        self._store(runner, _anchor(dialect, calls, text), asked, hidden)

    # -- requests without an answer

    def alone(self, runner: str, dialect, messages: list) -> asyncio.Lock:
        """Return what a request with this very conversation holds until it has ended."""
        place = runner, _conversation_anchor(dialect, messages)
        lock = self._locks.get(place)
        if lock is None:
            lock = self._locks[place] = asyncio.Lock()
        return lock

    def pending_rounds(self, runner: str, dialect, messages: list) -> list:
        """Return the rounds that ran for this very conversation before its request ended without
        an answer.
        """
        anchor = _conversation_anchor(dialect, messages)
        for entry in reversed(self._entries.get(runner, ())):
            if entry[0] == anchor:
                return json.loads(entry[2])
        return []

    def note_pending(self, runner: str, dialect, messages: list, hidden: list) -> None:
        """Keep *hidden* for the same request in place of what was kept for it before."""
        self.forget(runner, dialect, messages)
        if hidden:
            self._store(runner, _conversation_anchor(dialect, messages), "", hidden)

    def forget(self, runner: str, dialect, messages: list) -> None:
        anchor, entries = _conversation_anchor(dialect, messages), self._entries.get(runner, [])
        if any(entry[0] == anchor for entry in entries):
            entries[:] = [entry for entry in entries if entry[0] != anchor]
            if self._drop:
                self._drop(runner, anchor)

    def _store(self, runner: str, anchor: str, asked: str, hidden: list) -> None:
        entry = anchor, asked[:_SAID], json_text(hidden)
        self._add(runner, entry)
        if self._keep:
            self._keep(runner, *entry)

    def _add(self, runner: str, entry: tuple) -> None:
        entries = self._entries.setdefault(runner, [])
        entries.append(entry)
        while len(entries) > 1 and (
            len(entries) > KEPT or sum(len(each[2]) for each in entries) > KEPT_BYTES
        ):
            entries.pop(0)


def _anchor(dialect, calls: list, text: str) -> str:
    return _hash([dialect.name, calls] if calls else [dialect.name, text.strip()])


def _conversation_anchor(dialect, messages: list) -> str:
    return _hash([dialect.name, "whole", messages])


def _hash(value) -> str:
    return hashlib.sha256(json_text(value).encode("utf-8", "replace")).hexdigest()


def _is_same_text(one: str, other: str) -> bool:
    """Return whether both are the same words, but for what a runner put around them."""
    one, other = " ".join(one[:_SAID].split()), " ".join(other[:_SAID].split())
    return one == other or bool(one and other) and (one in other or other in one)

"""What of a Memory a MicroPython board cannot keep: a problem each, by field, and a way out (docs/memory.md).

A board keeps one conversation, the console's, in an append-only log of at most 32 KiB (firmware-host/micropython/conversation.py).
"""
from clawlite.core.memories import SUMMARIZE
from clawlite.host import memories

MAX_ENTRIES = 500               # so many short messages fill the log
KEPT = ("conversation",)


def wants(manifest, board, other, problems) -> None:
    """Add the problems of *manifest* on *board*; other: function(can, otherwise) -> a hint."""
    def elsewhere(otherwise: str) -> str:
        return other(lambda b: b.runtime != "micropython" and "memory" in b.abilities, otherwise)
    if manifest.identity.spec.context_files:
        problems.add(manifest.identity.place, ("context_files",), f"{board.name} reads no context files", hint=elsewhere("put the text into the personality"),
                     key=True)
    seen = set()
    for index, store in enumerate(manifest.memory.spec.stores if manifest.memory else ()):
        def problem(field, message, hint, **more):
            problems.add(manifest.memory.place, ("stores", index, *field), message, hint=elsewhere(hint), **more)
        if store.type not in KEPT:
            problem(("type",), f"{board.name} keeps no {store.type} store", "leave it out")
        elif store.type in seen:
            problem(("type",), f"{board.name} keeps one {store.type} store, and this is another", "leave it out")
        else:
            _conversation(store, board, problem)
        seen.add(store.type)


def _conversation(store, board, problem) -> None:
    if store.backend is not None:
        problem(("backend",), f"{board.name} has no {store.backend}: a conversation lies in a log of its own", "leave it out")
    if store.encryption:
        problem(("encryption",), f"{board.name} encrypts no store", "leave it out")
    if store.search is not None:
        problem(("search",), f"{board.name} does not search a conversation", "leave it out", key=True)
    if memories.compaction(store)[1] == SUMMARIZE:
        field = ("compaction",) if store.compaction else ("lifecycle",) if store.lifecycle and store.lifecycle.consolidation == "summarize" else ("forgetting",)
        problem(field, f"{board.name} does not summarize", "strategy truncate or sliding-window", key=True)
    if store.retention and (store.retention.max_entries or 0) > MAX_ENTRIES:
        problem(("retention", "max_entries"), f"{board.name} keeps at most {MAX_ENTRIES}", f"set it to {MAX_ENTRIES} or less")

"""What of a Memory a MicroPython board cannot keep: a problem each, by field, and a way out
(docs/memory.md).

A board keeps its stores, the console's conversation among them, in one append-only log
(firmware-host/micropython/stores/stores.py), found by key, time and words.
"""

from clawlite.core.image.memories import FILES, SUMMARIZE
from clawlite.host.memory import memories
from clawlite.host.memory.store_type import TYPES
from clawlite.host.providers import provider_order

# of the console's conversation, where it names no number (storelog.py)
TALK_ENTRIES = 256
# entries of all stores together: one for so many bytes of a board's heap (assemble.py)
MOST, ENTRY_HEAP = 4096, 256
ENTRY_BYTES = 6  # of heap that each takes (stores.py)


def entries(heap_bytes: int) -> int:
    """Return how many entries all stores may have on a board with so many bytes of heap."""
    return min(MOST, heap_bytes // ENTRY_HEAP)


def index(stores: list) -> int:
    """Return the bytes of heap that *stores* (``memories.Store``) take when they are full;
    without ``max_entries`` that is a guess.
    """
    return ENTRY_BYTES * min(MOST, sum(store.max_entries or ENTRY_HEAP for store in stores))


def add_problems(manifest, board, other, problems) -> None:
    """Add the problems of *manifest* on *board*; other: function(can, otherwise) -> a hint."""

    def elsewhere(otherwise: str) -> str:
        return other(lambda b: b.runtime != "micropython" and "memory" in b.abilities, otherwise)

    if manifest.identity.spec.context_files:
        problems.add(
            manifest.identity.place,
            ("context_files",),
            f"{board.name} reads no context files",
            hint=elsewhere("put the text into the personality"),
            key=True,
        )
    total = 0
    for number, store in enumerate(manifest.memory.spec.stores if manifest.memory else ()):

        def problem(field, message, hint, **more):
            problems.add(
                manifest.memory.place,
                ("stores", number, *field),
                message,
                hint=elsewhere(hint),
                **more,
            )

        _store(store, board, problem)
        kept = store.retention and store.retention.max_entries or 0
        if total <= entries(board.heap_bytes) < total + kept:
            problem(
                ("retention", "max_entries"),
                f"{board.name} keeps at most {entries(board.heap_bytes):,} entries, all stores "
                "together",
                "set it to less",
                found=f"{total + kept:,}",
            )
        total += kept


def find_notes(manifest, board, free_bytes) -> list[tuple]:
    """Return [((file, line), message), ...]: what is another thing on *board* than on a Pi, and
    no problem.
    """
    found = []
    if board.runtime != "micropython":
        return found
    for number, store in enumerate(manifest.memory.spec.stores if manifest.memory else ()):
        if store.type == "conversation":  # the first has the console's
            if not (store.retention and store.retention.max_entries):
                found.append(
                    (
                        manifest.memory.where("stores", number),
                        f"{board.name} keeps the newest {TALK_ENTRIES} messages of {store.name}: "
                        "it names no retention.max_entries",
                    )
                )
            break
    if manifest.settings.memory.wear_saving:
        found.append(
            (
                manifest.settings.place.where(("memory", "wear_saving")),
                f"wear_saving changes nothing on {board.name}: each request is one append to a log "
                "there",
            )
        )
    return found


def _store(store, board, problem) -> None:
    if TYPES[store.type].does(FILES):
        problem(("type",), f"{board.name} keeps no {store.type} store", "leave it out")
        return
    if store.backend in ("sqlite", "sqlite-vec"):  # others are built nowhere
        problem(
            ("backend",),
            f"{board.name} has no {store.backend}: its stores lie in a log of their own",
            "leave it out",
        )
    if memories.in_files(store):
        also = " and ".join(
            field for field in ("path", "max_size_mb") if getattr(store, field) is not None
        )
        problem(
            ("backend",),
            f"{board.name} has no files for a store: all of them lie in one log",
            "leave it out" + (f", and {also} too" if also else ""),
        )
    if store.encryption:
        problem(("encryption",), f"{board.name} encrypts no store", "leave it out")
    if provider_order.embeds(store):
        problem(("embedding",), f"{board.name} keeps no vectors", "leave it out", key=True)
    if store.search is not None and store.search.strategy in ("vector-only", "hybrid"):
        problem(("search", "strategy"), f"{board.name} keeps no vectors", "strategy fts-only")
    if store.search is not None and store.search.fusion is not None:
        problem(
            ("search", "fusion"),
            f"{board.name} keeps no vectors, and there is nothing to join",
            "leave it out",
            key=True,
        )
    if memories.compaction(store)[1] == SUMMARIZE:
        field = (
            ("compaction",)
            if store.compaction
            else ("lifecycle",)
            if store.lifecycle and store.lifecycle.consolidation == "summarize"
            else ("forgetting",)
        )
        problem(
            field,
            f"{board.name} does not summarize",
            "strategy truncate or sliding-window",
            key=True,
        )

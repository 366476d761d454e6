"""Memory, and the files of an agent's context, as the compiler sees them."""

from clawlite.core.image.image import CONTEXT, MEMORY
from clawlite.core.image.memories import FILES
from clawlite.host.memory import board_stores, memories
from clawlite.host.memory.model import MemorySpec
from clawlite.host.memory.store_type import TYPES
from clawlite.host.models.feature import Feature, Requirement


def compile_sections(manifest, work) -> dict:
    return {MEMORY: memories.section(manifest), CONTEXT: memories.context(manifest)}


def find_needs(manifest) -> list[Requirement]:
    if manifest.memory:
        return [Requirement("memory", manifest.memory.place)]
    if memories.context(manifest):
        return [Requirement("memory", manifest.identity.place, ("context_files",))]
    return []


def fit(manifest, board, other, problems) -> None:
    for index, store in enumerate(manifest.memory.spec.stores if manifest.memory else ()):
        size = (store.max_size_mb or 0) << 20
        if board.flash_bytes is not None and size > board.flash_bytes:
            problems.add(
                manifest.memory.place,
                ("stores", index, "max_size_mb"),
                f"{board.name} has {board.flash_bytes:,} bytes of flash",
                found=f"{size:,} bytes",
                hint=other(
                    lambda b: b.flash_bytes is None or size <= b.flash_bytes, "a smaller store"
                )
                if TYPES[store.type].does(FILES)
                else f"retention.max_entries in its place: a {store.type} store is "
                f"counted in entries",
            )
    if board.runtime == "micropython" and "memory" in board.abilities:
        board_stores.add_problems(manifest, board, other, problems)


FEATURE = Feature(
    "Memory",
    MemorySpec,
    check=memories.check,
    compile=compile_sections,
    needs=find_needs,
    fit=fit,
    note=board_stores.find_notes,
)

"""Compare a manifest with a board: each thing that the manifest wants and the board lacks becomes a
problem with file, line, field and a way out.

1. The board's profile decides; nothing is tried on a board.  Each feature says what it needs and
   how it fits (host/models/feature.py).
2. Another board is suggested as a way out only if it is known to have the thing.
3. The check of a feature refuses what this version builds on no board.  When both report the same
   field, the board's message is kept.
"""

import dataclasses
import functools
import typing

from clawlite.host.base.document import LinePlace
from clawlite.host.base.problems import ManifestErrors, Problem, Problems
from clawlite.host.boards import boards
from clawlite.host.boards.profile import Ability, Profile
from clawlite.host.firmware import slot
from clawlite.host.fit import heap as board_heap
from clawlite.host.manifest.features import FEATURES, find_needs
from clawlite.host.providers import trust

_SHOWN_BOARDS = 6
_ABILITIES = set(typing.get_args(Ability)) - {"http", "https", "process"}


class Need:
    """What an image takes on MicroPython, in bytes (heap.py); *board*: its profile, or None:
    any, with 32-bit words.
    """

    def __init__(self, manifest, data: bytes):
        source = b""
        if any(tool.function for tool in manifest.tools):
            source = dict(manifest.sources)["tools.py"]
        self._data, self._source = data, source.decode()
        modules = manifest.imports.modules if source and manifest.imports else []
        self._modules = [dict(manifest.sources)[name].decode() for name in modules]
        self._known = {}  # boards differ in little

    def _measure(self, function, board, *more) -> int:
        key = function, *more, slot.is_packed(board), *slot.of_board(board)
        if key not in self._known:
            self._known[key] = function(self._data, self._source, *more, board)
        return self._known[key]

    def count_held(self, board=None) -> int:
        bits = board.word_bits if board else 32
        return self._measure(board_heap.heap_after_calls, board, bits) + self._beside(bits)

    def _beside(self, bits: int) -> int:
        """Return the heap that the modules beside tools.py take."""
        heap = board_heap.Heap(bits)
        return sum(board_heap.functions(heap, text) for text in self._modules)

    def swarm(self, board=None) -> int:
        return self._measure(board_heap.swarm, board, board.word_bits if board else 32)

    def heap(self, board=None) -> int:
        bits = board.word_bits if board else 32
        return self._measure(board_heap.count_need, board, bits) + self._beside(bits)

    def flash(self, board=None) -> int:
        # compiled they are smaller than their text
        beside = board_heap.on_flash([len(text.encode()) for text in self._modules])
        return self._measure(board_heap.flash, board) + 2 * beside


def demand(manifest, board: Profile, build) -> tuple:
    """Return (what ``build()`` returns: ``compiler.build`` of *manifest*, the ``Need`` of its
    image).

    Raises ``ManifestErrors`` with all problems: what *board* cannot give, and those of the build.
    """
    try:
        built = build()
    except ManifestErrors as e:
        found = board_problems(manifest, board, boards.load_all(manifest.folder))
        known_problems = {(problem.file, problem.line, problem.path) for problem in found}
        raise ManifestErrors(
            found + [p for p in e.problems if (p.file, p.line, p.path) not in known_problems]
        ) from None
    need = Need(manifest, built.data)
    refuse(manifest, board, need)
    return built, need


def refuse(manifest, board: Profile, need: Need = None) -> None:
    """Raise ``ManifestErrors`` with all that *board* cannot give; *need*: of its image, where
    there is one.
    """
    known = boards.load_all(manifest.folder)
    found = board_problems(manifest, board, known) + (
        sizes(manifest, board, need, known) if need else []
    )
    if found:
        raise ManifestErrors(found)


def notes(manifest, board: Profile, need: Need = None) -> list[dict]:
    """Return what a maker should know of *board* (or None) and *manifest* that is no problem:
    [{file, line, message}]; *need*: of its image, where there is one.
    """
    if board is None:
        return []
    free_bytes = board.flash_bytes - need.flash(board) if need and board.flash_bytes else None
    found = [one for feature in FEATURES for one in feature.note(manifest, board, free_bytes)]
    return [{"file": file, "line": line, "message": message} for (file, line), message in found]


def fitting_boards(manifest, need: Need) -> tuple[list[str], dict[str, str]]:
    """Return (names of the boards on which an image of this need can run, {name of each other
    one: the first reason why not}).
    """
    fits, why_not = [], {}
    for board in boards.load_all(manifest.folder):
        problems = board_problems(manifest, board) or sizes(manifest, board, need)
        if problems:
            # check --board has the hint, and all others
            why_not[board.name] = dataclasses.replace(problems[0], hint="").text()
        else:
            fits.append(board.name)
    return fits, why_not


def board_problems(manifest, board: Profile, known: list = ()) -> list[Problem]:
    """Return a problem for each thing that *manifest* asks of *board* in vain; *known*: profiles
    that hints may name.
    """
    problems = Problems()
    other = functools.partial(_other_board_hint, known)
    for ability, wanted in find_needs(manifest).items():
        if ability in _ABILITIES and ability not in board.abilities:
            for one in wanted:
                message = one.message or f"this needs {ability}, which %s does not have"
                hint = other(lambda b: ability in b.abilities, one.instead)  # noqa: B023
                problems.add(one.place, one.path, message % board.name, hint=hint)
    for feature in FEATURES:
        feature.fit(manifest, board, other, problems)
    return problems.found


def sizes(manifest, board: Profile, need: Need, known: list = ()) -> list[Problem]:
    """Return a problem when the image takes more heap or flash than *board* has; *known* as
    above.
    """
    problems = Problems()
    place = LinePlace(manifest.file, 1)
    if board.runtime == "micropython":
        wanted = _heap(manifest, board, need)
        if wanted > board.heap_bytes:
            tls = (
                f" ({board.network.tls_bytes:,} of them for TLS)"
                if wanted > need.heap(board)
                else ""
            )
            problems.add(
                place,
                (),
                f"the agent needs about {wanted:,} bytes of heap{tls}, and "
                f"{board.name} has {board.heap_bytes:,}",
                hint=_other_board_hint(
                    known,
                    lambda b: (
                        (not tls or "https" in b.abilities)
                        and (not b.heap_bytes or _heap(manifest, b, need) <= b.heap_bytes)
                    ),
                    "[gateway] in clawlite.toml" if tls else "fewer tools or rules",
                ),
            )
        if board.flash_bytes is not None and need.flash(board) > board.flash_bytes:
            problems.add(
                place,
                (),
                f"the agent needs about {need.flash(board):,} bytes of flash, "
                f"and {board.name} has {board.flash_bytes:,}",
                hint=_other_board_hint(
                    known,
                    lambda b: b.flash_bytes is None or need.flash(b) <= b.flash_bytes,
                    "fewer entries: retention.max_entries"
                    if manifest.memory
                    else "a smaller agent",
                ),
            )
    return problems.found


def _heap(manifest, board: Profile, need: Need) -> int:
    """Return the bytes of heap that the agent needs on *board*, with those of a TLS connection."""
    return need.heap(board) + (board.network.tls_bytes or 0 if trust.hosts(manifest) else 0)


def _other_board_hint(known: list, can, otherwise: str) -> str:
    """Return a hint: *otherwise*, or the boards of *known* that ``can``."""
    able = [board.name for board in known if can(board)]
    if not able:
        return f"{otherwise}; no board that is known can" if known else ""
    more = len(able) - _SHOWN_BOARDS
    return (
        f"{otherwise}, or another board: "
        f"{', '.join(able[:_SHOWN_BOARDS])}{f' and {more} more' if more > 0 else ''}"
    )

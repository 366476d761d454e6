"""Tools with every form of annotation, default and docstring that has a schema."""

from typing import Literal

LED = "pump"


def look(
    where: str,
    many: list[int] = [1, 2],
    either: int | None = None,
    more: dict[str, float] = {},
    again: Literal["a", "b"] = "a",
) -> str:
    """Look somewhere.

    where: a place
    many: numbers,
        and more of them
    """
    return where


def fetch(
    url: str,
    headers: dict = {},
    *,
    board,
    limit: int = -1,
    ratio: float = 0.5,
    is_deep: bool = True,
):
    """Fetch it."""
    board.write(LED, 1)
    for number in range(limit):
        yield board.read("soil", value=number)


def _private(x):
    return [lambda board: board.write("pump", 1)]

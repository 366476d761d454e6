"""Tools with every form of annotation, default and docstring that has a schema."""

from typing import Literal

LED = "pump"


def look(
    where: str,
    many: list[int] = [1, 2],
    either: int | None = None,
    more: dict[str, float] = {},
    again: Literal["a", "b"] = "a",
) -> dict:
    """Look somewhere.

    where: a place
    many: numbers,
        and more of them
    """
    return {"percent": len(where), "where": where}


def fetch(
    url: str,
    headers: dict = {},
    *,
    limit: int = -1,
    ratio: float = 0.5,
    is_deep: bool = True,
):
    """Fetch it."""
    for number in range(limit):
        yield number


def _private(x):
    return [lambda board: board.write(LED, board.read("soil", value=x))]

"""Board profiles for people: a table of 80 columns, and one board in full."""

_KIB = 1024


def table(rows: list[dict]) -> list[str]:
    """Return the lines of the table of ``boards.rows``."""
    lines = [_row("board", "title", "bits", "heap", "flash", "network")]
    lines += [
        _row(
            row["name"],
            row["title"],
            row["word_bits"],
            _kib(row["heap_bytes"]),
            _kib(row["flash_bytes"]),
            " ".join(row["network"]["links"]) or "none",
        )
        for row in rows
    ]
    return lines + ["heap and flash in KiB; for more, and what is unchecked: clawlite boards BOARD"]


def _row(name, title, bits, heap, flash, network) -> str:
    return f"{_cut(name, 15):15} {_cut(title, 27):27} {bits:>4} {heap:>6} {flash:>6} {network}".rstrip()  # noqa: E501


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "~"


def _kib(size) -> str:
    return "-" if size is None else str(size // _KIB)


def board_lines(row: dict) -> list[str]:
    """Return the lines about one board: a field each, ``?`` behind those that nobody has checked
    on such a board.
    """
    unchecked = set(row["unchecked"] or ())
    lines = [f"{row['name']}: {row['title']} ({row['file']})"]
    for name, value in row.items():
        if name in ("name", "title", "file", "unchecked", "sources") or value is None:
            continue
        if not isinstance(value, dict):
            lines.append(_field(name, value, name in unchecked))
            continue
        for inner, item in value.items():
            if isinstance(item, dict):
                lines += [
                    _field(f"{name}.{inner}", f"{spans}: {why}", name in unchecked)
                    for spans, why in item.items()
                ]
            elif item is not None:
                lines.append(
                    _field(
                        f"{name}.{inner}", item, name in unchecked or f"{name}.{inner}" in unchecked
                    )
                )
    if unchecked:
        lines.append("? nobody has checked this on such a board")
    return lines + ["sources"] + [f"  {source}" for source in row["sources"]]


def _field(name: str, value, is_unchecked: bool) -> str:
    if isinstance(value, bool):
        value = "yes" if value else "no"
    elif isinstance(value, list):
        value = ", ".join(map(str, value)) or "none"
    return f"  {name:27}{'? ' if is_unchecked else '  '}{value}"


def fit_lines(boards: list[str], why_not: dict[str, str]) -> list[str]:
    """Return a line for each board: whether an image can run on it, and if not, the first reason
    of *why_not*.
    """
    return ["boards that it fits"] + [
        f"  {name:15} {'no: ' + why_not[name] if name in why_not else 'yes'}"
        for name in sorted([*boards, *why_not])
    ]

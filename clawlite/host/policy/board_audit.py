"""An audit on a MicroPython board: refuse the settings that a board cannot honour, and warn the
maker of limits (docs/audit.md).

A board keeps its audit in files on its flash (firmware-host/micropython/audit/auditlog.py), in at
most half of the flash that the agent leaves free."""

from clawlite.host.policy.scan_config import blocks_of


def add_problems(manifest, board, other, problems) -> None:
    """Add the problems of *manifest* on *board*; other: function(can, otherwise) -> a hint."""
    for policy, block in blocks_of(manifest, "audit"):
        if block.destination not in (None, "file"):
            problems.add(
                policy.place,
                ("audit", "destination"),
                f"{board.name} keeps its audit in files",
                '"file"',
                f'"{block.destination}"',
                hint=other(
                    lambda b: b.runtime != "micropython" and "audit" in b.abilities,
                    "write destination: file, and fetch it with clawlite audit --port PORT",
                ),
            )


def notes(manifest, board) -> list:
    """Return [((file, line), sentence)]: an audit that is kept for ever fills a board's flash."""
    found = blocks_of(manifest, "audit")
    if not found:
        return []
    notes = []
    if manifest.settings.audit.max_size_mb is not None:
        notes.append(
            (
                manifest.settings.where("audit", "max_size_mb"),
                f"{board.name} does not use it: its audit has what the agent leaves of the flash",
            )
        )
    if not all(block.retention for _, block in found):
        notes.append(
            (
                found[0][0].where("audit"),
                f"{board.name} keeps its audit until the flash has no room, and then runs nothing "
                "more: say with retention how long, or take the records in time",
            )
        )
    return notes

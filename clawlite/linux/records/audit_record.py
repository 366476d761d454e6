"""The audit of an agent as it lies on the disk: for ``clawlite audit``, and for operators
(record_group.py).
"""

from clawlite.core.base.errors import ClawError, InvalidParams
from clawlite.core.image.image import GUARD
from clawlite.core.image.scan_config import ScanConfig
from clawlite.linux.audit.chain import verify
from clawlite.linux.files import files
from clawlite.linux.io.jsontext import loads

_MOST_LOOKED = 100000  # records that are looked through for those that are asked for
_MOST_BYTES = 524288  # of the lines in one answer


def open_audit(image, newest: int = 0) -> tuple:
    """Return (lines, head, folder) of the audit of *image*.  Raises ``ClawError`` when there is
    none.

    newest  how many of the newest lines, 0 for all
    """
    return read_audit(kind_of(image), files.state_folder(image.agent.name), newest)


def kind_of(image) -> str:
    """Return where *image* keeps its audit: "file", "sqlite", ...  Raises ``ClawError``."""
    wanted = _find_wanted(image)
    if wanted is None:
        raise ClawError(
            "%s keeps no audit" % image.agent.name, "add audit: { destination: file } to a policy"
        )
    return wanted[4]


def _find_wanted(image):
    """Return what *image* says of its audit (``ScanConfig.audit``), None where it has none."""
    record = image.section(GUARD)
    return ScanConfig(record).audit if record else None


def read_audit(kind: str, folder: str, newest: int = 0) -> tuple:
    """Return (lines, head, *folder*) of an audit of ``kind_of``.  Raises ``ClawError``."""
    if kind == "sqlite":
        from clawlite.linux.audit.sqlite import read
    else:
        from clawlite.linux.audit.files import read
    lines, head, is_there = read(folder, newest)
    if not is_there:
        raise ClawError(
            "there is no audit in %s" % folder,
            "let the agent call a tool first; if it has, somebody removed it",
        )
    return lines, head, folder


def copies_of(image, folder: str) -> dict:
    """Return {"sent_to", "sent"}: who gets copies, and the last record that was taken; {} when
    nobody does.
    """
    target = _find_wanted(image)[5]
    if target is None:
        return {}
    from clawlite.linux.audit.forwarding import read_mark

    return {"sent_to": target[0], "sent": read_mark(folder)[0]}


def parse_anchor(text):
    """Return (number of a record, its hash), None for None.  Raises ``InvalidParams``."""
    if text is None:
        return None
    number, _, hash = text.partition(":")
    if not (number.isascii() and number.isdigit() and len(number) < 19) or len(hash) != 64:
        raise InvalidParams(
            "anchor: expected the number of a record, a colon and 64 hexadecimal digits",
            "copy it from what clawlite audit verify printed",
        )
    return int(number), hash.lower()


def find_records(kind: str, folder: str, words: str, before, last: int) -> dict:
    """Return {"records"}: the newest *last* ones that have *words* in them and come before the
    record *before* (None: all), the newest first; with "truncated" when there are more.
    """
    lines, found = list(read_audit(kind, folder, _MOST_LOOKED)[0]), []
    wanted, size = words.lower().encode(), 0
    for data in reversed(lines):
        if wanted and wanted not in data.lower():
            continue
        try:
            record = loads(data)
        except ClawError:
            record = {"damaged": data.decode("utf-8", "replace")[:1000]}
        number = record.get("n") if isinstance(record, dict) else None
        if before is not None and (type(number) is not int or number >= before):
            continue
        size += len(data)
        if len(found) >= last or found and size > _MOST_BYTES:
            return {"records": found, "truncated": True}
        found.append(record)
    return {"records": found}


def check_records(kind: str, folder: str, agent: str, anchor) -> dict:
    """Return what ``chain.verify`` finds."""
    lines, head, _ = read_audit(kind, folder)
    return verify(lines, head, agent, anchor)


def export_records(kind: str, folder: str, after: int) -> dict:
    """Return {"lines"}: those from the line *after* on, as they are on the disk; with "next", from
    where to go on, when there are more.
    """
    found, size = [], 0
    for place, data in enumerate(read_audit(kind, folder)[0]):
        if place < after:
            continue
        size += len(data)
        if found and size > _MOST_BYTES:
            return {"lines": found, "next": place}
        found.append(data.decode("utf-8", "replace"))
    return {"lines": found}

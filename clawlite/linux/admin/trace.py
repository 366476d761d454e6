"""``clawlite trace``: why a past tool call of an agent ended as it did, from its log, with the
standard library alone.

The log (log.jsonl, and log.jsonl.1 before it) has an event for each call, with the numbers of the
rules that were looked at; the image says what these rules are.  An event names the manifest that it
was made with: over another image its numbers mean nothing."""

import os
from contextlib import contextmanager

from clawlite.core.base.errors import ClawError
from clawlite.core.base.printable import escape_line, escape_name
from clawlite.core.policy.trace import trace_text
from clawlite.core.protocol.calls import is_uuid
from clawlite.linux.admin.commands import BadUsage
from clawlite.linux.files import files
from clawlite.linux.io.jsontext import document
from clawlite.linux.io.printing import print_line
from clawlite.linux.records.call_record import explain, find

_SHOWN = 8  # ids of rules that are for other tools


def show(call, manifest, as_json: bool, board) -> int:
    """Show why a call ended as it did; return the exit code.  Raises ``ClawError``: there is no
    such call, or the image has changed since.

    call   its number or request_id, "last", or the manifest; None: the last one
    board  what fetches the records of a board (host/board_console/board_records.py), or None: those
           of an agent here
    """
    call = call and call.lower() if _is_call(call or "") else call
    if not _is_call(call or "last"):
        if manifest is not None:
            raise BadUsage("unexpected %s" % manifest, "clawlite trace %s" % call)
        call, manifest = None, call
    image = open_image_of(manifest)
    if board is not None:
        from clawlite.linux.admin.board_trace import fetch_trace
    number, event = (
        find(files.state_folder(image.agent.name), call or "last")
        if board is None
        else find(fetch_trace(board, image), call or "last", True)
    )
    found = explain(image, number, event)
    if as_json:
        print(document(found))
        return 0
    lines = ["call %d, %s" % (number, escape_line(found["time"], 60))]
    if found["request_id"]:
        lines[0] += ", request %s" % escape_name(found["request_id"])
    lines += trace_text(image, event).split("\n")
    never = found["never"]
    if never:
        more = " and %d more" % (len(never) - _SHOWN) if len(never) > _SHOWN else ""
        lines.append(
            "  Before the last of these, for other tools: %s%s"
            % (", ".join(map(escape_name, never[:_SHOWN])), more)
        )
    print_line(*lines)
    return 0


def _is_call(word: str) -> bool:
    word = word.lower()
    return word == "last" or word.isascii() and word.isdigit() or is_uuid(word)


@contextmanager
def mending(what: str):
    """Say of files that cannot be read or written, *what*, how that is mended."""
    try:
        yield
    except BrokenPipeError:  # nobody reads what is shown: command.py knows what then
        raise
    except OSError as e:
        where = e.filename + ": " if e.filename else ""
        raise ClawError("%s: %s%s" % (what, where, e.strerror), files.mend(e)) from None


def open_image_of(manifest):
    """Return the open image that *manifest* means (``image_of``), that here for None.  Raises
    ``ClawError`` with exit code 2.
    """
    try:
        return files.open_image(image_of(manifest or "."))
    except ClawError as e:
        setattr(e, "exit_code", 2)
        raise


def image_of(name: str) -> str:
    """Return the image that *name* means: itself, or the one beside a manifest or in a folder.
    It is not built: it is what ran.
    """
    if os.path.isdir(name):
        return os.path.join(name, "claw.cbor")
    return (
        name
        if not os.path.lexists(name) or name.endswith(".cbor") or files.is_image(name)
        else os.path.join(os.path.dirname(name), "claw.cbor")
    )

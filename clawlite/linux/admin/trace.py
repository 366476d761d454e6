"""``clawlite trace``: why a past tool call of an agent ended as it did, from its log, with the
standard library alone.

The log (log.jsonl, and log.jsonl.1 before it) has an event for each call, with the numbers of the
rules that were looked at; the image says what these rules are.  An event names the manifest that it
was made with: over another image its numbers mean nothing."""

import os
from contextlib import contextmanager

from clawlite.core.base.errors import ClawError
from clawlite.core.base.printable import escape_line, escape_name
from clawlite.core.image.image import RULE_ACTION, RULE_ID, RULE_POLICY
from clawlite.core.policy.policy import ACTIONS
from clawlite.core.policy.policy_preview import condition
from clawlite.core.policy.trace import trace_text, why_not
from clawlite.core.protocol.calls import is_uuid
from clawlite.linux.admin.commands import BadUsage
from clawlite.linux.files import files
from clawlite.linux.files.regular_file import open_regular
from clawlite.linux.io.jsontext import document, loads
from clawlite.linux.io.printing import print_line

_SHOWN = 8  # ids of rules that are for other tools
AUTONOMY = ("observer", "supervised", "autonomous")


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


def find(folder: str, call: str, is_board: bool = False) -> tuple:
    """Return (its number from the end, the event) of *call*: "last", a number or a request_id.
    Raises ``ClawError``.

    is_board  *folder* holds what a board has on record, for a moment
    """
    number = 0
    for name in ("log.jsonl", "log.jsonl.1"):
        for line in reversed(read_lines(os.path.join(folder, name))):
            event = _event(line)
            if event is not None:
                number += 1
                if (
                    call == "last"
                    or call == str(event.get("request_id")).lower()
                    or call.lstrip("0") == str(number)
                ):
                    return number, event
    if not number and is_board:
        raise ClawError(
            "the board has no tool call on record",
            "let the agent call a tool; a "
            "board keeps its calls with "
            "audit: { destination: file } in "
            "a policy",
        )
    if not number:
        raise ClawError(
            "no tool call is in %s" % os.path.join(folder, "log.jsonl"),
            "let the agent call a tool first",
        )
    if is_uuid(call):
        raise ClawError(
            "no call with the request_id %s is in the log, which has %d" % (call, number),
            "the last call is: clawlite trace 1",
        )
    raise ClawError("there is no call %s: the log has %d" % (call, number), "1 is the last one")


def read_lines(path: str) -> list:
    """Return the lines of a file, none where it is not there.  Raises ``ClawError``."""
    try:
        with open(path, "rb", opener=open_regular) as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []
    except OSError as e:
        raise ClawError(
            "%s: %s" % (path, e.strerror), "check the path, and who may read it"
        ) from None


def _event(line: bytes):
    """Return the event in *line* when it is a tool call's; None for others, and for a line that
    was cut.
    """
    if b'"tool.call"' not in line:
        return None
    try:
        event = loads(line)
    except ClawError:
        return None
    return event if isinstance(event, dict) and event.get("event") == "tool.call" else None


def explain(image, number: int, event: dict) -> dict:
    """Return what ``--json`` prints.  Raises ``ClawError`` when the event was made with another
    manifest, or is damaged.
    """
    if event.get("image") != image.id:
        raise ClawError(
            "call %d was made with another manifest than this image (%s, here %s): "
            "its rules no longer fit"
            % (number, escape_name(event.get("image", "older")), image.id),
            "name the image that ran then",
        )
    try:
        rules = []
        for place, matched in event.get("trace", []):
            rule = image.rule(place)
            rules.append(
                {
                    "number": place,
                    "id": rule[RULE_ID],
                    "policy": rule[RULE_POLICY],
                    "action": ACTIONS[rule[RULE_ACTION]],
                    "condition": condition(rule) or None,
                    "matched": matched,
                    "decides": matched,
                    "why": None if matched else why_not(image, event, rule),
                }
            )
        trace_text(image, event)  # the text needs more of the event than this
        return {
            "call": number,
            "time": event.get("timestamp"),
            "tool": event["tool"],
            "arguments": event["arguments"],
            "caller": event["caller"],
            "request_id": event.get("request_id"),
            "image": image.id,
            "autonomy": AUTONOMY[image.agent.autonomy],
            "rules": rules,
            "never": _unmatchable_rules(image, rules),
            "action": event.get("action"),
            "rule_id": event.get("rule_id"),
            "approval": event.get("approval"),
            "limit": event.get("limit"),
            "attempts": event.get("attempts", 1),
            "status": event["status"],
            "code": event.get("code"),
        }
    except (KeyError, TypeError, ValueError, AttributeError, ClawError):
        raise ClawError(
            "call %d is damaged in the log" % number,
            "look at another call",
        ) from None


def _unmatchable_rules(image, looked: list) -> list:
    """Return the ids of the rules before the last one of *looked* that can never match this tool:
    nobody looks at them.

    Where all rules that were looked at are of one policy, it may have been asked alone: then only
    of that one."""
    policies = {rule["policy"] for rule in looked}
    seen = {rule["number"] for rule in looked}
    before = (
        [image.rule(number) for number in range(looked[-1]["number"]) if number not in seen]
        if looked
        else []
    )
    return [rule[RULE_ID] for rule in before if len(policies) > 1 or rule[RULE_POLICY] in policies]

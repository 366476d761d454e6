"""``clawlite channels dead``: lists, retries and drops messages that an agent has given up.  It
needs the standard library alone.
"""

import os

from clawlite.core.base.clock import iso8601
from clawlite.core.base.errors import ClawError
from clawlite.core.base.printable import escape_line, escape_name
from clawlite.linux.admin.commands import print_error, print_failure
from clawlite.linux.admin.trace import image_of
from clawlite.linux.channels.dead_letters import SUFFIX, DeadLetters
from clawlite.linux.files import files
from clawlite.linux.io.jsontext import document
from clawlite.linux.io.printing import print_line, print_note

USAGE = "usage: clawlite channels dead [retry NUMBER | drop NUMBER] [MANIFEST | IMAGE] [--json]"
HELP = """Lists messages of queues that the agent has given up: each time that it began one of them,
the agent ended without warning.
retry runs a message again: within 10 s when the agent is running, otherwise when it starts.
drop deletes a message.
NUMBER is the number in the list.  Write CHANNEL/NUMBER when several channels have that number."""
_SHOWN = 80  # characters of a message


def main(args: list) -> int:
    """Run the verb; return the exit code: 1 when there is no such message."""
    if "--help" in args or "-h" in args:
        print(USAGE + "\n\n" + HELP)
        return 0
    as_json = "--json" in args
    words = [word for word in args if word != "--json"]
    if words[:1] != ["dead"]:
        return print_failure("channels: expected dead", USAGE)
    words.pop(0)
    verb = words.pop(0) if words[:1] in (["retry"], ["drop"]) else ""
    wanted = words.pop(0) if verb and words else ""
    number = wanted.rpartition("/")[2]
    if verb and not (number.isascii() and number.isdigit() and len(number) < 19):
        return print_failure("%s: expected the NUMBER of a message" % verb, USAGE)
    if len(words) > 1 or words and words[0].startswith("-"):
        return print_failure("unexpected %s" % words[-1], USAGE)
    try:
        agent = files.open_image(image_of(words[0] if words else ".")).agent.name
    except ClawError as e:
        return print_error(e, as_json, 2)
    try:
        found = _letters(os.path.join(files.state_folder(agent), "channels"))
        if verb:
            _change(verb, _find_letter(found, wanted))
        else:
            _show(found, as_json)
        return 0
    except ClawError as e:
        return print_error(e, as_json, 1)
    except OSError as e:
        return print_error(
            ClawError(
                "%s: %s" % (e.filename or "the messages", e.strerror),
                files.mend(e),
            ),
            as_json,
            1,
        )


def _letters(folder: str) -> list:
    """Return [(channel, its ``DeadLetters``, ``Letter``)]."""
    try:
        names = sorted([name for name in os.listdir(folder) if name.endswith(SUFFIX)])
    except FileNotFoundError:
        return []
    boxes = [(name[: -len(SUFFIX)], DeadLetters(os.path.join(folder, name))) for name in names]
    return [(channel, box, letter) for channel, box in boxes for letter in box.all()]


def _find_letter(found: list, wanted: str) -> tuple:
    channel, _, number = wanted.rpartition("/")
    matches = [one for one in found if one[2].number == int(number) and channel in ("", one[0])]
    if not matches:
        raise ClawError(
            "there is no message %s that was given up" % wanted,
            "see them with: clawlite channels dead",
        )
    if len(matches) > 1:
        raise ClawError(
            "several channels have a message %s" % wanted,
            "write one of: %s" % ", ".join(["%s/%s" % (one[0], number) for one in matches]),
        )
    return matches[0]


def _change(verb: str, chosen: tuple):
    _, box, letter = chosen
    if verb == "drop":
        box.drop(letter.number)
        return print_note("Message %d is dropped." % letter.number)
    if letter.is_damaged:
        raise ClawError(
            "message %d cannot run again: its file is damaged" % letter.number,
            "remove it with: clawlite channels dead drop %d" % letter.number,
        )
    if not letter.is_asked:
        box.ask(letter.number)
    print_note(
        "Message %d begins again within 10 s if the agent is running, otherwise when it starts."
        % letter.number
    )


def _show(found: list, as_json: bool):
    if as_json:
        print(
            document(
                [
                    {
                        "channel": channel,
                        "number": one.number,
                        "time": iso8601(one.at_s),
                        "actor": one.actor,
                        "text": one.text,
                        "reason": one.why,
                        "retry": one.is_asked,
                        "damaged": one.is_damaged,
                    }
                    for channel, _, one in found
                ]
            )
        )
        return
    if not found:
        print_note("No message was given up.")
    for channel, _, one in found:
        status_text = (
            "damaged"
            if one.is_damaged
            else "%s  %s%s  %s"
            % (
                iso8601(one.at_s),
                escape_name(one.actor) + "  " if one.actor else "",
                escape_line(one.why, 200),
                document(one.text[:_SHOWN]),
            )
        )
        line = "%s/%d  %s%s" % (
            channel,
            one.number,
            status_text,
            "  runs again" if one.is_asked else "",
        )
        print_line(line)

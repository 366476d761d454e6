"""``clawlite channels dead``: lists, retries and drops messages that an agent has given up.  It
needs the standard library alone.
"""

import os
from contextlib import contextmanager

from clawlite.core.base.clock import iso8601
from clawlite.core.base.errors import ClawError
from clawlite.core.base.printable import escape_line, escape_name
from clawlite.linux.admin.commands import BadUsage
from clawlite.linux.admin.trace import mending, open_image_of
from clawlite.linux.channels.dead_letters import SUFFIX, DeadLetters
from clawlite.linux.files import files
from clawlite.linux.io.jsontext import document
from clawlite.linux.io.printing import print_line, print_note

_SHOWN = 80  # characters of a message


def show(manifest, as_json: bool):
    """List the messages.  Raises ``ClawError``, as the others."""
    with _letters_of(manifest) as found:
        pass
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


def retry(number: str, manifest, as_json: bool):
    """Let a message run again."""
    with _letters_of(manifest, number) as found:
        _, box, letter = _find_letter(found, number)
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


def drop(number: str, manifest, as_json: bool):
    """Delete a message."""
    with _letters_of(manifest, number) as found:
        _, box, letter = _find_letter(found, number)
        box.drop(letter.number)
    print_note("Message %d is dropped." % letter.number)


@contextmanager
def _letters_of(manifest, wanted: str = "0"):
    """Yield the messages of an agent; *wanted* is the NUMBER that was typed."""
    number = wanted.rpartition("/")[2]
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        raise BadUsage("expected the NUMBER of a message", "clawlite channels dead lists them")
    agent = open_image_of(manifest).agent.name
    with mending("the messages"):
        yield _letters(os.path.join(files.state_folder(agent), "channels"))


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

"""Who is paired with the channels of a board, in a file, and the console's commands about them
(relayed.py).  Loaded when it is needed, and dropped.

The file has a line for each person: the name of the channel, a tab, the id.  It is not JSON: the
texts for errors of JSON cannot be loaded while a board's agent is assembled.
"""

import os
import sys
from binascii import crc32

_ENOENT = 2
_MODES = ("open", "allowlist", "pairing", "role-based")
_PAIRING = 2


def _path(device) -> str:
    # another agent on this board has its own
    name = device.image.agent.name
    return "%s/paired-%08x" % (device.folder, crc32(name.encode()) & 0xFFFFFFFF)


def read(device) -> dict:
    """Return {name of a channel: [id, ...]}.  A line that is damaged pairs nobody."""
    found = {}
    try:
        with open(_path(device), "rb") as file:
            for line in file:
                mark, _, rest = line[:-1].partition(b" ")
                if mark == b"%08x" % (crc32(rest) & 0xFFFFFFFF):
                    name, _, actor = str(rest, "utf-8").partition("\t")
                    found.setdefault(name, []).append(actor)
    except OSError as e:
        if e.args[0] != _ENOENT:
            sys.stderr.write("clawlite: who is paired cannot be read: %s\n" % e)
    return found


def _keep(relayed):
    """Write who is paired.  Raises ``OSError``."""
    path = _path(relayed.device)
    with open(path + ".new", "wb") as file:
        for channel in relayed.all:
            for actor in channel.access.paired:
                line = ("%s\t%s" % (channel.name, actor)).encode()
                file.write(b"%08x %s\n" % (crc32(line) & 0xFFFFFFFF, line))
    os.rename(path + ".new", path)


def command(relayed, words: list) -> list:
    """Return the lines of the command *words*."""
    if words[0] == "/help":
        return [
            "  /channels who may speak to it elsewhere",
            "  /pair CODE admit who was given this code",
        ]
    now_s = relayed.device.now_ms() // 1000
    if words[0] == "/channels":
        lines = []
        for channel in relayed.all:
            access = channel.access
            waits = access.waiting(now_s) if access.mode == _PAIRING else 0
            lines.append(
                "%s %s%s"
                % (
                    channel.name,
                    _MODES[access.mode],
                    ", %d wait to be paired" % waits if waits else "",
                )
            )
        return lines
    for channel in relayed.all if len(words) == 2 else ():
        actor = channel.access.pair(words[1], now_s)
        if actor is not None:
            return _pair(relayed, channel, actor)
    return [
        "/pair CODE: this code is unknown or has expired. Anyone who sends the agent "
        "a message gets a new one."
    ]


def _pair(relayed, channel, actor: str) -> list:
    from clawlite.core.base.printable import escape_name

    lines = ["%s is paired with channel %s." % (escape_name(actor), channel.name)]
    try:
        _keep(relayed)
    except OSError as e:
        lines.append("A restart will forget that: the flash cannot be written: %s" % e)
    relayed.say(channel.name, actor, "You are paired with this agent now.")
    return lines

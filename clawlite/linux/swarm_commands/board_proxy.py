"""``clawlite swarm stand-in``: one process that is each member of a swarm that is a board behind a
gateway.  The gateway starts it, and speaks to it in lines of JSON; ``device`` is in each.

    to it    {"join": path of the device's image}     {"gone": true}: the board has gone
             {"swarm": id, "method", "params"}: an operator of the board asks it
             {"begins": id of a turn}     {"report": id of a turn, "status", "text", "error"}
    from it  what ``BoardMember`` tells, and {"refused": why, "hint"}: it cannot join

Boards of one swarm with one login share an end of its bus (``shared_bus.py``).
"""

import os
import sys

from clawlite.core.base.errors import ClawError
from clawlite.linux.io.jsontext import document, loads
from clawlite.linux.io.stdio import now_ms
from clawlite.linux.swarm.board_member import BoardMember
from clawlite.linux.swarm_commands.command_loop import wait
from clawlite.linux.swarm_commands.shared_bus import SharedBuses

_PIECE = 1 << 20


class BoardProxy:
    """The members of one gateway's boards, by the name of their device."""

    def __init__(self):
        self._members, self._rest = {}, b""
        self._buses = SharedBuses()
        self._due = {}  # members that want to be asked at a time of their own

    def run(self) -> int:
        """Serve until the end of the input, when every member leaves in order; return 0."""
        try:
            while True:
                due = [member.deadline() for member in self._due]
                for fd in wait([sys.stdin.fileno()], self._buses.all(), due):
                    if fd == sys.stdin.fileno():
                        data = os.read(fd, _PIECE)
                        if not data:
                            return 0
                        *lines, self._rest = (self._rest + data).split(b"\n")
                        for line in lines:
                            self._take_record(loads(line))
                self._poll()
                sys.stdout.flush()
        except KeyboardInterrupt:
            return 130
        finally:
            for member in self._members.values():
                member.close()
            self._buses.leave()

    def _poll(self):
        """Let each member look that has something to do."""
        now, due, self._due = now_ms(), self._due, {}
        for member in due:
            at_ms = member.deadline()
            if at_ms is not None and at_ms <= now:
                member.poll()
            self._note_deadline(member)
        for bus in self._buses.all():
            while members := bus.poll():
                for member in members:
                    member.poll()
                    self._note_deadline(member)

    def _note_deadline(self, member):
        if member.deadline() is not None:
            self._due[member] = None

    def _take_record(self, record: dict):
        device = record["device"]
        member = self._members.get(device)
        if "join" in record:
            if member is None:
                self._join(device, record["join"])
        elif member is None:
            return
        elif "gone" in record:
            del self._members[device]
            self._due.pop(member, None)
            member.lose()
        elif "begins" in record:
            member.begins(record["begins"])
        elif "swarm" in record:
            member.operator_asks(record["swarm"], record["method"], record["params"])
            self._note_deadline(member)
        elif "report" in record:
            member.take_report(
                record["report"], record["status"], record["text"], record.get("error")
            )
            self._note_deadline(member)

    def _join(self, device: str, path: str):
        def print_record(record: dict):
            print(document(dict(record, device=device)))

        try:
            self._members[device] = BoardMember(path, print_record, end=self._buses.end)
        except ClawError as e:
            print_record({"refused": e.message, "hint": e.hint})

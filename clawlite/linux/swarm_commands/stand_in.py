"""``clawlite swarm stand-in``: one process that is each member of a swarm that is a board behind a
gateway.  The gateway starts it, and speaks to it in lines of JSON; ``device`` is in each.

    to it    {"join": path of the device's image}     {"gone": true}: the board has gone
             {"begins": id of a turn}     {"report": id of a turn, "status", "text", "error"}
    from it  what ``BoardMember`` tells, and {"refused": why, "hint"}: it cannot join
"""

import os
import resource
import sys

from clawlite.core.base.errors import ClawError
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.swarm.board_member import BoardMember
from clawlite.linux.swarm_commands.stepping import wait

_PIECE = 65536


class StandIn:
    """The members of one gateway's boards, by the name of their device."""

    def __init__(self):
        self._members, self._rest = {}, b""

    def run(self) -> int:
        """Serve until the end of the input, when every member leaves in order; return 0."""
        # each board takes four descriptors, and the usual limit is 1,024
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        try:
            while True:
                for fd in wait([sys.stdin.fileno()], self._members.values()):
                    if fd == sys.stdin.fileno():
                        data = os.read(fd, _PIECE)
                        if not data:
                            return 0
                        *lines, self._rest = (self._rest + data).split(b"\n")
                        for line in lines:
                            self._take(loads(line))
                for member in list(self._members.values()):
                    member.poll()
        except KeyboardInterrupt:
            return 130
        finally:
            for member in self._members.values():
                member.close()

    def _take(self, told: dict):
        device = told["device"]
        member = self._members.get(device)
        if "join" in told:
            if member is None:
                self._join(device, told["join"])
        elif member is None:
            return
        elif "gone" in told:
            del self._members[device]
            member.gone()
        elif "begins" in told:
            member.begins(told["begins"])
        elif "report" in told:
            member.ended(told["report"], told["status"], told["text"], told.get("error"))

    def _join(self, device: str, path: str):
        def tell(what: dict):
            print(dumps(dict(what, device=device)), flush=True)

        try:
            self._members[device] = BoardMember(path, tell)
        except ClawError as e:
            tell({"refused": e.message, "hint": e.hint})

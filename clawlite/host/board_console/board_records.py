"""What a board has on record, on this computer: its audit, its log, and the samples of its readings
(``clawlite audit --port PORT``, ``clawlite trace --port PORT``, ``clawlite rehearse --port PORT``).

    /state/audit-AGENT/   the files of its audit (docs/audit.md)
    /state/log.jsonl      its log, where a policy demands one
    /state/readings/      the samples of its readings, a file for each day (docs/rules.md)

They come the way of a flash, out of the raw REPL, in which nothing of an agent runs: the board is
reset before and after."""

import contextlib
import os
import tempfile

from clawlite.host.base.problems import CommandFailed
from clawlite.host.base.without_links import Below
from clawlite.host.flash import flash

STATE, AUDIT, HEAD = "/state", "audit-", "audit.head"
_READINGS = "readings"
_LOGS = ("log.jsonl", "log.jsonl.1")


class Records:
    """The records of the board on *port*, or of the folder *folder*; ``with Records(...) as
    records:``, and nothing is asked before ``fetch``.
    """

    def __init__(self, port: str = None, folder: str = None):
        self._named = port, folder
        self._open = contextlib.ExitStack()
        self._board = self._path = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._open.close()

    def fetch(self, agent: str = None, has_samples: bool = False) -> tuple:
        """Return (a folder with the files of *agent*'s audit, as a Pi has them, and with the
        board's log; the agent's name).

        agent        None: the only one that has an audit there.  Raises ``ClawError``.
        has_samples  also the samples of readings, in the folder "readings" of that folder
        """
        self._board = board = self._open.enter_context(flash.target(*self._named))
        folder = self._open.enter_context(tempfile.TemporaryDirectory())
        names = board.names(STATE)
        agents = sorted(name[len(AUDIT) :] for name in names if name.startswith(AUDIT))
        if agent is None:
            if len(agents) != 1:
                who = "more than one agent has" if agents else "no agent has"
                names_there = f": {', '.join(agents)}" if agents else ""
                raise CommandFailed(
                    f"{board.name}: {who} an audit there{names_there}",
                    "name the image of one"
                    if agents
                    else "an agent with audit: { destination: file } in a policy has one after its "
                    "first start",
                )
            agent = agents[0]
        self._path = f"{STATE}/{AUDIT}{agent}"
        for name in board.names(self._path) if agent in agents else ():
            if name == HEAD or name.endswith(".jsonl"):
                _copy(board, f"{self._path}/{name}", os.path.join(folder, name))
        for name in set(names) & set(_LOGS):
            _copy(board, f"{STATE}/{name}", os.path.join(folder, name))
        if has_samples and _READINGS in names:
            os.mkdir(os.path.join(folder, _READINGS))
            for name in board.names(f"{STATE}/{_READINGS}"):
                path = f"{_READINGS}/{name}"
                _copy(board, f"{STATE}/{path}", os.path.join(folder, path))
        return folder, agent

    def forget(self, head: bytes) -> None:
        """Remove the records that ``fetch`` read from the board; *head* says where the chain
        goes on.  The head is written first, as a whole.
        """
        flash.replace_file(self._board, f"{self._path}/{HEAD}", head)
        for name in sorted(self._board.names(self._path)):
            if name.endswith(".jsonl"):
                self._board.do(("remove", f"{self._path}/{name}"))


def _copy(board, path: str, target: str) -> None:
    folder, name = os.path.split(target)
    with open(Below(folder or ".").create(name), "wb") as file:
        for piece in board.pieces(path):
            file.write(piece)

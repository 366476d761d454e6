"""The people at all boards of one gateway."""

import asyncio
import os
import sys

from clawlite.host.gateway_operators.board_names import BOARDS, file_name
from clawlite.host.gateway_operators.board_people import BoardPeople


class People:
    """Who is with which board.

    folder   of the gateway
    codecs   (loads, dumps) of JSON
    deliver  function(name of a device, name of a record, params) -> why it cannot take it, or ""
    note     function(text) for who runs the gateway
    list_swarm  function(name of a device, reply): asks who is in its swarm
    """

    def __init__(self, folder: str, codecs: tuple, deliver, note, list_swarm):
        self._folder, self._codecs = os.path.join(folder, BOARDS), codecs
        self._deliver, self._note, self._list_swarm = deliver, note, list_swarm
        self._boards: dict = {}  # name of a device -> BoardPeople
        self._opening: set = set()  # tasks

    def note_here(self, name: str, image):
        """The device *name* is there, and runs *image*."""
        self.note_away(name)
        if sys.platform != "linux":
            return  # the page is for Linux
        deliver = lambda params: self._deliver(name, "operator", params)
        board = self._boards[name] = BoardPeople(
            name, image, self._codecs, deliver, lambda reply: self._list_swarm(name, reply)
        )
        task = asyncio.get_running_loop().create_task(self._open(name, board))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _open(self, name: str, board: BoardPeople):
        try:
            await board.open(os.path.join(self._folder, file_name(name)))
        except OSError as e:
            self._note(f"{name}: people at a page cannot reach it: {e.strerror or e}")
        if self._boards.get(name) is not board:  # it has gone meanwhile
            board.close()

    def note_away(self, name: str):
        """The device *name* is not there any more."""
        board = self._boards.pop(name, None)
        if board is not None:
            board.close()

    def take(self, name: str, params: dict):
        """Take what the device *name* says to people."""
        if name in self._boards:
            self._boards[name].take(params)

    async def close(self):
        for name in list(self._boards):
            self.note_away(name)
        await asyncio.gather(*self._opening)

"""The session of one person with a board: its messages are read here as any session's, and what
they ask goes to the board, which judges it.
"""

from clawlite.core.base.errors import InvalidParams, InvalidRequest
from clawlite.core.protocol.session import Session


class Viewer(Session):
    """One person's session.

    people  ``board_people.BoardPeople``
    person  ``board_socket.Person``
    write   function(bytes)
    """

    def __init__(self, people, person, write):
        loads, self._dumps = people.codecs
        super().__init__(None, loads)
        self.person, self._people, self._write = person, people, write

    @property
    def is_open(self) -> bool:
        return self._open

    def leave(self):
        """The line is over."""
        self._people.leave(self)

    def tell(self, message: dict):
        """Send *message*, which answers nothing."""
        self._send(message)

    def _send(self, message):
        self._write(self._dumps(message).encode("utf-8", "replace"))

    def _call(self, id, method: str, params, reply, now_ms: int):
        if isinstance(params, list):
            raise InvalidParams("params: expected an object, got an array")
        is_begin = method == "claw.initialize"
        if not (is_begin or self._open or self._asked and method == "claw.status"):
            raise InvalidRequest(f"expected claw.initialize first, got {method[:60]}")
        self._asked = True

        def answer(message: dict):
            if "result" in message:
                self._open = is_begin or self._open and method != "claw.shutdown"
            reply({**message, "jsonrpc": "2.0", "id": id})

        self._people.ask(self, method, params, answer)

"""Logins by token: who holds which session cookie, and how often somebody may try.

1. A login makes a new id, whatever the browser had before: nobody can prepare one (fixation).
2. Kept is the digest of an id, in memory alone: when the page's process ends, all log in again.
3. A login lasts ``LASTS_S``, and ends when none of its people is known any more.
"""

import dataclasses
import hashlib
import secrets
import time

from clawlite.host.gateway_operators.board_names import is_file_name
from clawlite.host.page.known_people import BOARD, GATEWAY
from clawlite.protocols.net.netaddress import origin

LASTS_S = 12 * 3600
MAX_LOGINS = 256
MAX_OF_ONE = 16  # of one token: one more ends the oldest
_BURST, _PER_MINUTE = 10, 10  # attempts of one address
_MOST_ADDRESSES = 1000


@dataclasses.dataclass(eq=False)
class Login:
    """Somebody whose token was right.

    places   {place: ``Person``}
    at_s     monotonic time of the login
    is_cookie  whether it lasts by a cookie; else each request carries the token
    """

    places: dict
    at_s: float
    is_cookie: bool
    key: object

    def person(self, place: str):
        """Return the ``Person`` of *place*, None where they are nobody; those of a board are its
        gateway's.
        """
        if place.startswith(BOARD):
            return self.places.get(GATEWAY) if is_file_name(place[len(BOARD) :]) else None
        return None if place == GATEWAY else self.places.get(place)

    @property
    def name(self) -> str:
        return next(iter(self.places.values())).name


class Logins:
    """All logins of one page.

    people  ``KnownPeople``
    """

    def __init__(self, people, now_s=time.monotonic):
        self._people, self._now_s = people, now_s
        self._open = {}  # digest of an id -> Login, the oldest first
        self._attempts = {}  # address -> (attempts left, at)

    def begin(self, token: bytes) -> tuple:
        """Return (``Login``, its new id) for a right *token*, else (None, "")."""
        places = self._people.find(token)
        if not places:
            return None, ""
        id, key = secrets.token_urlsafe(32), hashlib.sha256(token).digest()
        login = Login(places, self._now_s(), True, key)
        own = [one for one, known in self._open.items() if known.key == key]
        for one in own[: max(0, len(own) - MAX_OF_ONE + 1)]:
            del self._open[one]
        if len(self._open) >= MAX_LOGINS:
            del self._open[next(iter(self._open))]
        self._open[_digest(id)] = login
        return login, id

    def bearer(self, token: bytes):
        """Return the ``Login`` of one request that carries *token*, or None."""
        places = self._people.find(token)
        key = hashlib.sha256(token).digest()
        return Login(places, self._now_s(), False, key) if places else None

    def find(self, id: str):
        """Return the ``Login`` with this *id*, or None."""
        login = self._open.get(_digest(id))
        if login is not None and not self.is_valid(login):
            self.end(id)
            return None
        return login

    def end(self, id: str) -> None:
        self._open.pop(_digest(id), None)

    def is_open(self, login: Login) -> bool:
        """Return whether *login* has neither ended nor expired."""
        is_there = not login.is_cookie or any(one is login for one in self._open.values())
        return is_there and self.is_valid(login)

    def is_valid(self, login: Login) -> bool:
        """Forget the places where the person is not known any more; return whether one is left."""
        for place, person in list(login.places.items()):
            if not self._people.is_known(place, person):
                del login.places[place]
        return bool(login.places) and (not login.is_cookie or self._now_s() - login.at_s < LASTS_S)

    def may_try(self, address: str) -> bool:
        """Return whether somebody at *address* may try another token now."""
        left, _ = self._count_left(address)
        return left >= 1

    def count_failure(self, address: str) -> None:
        """Somebody at *address* had a wrong token."""
        left, now = self._count_left(address)
        if len(self._attempts) >= _MOST_ADDRESSES:
            self._attempts.pop(next(iter(self._attempts)))
        self._attempts[origin(address)] = left - 1, now

    def _count_left(self, address: str) -> tuple:
        now = self._now_s()
        left, at = self._attempts.get(origin(address), (_BURST, now))
        return min(_BURST, left + (now - at) * _PER_MINUTE / 60), now


def _digest(id: str) -> bytes:
    return hashlib.sha256(id.encode()).digest()

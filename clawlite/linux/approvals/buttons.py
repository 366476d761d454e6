"""The buttons below a question in a chat: Deny, Approve, Show all (Bot API, InlineKeyboardMarkup).

1. What a button sends is a random token, which says nothing and is good for one use.
2. When a question has ended, all its tokens are worth nothing.
3. Who taps is the person of the query, also in a group where others see the same buttons.
"""

import base64
from collections import namedtuple

APPROVE, DENY, SHOW = "Approve", "Deny", "Show all"
_TOKEN_BYTES = 16  # the Bot API takes 1 to 64 bytes of callback_data
MAX_QUESTIONS = 100  # those that were put longest ago are forgotten first


class Tap(namedtuple("Tap", "query actor chat token")):
    """A person has touched a button; all are strings."""


class Buttons:
    """The buttons below the copies of one question.

    approval  ``approval.Approval``
    tokens    what the buttons of all copies send
    copies    [(chat, id of the message, its text)] that have arrived
    """

    def __init__(self, approval):
        self.approval = approval
        self.tokens: list = []
        self.copies: list = []


class Taps:
    """The buttons of one bot.

    draw  function(count) -> that many random bytes
    """

    def __init__(self, draw):
        self._draw = draw
        self._by_token: dict = {}  # token -> (Buttons, what it does)
        self._by_approval: dict = {}  # id of an approval -> Buttons

    def keyboard(self, approval) -> dict:
        """Return the parameter ``reply_markup`` for one more copy of a question."""
        buttons = self._by_approval.get(id(approval))
        if buttons is None or buttons.approval is not approval:
            buttons = self._by_approval[id(approval)] = Buttons(approval)
            while len(self._by_approval) > MAX_QUESTIONS:
                self._forget(self._by_approval[next(iter(self._by_approval))])
        row = [self._button(buttons, DENY), self._button(buttons, APPROVE)]
        return {"inline_keyboard": [row, [self._button(buttons, SHOW)]]}

    def _button(self, buttons: Buttons, what: str) -> dict:
        token = base64.urlsafe_b64encode(self._draw(_TOKEN_BYTES)).decode().rstrip("=")
        buttons.tokens.append(token)
        self._by_token[token] = buttons, what
        return {"text": what, "callback_data": token}

    def add_copy(self, markup: dict, chat: str, message, text: str) -> bool:
        """A copy has arrived as *message*.  Return False when its question has ended meanwhile."""
        known = [
            self._by_token[one["callback_data"]]
            for row in markup["inline_keyboard"]
            for one in row
            if one["callback_data"] in self._by_token
        ]
        if known and _is_id(message):
            known[0][0].copies.append((chat, message, text))
        return bool(known)

    def take(self, token: str):
        """Return (``Buttons``, what the button does), and use the token up; None for another."""
        found = self._by_token.pop(token, None)
        if found is not None:
            found[0].tokens.remove(token)
        return found

    def end_question(self, approval) -> list:
        """Return the copies of a question that has ended."""
        buttons = self._by_approval.get(id(approval))
        if buttons is None or buttons.approval is not approval:
            return []
        self._forget(buttons)
        return buttons.copies

    def _forget(self, buttons: Buttons):
        del self._by_approval[id(buttons.approval)]
        for token in buttons.tokens:
            self._by_token.pop(token, None)


def read_tap(query) -> "Tap | None":
    """Return what the field ``callback_query`` of an update says, None when it is ignored."""
    if not isinstance(query, dict):
        return None
    sender, token = _part(query, "from"), query.get("data")
    person, place = sender.get("id"), _part(_part(query, "message"), "chat").get("id")
    if not _is_id(person) or sender.get("is_bot") is True or not isinstance(query.get("id"), str):
        return None
    return Tap(
        query["id"],
        str(person),
        str(place if _is_id(place) else person),
        token if isinstance(token, str) else "",
    )


def _part(of: dict, name: str) -> dict:
    part = of.get(name)
    return part if isinstance(part, dict) else {}


def _is_id(value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)

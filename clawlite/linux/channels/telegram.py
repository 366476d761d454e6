"""Channels of type telegram: long polling of the Bot API (CKP 0.2.0, 5.3; docs/channels.md).

1. One request at a time asks for updates.  The answers of turns are sent at the same time, in order
   for each chat.
2. Messages are on record (delivery.py) before the offset is sent that tells Telegram that they have
   arrived.
3. The ids of a bot's updates begin anywhere after a week without any, and have nothing to do with
   those of another bot.  So an offset is sent only while this process has got updates in the last
   days.  Without one, Telegram sends all that was not confirmed, and what is on record already is
   recognised by its id and its bot.
4. The token is in the path of each request and nowhere else: no error and no log contains it.
5. Actors are people (telegram_update.py).  An answer goes to the chat of its message; with
   ``threads``, to the topic.  A group has conversations of its own: what a person said in private
   is not repeated there.
6. A message that is older than ``max_age`` does not act, and its sender is told.  Telegram's own
   clock counts: that of this machine may be wrong.
7. ``read_receipts``: the Bot API has none, so a message that was accepted gets a reaction.
8. Below a question there are buttons (approvals/buttons.py).  Each tap is answered, and what is
   said of a question's end replaces the buttons.
"""

from collections import deque
from typing import Any

from clawlite.core.base.errors import ClawError, ProviderError
from clawlite.core.net.http1 import (
    EVENT_DATA,
    EVENT_HEADERS,
    EVENT_KIND,
    EVENT_STATUS,
    Response,
    request,
)
from clawlite.core.policy.access import ADMIN, RECEIPTS, THREADS, TYPING
from clawlite.linux.approvals.buttons import APPROVE, SHOW, Taps, read_tap
from clawlite.linux.channels.delivery import Delivery
from clawlite.linux.channels.inbox import Item
from clawlite.linux.channels.telegram_update import is_int, read, read_migration, seconds_of
from clawlite.linux.io.jsontext import dumps, loads, loads_mended
from clawlite.linux.net.connections import Connections
from clawlite.linux.secrets.secrets import resolve, stores

POLL_S = 50  # after this time Telegram answers although there are no updates
SILENCE_MS = 70000  # after this time without an answer, the request is sent again
CONNECT_MS = 10000
MOST = 4096  # UTF-16 units of a message (Bot API, sendMessage)
MAX_BODY = 1 << 20
MAX_WAITING = 1000  # messages that wait to be sent
MOST_NOTICE = 200  # characters of the answer to a tap (Bot API, answerCallbackQuery)
# what is sent beside the messages, one at a time
_ASIDES = ("answerCallbackQuery", "editMessageText", "setMessageReaction")
MAX_UPDATES = 100
SEEN = "\U0001f440"  # two eyes, one of the reactions that a bot may give
TYPING_MS = 5000  # a typing indicator lasts so long (Bot API, sendChatAction)
IDLE_MS = 2 * 86400000  # Telegram keeps an update for a day (Bot API, Getting updates)
ME_AGAIN_MS = 60000  # after a question for the bot's name failed
RECORD_AGAIN_MS = 5000  # after messages could not be put on record
MAX_GROUPS = 100  # groups that the tool message may write to
MAX_AGE_S = 3600
QUOTED = 3  # messages that are too old, of which an answer shows the beginning
_PAUSES_MS = (1000, 2000, 5000, 15000, 60000)
_TRIES = 4
_NO_TOKEN = (401, 404)  # of the Bot API: the token is none, or none any more


class TooLong(ProviderError):
    """An answer has more than ``MAX_BODY`` bytes."""


class PendingRequest:
    """One request under way: its method, its parameters, the part of the answer received, and the
    ``Item`` whose reply ends with it, or None.

    connection  ``connections.Connection``
    """

    def __init__(self, method: str, params: dict, due_ms: int, tries: int = 0, item=None):
        self.method, self.params, self.due_ms, self.tries = method, params, due_ms, tries
        self.item = item
        self.response, self.status, self.body = Response(), 0, b""
        self.connection: Any = None


class Place:
    """Where a message came from: what its ``Item`` has as correlation.

    chat, talk  ids of the chat and of the conversation;  thread, message: ints, or None
    date        epoch seconds, or None
    """

    def __init__(self, chat: str, talk: str, thread, message, date):
        self.chat, self.talk, self.thread, self.message, self.date = (
            chat,
            talk,
            thread,
            message,
            date,
        )

    @property
    def address(self):
        return self.chat if self.thread is None else (self.chat, self.thread)

    def pack(self) -> bytes:
        return dumps([self.chat, self.talk, self.thread, self.message, self.date]).encode()


def place_of(item: Item) -> Place:
    """Return the ``Place`` of *item*; of one that names none, the person's private chat."""
    try:
        return Place(*loads(item.correlation))
    except (ClawError, TypeError):
        return Place(item.actor, item.actor, None, None, None)


class Telegram:
    """One bot.

    channel  ``channel.Channel``
    own      [scheme, host, port, path, name of the secret, max_age in seconds, gives up
             (delivery.py)] of the image
    Raises ``ClawError`` when the token is missing.
    """

    def __init__(self, channel, own: list):
        self._channel = channel
        self._where, (path, name, *more) = own[:3], own[3:]
        self._max_age_s, gives_up = more or (MAX_AGE_S, True)
        token = resolve(name, stores(channel.agent.image.agent.name))
        if not all("!" <= c <= "~" and c not in "/?#%" for c in token):
            raise ClawError(
                "secret %s is not a bot token" % name,
                "store the token that BotFather gave you: clawlite secrets set %s" % name,
            )
        if channel.agent.setup.guard is not None:
            channel.agent.setup.guard.learn(token)
        self._path = "%s/bot%s/" % (path, token)
        self._connections = Connections(channel.wake)
        self._under_way = {}  # key -> PendingRequest
        self._last = 0
        # (parameters, how often it was sent, the Item whose reply ends with it or None)
        self._out = deque()
        self._asides = deque(maxlen=MAX_WAITING)  # (method, parameters) of ``_ASIDES`` to be sent
        self._taps = Taps(channel.channels.draw)
        self._typing = {}  # chat, or (chat, topic) -> monotonic ms of its next typing indicator
        self._ask_ms = self._send_ms = 0  # earliest time of the next request
        self._failures = 0
        self._bot = token.partition(":")[0]  # the id of the bot
        self._name = ""  # of the bot, once it is known
        self._me_ms, self._is_me_asked = 0, False
        # 0: none is sent; and the monotonic time of the last update
        self._offset = self._update_ms = 0
        self._limit = MAX_UPDATES  # of updates in one answer, fewer after one that was too long
        self._judged: Any = None  # (last update id, ``_judge``) of what is not on record yet
        # an earlier version has handled the updates before this one
        handled = channel.state.data.pop("offset", None)
        self._handled = handled if isinstance(handled, int) else 0
        # seconds that Telegram's clock is ahead of this machine's, once it has answered
        self._ahead_s = None
        self._moved = _make_part(channel.state.data, "moved", dict)  # old id of a group -> new id
        self._groups = _make_part(channel.state.data, "groups", list)
        self._kept = Delivery(channel, self._queue_left, self._answer, gives_up)

    # -- the loop

    def poll(self):
        """Read answers, and send the requests that are due."""
        for key, kind, data in self._connections.poll():
            asked = self._under_way.get(key)
            if asked is None:
                continue
            try:
                ended = self._handle_event(asked, kind, data)
            except (ProviderError, ClawError) as e:
                ended = e
            if ended:
                self._connections.close(key)
                del self._under_way[key]
                self._handle_answer(asked, None if ended is True else ended)
        now = self._channel.now_ms()
        for key, asked in list(self._under_way.items()):
            if now >= asked.due_ms:
                self._connections.close(key)
                del self._under_way[key]
                self._handle_answer(
                    asked,
                    ProviderError(
                        "it said nothing for %d s" % (SILENCE_MS // 1000),
                        "check that the network is up; the agent asks again by itself",
                    ),
                )
        if not self._channel.is_draining:
            self._ask_for_updates(now)
            if self._ahead_s is not None:
                self._end_old(self._kept.restored)
                self._kept.poll()
        if self._out and now >= self._send_ms and not self._is_under_way("sendMessage"):
            params, tries, item = self._out.popleft()
            chat = params["chat_id"]
            self._ask(
                "sendMessage", dict(params, chat_id=self._moved.get(chat, chat)), tries + 1, item
            )
        if self._asides and not self._is_aside_under_way():
            self._ask(*self._asides.popleft())
        for to, at in self._typing.items():
            if now >= at and not self._is_under_way("sendChatAction"):
                self._typing[to] = now + TYPING_MS
                self._ask("sendChatAction", dict(address_parameters(to), action="typing"))
                break

    def _ask_for_updates(self, now: int):
        if not self._name and now >= self._me_ms and not self._is_under_way("getMe"):
            self._ask("getMe", {})
        if now < self._ask_ms or not self._is_me_asked or self._is_under_way("getUpdates"):
            return
        if self._judged:
            self._accept()
            if self._judged:
                return
        asked = {"timeout": POLL_S, "limit": self._limit}
        asked["allowed_updates"] = ["message", "callback_query"]
        if self._offset and now - self._update_ms < IDLE_MS:
            asked["offset"] = self._offset
        self._ask("getUpdates", asked)

    def deadline(self):
        """Return the monotonic time at which ``poll`` has something to do."""
        times = [asked.due_ms for asked in self._under_way.values()]
        if self._is_me_asked and not self._is_under_way("getUpdates"):
            times.append(self._ask_ms)
        if not self._name and not self._is_under_way("getMe"):
            times.append(self._me_ms)
        if self._ahead_s is not None and self._kept.deadline() is not None:
            times.append(self._kept.deadline())
        if self._out and not self._is_under_way("sendMessage"):
            times.append(self._send_ms)
        if self._asides and not self._is_aside_under_way():
            times.append(0)
        if self._typing and not self._is_under_way("sendChatAction"):
            times.append(min(self._typing.values()))
        return min(times)

    def close(self):
        self._connections.close_all()
        self._kept.close()

    def is_sending(self) -> bool:
        """Return whether messages are on their way to Telegram."""
        return bool(self._out) or self._is_under_way("sendMessage")

    def begins(self, to, effect: tuple):
        """The turn for *to* comes to *effect* (``Delivery.begins``)."""
        return self._kept.begins(to, effect)

    def put_back(self, to, is_in_order: bool = True):
        """The turn for *to* was cut off (``Delivery.put_back``)."""
        self._typing.pop(place_of(to).address, None)
        self._kept.put_back(to, is_in_order)

    def say(self, actor: str, text: str, mark: tuple):
        """Send *text* to *actor*, once for each *mark* (``Delivery.say``)."""
        self._kept.say(actor, text, mark)

    def reply(self, to, text: str, final: bool = True, failed: bool = False):
        """Send *text* to *to*, in parts when it is long.  *to*: the ``Item`` of a message, the id
        of a chat, or (id, topic in it).
        """
        address = place_of(to).address if isinstance(to, Item) else to
        if final:
            self._typing.pop(address, None)
        if final and isinstance(to, Item):
            self._kept.end(to, text)
        elif self.send(address, text):
            self._channel.log("dropped", actor=address_parameters(address)["chat_id"])

    def _answer(self, item: Item):
        """Send the reply to *item*, which is done when Telegram has it."""
        if self.send(place_of(item).address, item.answer, item):
            self._channel.log("dropped", actor=item.actor)
            self._kept.remove(item)

    def ask(self, to, text: str, more: str, task):
        """Put the question *text* about *task* to *to*, with buttons; *more* says how to answer by
        a command.
        """
        if task.approval.form:  # it wants more than yes or no
            self.reply(to, text + more, False)
            return
        address = place_of(to).address if isinstance(to, Item) else to
        if self.send(address, text + more, keyboard=self._taps.keyboard(task.approval)):
            self._channel.log("dropped", actor=address_parameters(address)["chat_id"])

    def end_question(self, approval, text: str):
        """Put *text* in the place of the buttons below all copies of a question."""
        for copy in self._taps.end_question(approval):
            self._edit(*copy, text)

    def _edit(self, chat: str, message: int, old: str, text: str):
        new = split_message(text + "\n\n" + old)[0]
        self._asides.append(
            ("editMessageText", {"chat_id": chat, "message_id": message, "text": new})
        )

    def send(self, to, text: str, item=None, keyboard=None) -> str:
        """Queue *text*, in parts when it is long; return "", or why it cannot be sent.

        item      it is the reply to this one
        keyboard  the buttons below its last part, or None
        """
        parts = split_message(text)
        if len(self._out) + len(parts) > MAX_WAITING:
            return "%d messages wait already" % len(self._out)
        for number, part in enumerate(parts):
            params, is_last = dict(address_parameters(to), text=part), number == len(parts) - 1
            if keyboard and is_last:
                params["reply_markup"] = keyboard
            self._out.append((params, 0, item if is_last else None))
        return ""

    def recipient(self, name: str):
        """Return the id of the group *name* in which somebody who is admitted has written, else
        None: *name* is an actor.
        """
        name = self._moved.get(name, name)
        return name if name in self._groups else None

    # -- requests

    def _is_under_way(self, method: str) -> bool:
        return any(asked.method == method for asked in self._under_way.values())

    def _is_aside_under_way(self) -> bool:
        return any(asked.method in _ASIDES for asked in self._under_way.values())

    def _ask(self, method: str, params: dict, tries: int = 0, item=None):
        scheme, host, port = self._where
        body = dumps(params).encode()
        named = "[%s]" % host if ":" in host else host
        if port != (443 if scheme == "https" else 80):
            named += ":%d" % port
        head = request(
            "POST", self._path + method, named, [("Content-Type", "application/json")], len(body)
        )
        self._last += 1
        asked = self._under_way[self._last] = PendingRequest(
            method, params, self._channel.now_ms() + SILENCE_MS, tries, item
        )
        asked.connection = self._connections.open(
            self._last, scheme, host, port, [head, body], CONNECT_MS
        )

    def _handle_event(self, asked: PendingRequest, kind: str, data):
        """Handle an event of a connection; return True when the answer is complete.  Raises
        ``ProviderError``.
        """
        if kind == "error":
            raise ProviderError(data)
        if kind == "end":
            asked.response.at_end()
        else:
            asked.response.feed(data)
        event = asked.response.next_event()
        while event:
            if event[EVENT_KIND] == "head":
                asked.status = event[EVENT_STATUS]
                date = seconds_of(event[EVENT_HEADERS].get("date", ""))
                self._ahead_s = 0 if date is None else date - self._channel.now_s()
            elif event[EVENT_KIND] == "data":
                asked.body += event[EVENT_DATA]
                if len(asked.body) > MAX_BODY:
                    raise TooLong("the answer is longer than %d bytes" % MAX_BODY)
            else:
                return True
            event = asked.response.next_event()
        return False

    def _handle_answer(self, asked: PendingRequest, error):
        now, said = self._channel.now_ms(), None
        if error is None:
            try:
                said = loads_mended(bytes(asked.body))
            except ClawError:
                error = ProviderError(
                    "HTTP %d: no JSON came" % asked.status, "check base_url in clawlite.toml"
                )
        if error is None and (not isinstance(said, dict) or said.get("ok") is not True):
            error = ProviderError(
                "HTTP %d: %s"
                % (
                    asked.status,
                    str(said.get("description") if isinstance(said, dict) else said)[:200],
                )
            )
        if asked.method == "getMe":
            self._learn_name(None if error else said.get("result"), now)
        elif error is None:
            self._failures = 0
            if asked.method == "getUpdates":
                self._ask_ms, self._limit = now, min(2 * self._limit, MAX_UPDATES)
                self._take(said.get("result"))
            elif asked.item:
                self._kept.remove(asked.item)
            elif "reply_markup" in asked.params:
                self._note_question(asked.params, said.get("result"))
        elif asked.method == "getUpdates" and isinstance(error, TooLong) and self._limit > 1:
            self._ask_ms, self._limit = now, self._limit // 4 or 1
        elif asked.method == "getUpdates":
            if not self._failures:
                self._channel.trouble("Telegram: " + error.message, error.hint or _next_step(asked))
            self._ask_ms = now + self._pause(said)
            self._failures += 1
        elif asked.method == "sendMessage":
            self._send_failed(asked, said, error)

    def _note_question(self, params: dict, message):
        """A question with buttons has arrived, after which it may have ended already."""
        copy = params["chat_id"], message.get("message_id") if isinstance(message, dict) else None
        if not self._taps.add_copy(params["reply_markup"], *copy, params["text"]) and copy[1]:
            self._edit(*copy, params["text"], "This question has ended.")

    def _learn_name(self, me, now: int):
        name = me.get("username") if isinstance(me, dict) else None
        self._name = name if isinstance(name, str) else ""
        self._me_ms, self._is_me_asked = now + ME_AGAIN_MS, True

    def _send_failed(self, asked: PendingRequest, said, error):
        """Send a message again, or drop it."""
        self._send_ms = self._channel.now_ms() + self._pause(said)
        chat, parameters = asked.params["chat_id"], _parameters(said)
        may_pass = asked.status == 429 or asked.status >= 500
        new = parameters.get("migrate_to_chat_id")
        if asked.status == 400 and is_int(new) and chat not in self._moved:
            self._follow(chat, str(new))
            self._send_ms, may_pass = 0, True
        # no fault of the message: it waits for the network, or for another token of the bot
        if not asked.connection.is_sent or asked.status in _NO_TOKEN:
            may_pass, asked.tries = True, asked.tries - 1
        # without a status it may have arrived, and a second copy would be worse than none; 403:
        # the person has blocked the bot, for example, so another try would not help
        if may_pass and asked.tries < _TRIES:
            self._out.appendleft((asked.params, asked.tries, asked.item))
            return
        reason = error.message if asked.status else "the connection failed"
        self._channel.log("dropped", actor=chat, reason=reason)
        if asked.item:
            self._kept.remove(asked.item)

    def _pause(self, said) -> int:
        """Return how many ms to wait after a failure: the time that Telegram asks for, else a pause
        that grows with each failure.
        """
        after = _parameters(said).get("retry_after")
        if isinstance(after, int) and 0 < after <= 3600:
            return after * 1000
        return _PAUSES_MS[min(self._failures, len(_PAUSES_MS) - 1)]

    # -- messages

    def _take(self, updates):
        """Act on each update once: its message is on record before the offset moves."""
        if self._channel.is_draining:
            return  # they come again when the agent has started again
        come, last = [], 0
        for update in updates[:MAX_UPDATES] if isinstance(updates, list) else ():
            number = update.get("update_id") if isinstance(update, dict) else None
            if not is_int(number):
                continue
            last = max(last, number)
            if not (
                self._kept.inbox.knows(number, self._bot)
                or self._handled - 10 * MAX_UPDATES <= number < self._handled
            ):
                if "callback_query" in update:
                    self._answer_tap(read_tap(update["callback_query"]))
                else:
                    come.append((number, update.get("message")))
        if last:
            self._judged = last, *self._judge(come)
            self._accept()

    def _answer_tap(self, tap):
        """Do what the button says, if the person who touched it may; the answer ends the waiting
        sign at the button.
        """
        if tap is None:
            return
        if self._channel.access.role(tap.actor) != ADMIN:
            text = "Only an admin approves."
            self._channel.note_ignored(tap.actor, text)
        else:
            text = self._use(self._taps.take(tap.token), tap)
        params = {"callback_query_id": tap.query, "text": text[:MOST_NOTICE]}
        self._asides.append(("answerCallbackQuery", params))

    def _use(self, found, tap) -> str:
        task = found and self._channel.find_asked(found[0].approval.number)
        if task is None or task.approval is not found[0].approval:
            text = "This question has ended. Nothing was done."
            self._channel.note_ignored(tap.actor, text)
            return text
        if found[1] == SHOW:
            self._channel.show_below(task, tap.actor, tap.chat)
            return "Sent below."
        return self._channel.decide(task, tap.actor, found[1] == APPROVE)

    def _judge(self, come: list) -> tuple:
        """Return the messages that act, [(update id, ``Incoming``, ``Place``), ...], and those that
        are too old: the same by actor and address.

        come  [(update id, message)]
        """
        good, old = [], {}
        for number, message in come:
            if read_migration(message):
                self._follow(*read_migration(message))
            one = read(message, self._name)
            if one is None:
                continue
            place = self._place(one)
            known = self._channel.access.role(one.actor) is not None
            if one.text is None:
                if known:
                    self.reply(place.address, "I can only read text.")
            elif known and self._is_old(one.date):
                self._channel.log("refused", actor=one.actor, reason="age")
                old.setdefault((one.actor, place.address), []).append((number, one, place))
            elif self._channel.judge(one.actor, one.text, place.address)[0] is not None:
                good.append((number, one, place))
        return good, old

    def _accept(self):
        """Put messages that were judged on record, and queue them.  Where they cannot be put
        on record, this is tried again before anything else is asked for: they are judged once.
        """
        last, good, old = self._judged
        records = [
            (number, self._bot, one.actor, one.text, place.pack())
            for number, one, place in good + [several[0] for several in old.values()]
        ]
        items = self._kept.take(records) if records else []
        if items is None:
            self._ask_ms = self._channel.now_ms() + RECORD_AGAIN_MS
            return
        self._judged = None
        self._offset, self._update_ms = last + 1, self._channel.now_ms()
        for item, (_, one, place) in zip(items, good):
            self._queue_new(item, one, place)
        for item, several in zip(items[len(good) :], old.values()):
            self._kept.end(item, _too_old([one.text for _, one, _ in several]))

    def _queue_new(self, item: Item, one, place: Place):
        """Queue a message that has come just now, for its turn."""
        if one.is_group and place.chat not in self._groups:
            self._groups.append(place.chat)
            del self._groups[:-MAX_GROUPS]
            self._channel.keep(False)
        processing = self._channel.processing
        if processing[TYPING]:
            self._typing[place.address] = 0
        role = self._channel.access.role(one.actor)
        if self._channel.queue_message(role, item.actor, item.text, item, place.talk):
            self._typing.pop(place.address, None)
        elif processing[RECEIPTS] and place.message is not None:
            params = {
                "chat_id": place.chat,
                "message_id": place.message,
                "reaction": [{"type": "emoji", "emoji": SEEN}],
            }
            self._asides.append(("setMessageReaction", params))

    def _queue_left(self, item: Item):
        """Queue a message that an earlier process has left, for its turn."""
        role = self._channel.access.role(item.actor)
        talk = place_of(item).talk
        self._channel.queue_message(role, item.actor, item.text, item, talk, is_kept=True)

    def _end_old(self, restored: list):
        """End the messages that have become too old while no agent ran."""
        for item in list(restored):
            if item.answer is None and not item.begun and self._is_old(place_of(item).date):
                restored.remove(item)
                self._channel.log("refused", actor=item.actor, reason="age")
                self._kept.end(item, _too_old([item.text]))

    def _is_old(self, date) -> bool:
        now_s = self._channel.now_s() + (self._ahead_s or 0)
        return date is not None and now_s - date > self._max_age_s

    def _place(self, one) -> Place:
        """Return the ``Place`` of an ``Incoming``.  A group keeps its conversations when its id
        changes.
        """
        first = next((old for old in self._moved if self._moved[old] == one.chat), one.chat)
        talk = "%s@%s" % (one.actor, first) if one.is_group else one.actor
        thread = one.thread if self._channel.processing[THREADS] else None
        return Place(one.chat, talk, thread, one.message, one.date)

    def _follow(self, old: str, new: str):
        """A group has become a supergroup, which has another id."""
        if self._moved.get(old) == new or old == new:
            return
        self._channel.log("moved", chat=old, to=new)
        self._moved[old] = new
        while len(self._moved) > MAX_GROUPS:
            del self._moved[next(iter(self._moved))]
        self._groups[:] = [new if group == old else group for group in self._groups]
        self._channel.keep(True)


def _make_part(data: dict, name: str, kind: type):
    """Return the part *name* of a channel's state, which is made when it is not there."""
    if not isinstance(data.get(name), kind):
        data[name] = kind()
    return data[name]


def _too_old(texts: list) -> str:
    """Return the answer to messages that came too late."""
    quoted = ['"%s"' % (text if len(text) <= 60 else text[:57] + "...") for text in texts[:QUOTED]]
    more = ", and %d more" % (len(texts) - QUOTED) if len(texts) > QUOTED else ""
    return "Nothing was done for %s%s: it came too late. Write again if it is still to be done." % (
        ", ".join(quoted),
        more,
    )


def _parameters(said) -> dict:
    """Return the field ``parameters`` of an answer (Bot API, ResponseParameters)."""
    parameters = said.get("parameters") if isinstance(said, dict) else None
    return parameters if isinstance(parameters, dict) else {}


def _next_step(asked: PendingRequest) -> str:
    """Return what a person can do about a failed request for new messages."""
    if asked.status in (401, 403, 404):
        return "set its token again: clawlite secrets set NAME, as secret_ref of the channel says"
    if asked.status == 409:
        return "stop the other program that reads the messages of this bot"
    return "check that the network is up; the agent asks again by itself"


def address_parameters(to) -> dict:
    """Return the parameters of a request that address *to*."""
    if isinstance(to, str):
        return {"chat_id": to}
    chat, thread = to
    return {"chat_id": chat, "message_thread_id": thread}


def split_message(text: str) -> list:
    """Return *text* as a list of messages of at most ``MOST`` UTF-16 units, cut at line ends where
    possible; [] for a text without characters.
    """
    found = []
    while text.strip():
        size = end = 0
        for c in text:
            size += 2 if c > "\uffff" else 1
            if size > MOST:
                break
            end += 1
        if end < len(text):
            line = text.rfind("\n", 1, end)
            end = line if line > 0 else end
        if text[:end].strip():
            found.append(text[:end])
        text = text[end:].lstrip("\n")
    return found


Source = Telegram  # the class that channel.py loads for this kind of channel

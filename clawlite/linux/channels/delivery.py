"""The messages that a source has accepted, on record until they are done (inbox.py): a source tells
its other end that a message has arrived only after ``take``.

    take -> the source tells its other end -> begin: a turn -> end: its reply is on record -> the
    source sends it -> done

1. After a restart, a message whose turn had not ended begins again, and a reply that may not have
   arrived is sent again: at least once.
2. A message that has ended its process ``MOST_TRIES`` times becomes a dead letter.  With
   ``gives_up``, so does one in whose turn a tool with side effects had begun when its process
   ended: nobody knows what that tool has done, and doing it twice could be worse.  Its sender is
   told.
3. A process that ends in order is no fault of a message, and does not count.
"""

from clawlite.core.base.effect import KIND, RUN, TOOL
from clawlite.core.base.errors import ClawError, StoreError
from clawlite.core.image.image import HAS_SIDE_EFFECTS
from clawlite.linux.channels.dead_letters import SUFFIX, DeadLetters
from clawlite.linux.channels.inbox import MOST_TRIES, ROOM, Inbox, Item
from clawlite.linux.files.files import mend

LOOK_MS = 10000  # between looks for messages that are to run again


class Delivery:
    """The messages of one channel.

    channel   ``channel.Channel``
    begin     function(item): queue its turn in the channel
    answer    function(item): send ``item.answer``, and call ``remove`` when it has arrived
    gives_up  bool, rule 2
    Raises ``ClawError`` when the file of messages cannot be read.
    """

    def __init__(self, channel, begin, answer, gives_up: bool = False):
        self._channel, self._begin, self._answer = channel, begin, answer
        self._gives_up = gives_up
        self._running = {}  # number -> the Item whose turn has had an effect
        try:
            self.inbox = Inbox(channel.path(".queue"))
            self._dead = DeadLetters(channel.path(SUFFIX)) if channel.path(SUFFIX) else None
        except OSError as e:
            raise ClawError(
                "the messages on record cannot be read: %s" % (e.strerror or e),
                "check the disk, and who may read the folder of the agent",
            ) from None
        # when to look for dead letters next; None: there are none
        self._look_ms = 0 if self._dead else None
        self.restored = list(self.inbox.waiting.values())  # their turns are to begin (again)

    def poll(self):
        """Go on with the messages of earlier processes, and with dead letters that are to run."""
        restored, self.restored = self.restored, []
        for item in restored:
            self._go_on(item)
        self._look()

    def deadline(self):
        """Return the monotonic time at which ``poll`` has something to do, or None."""
        return self._channel.now_ms() if self.restored else self._look_ms

    def room(self) -> int:
        """Return how many messages may be taken now."""
        return ROOM - len(self.inbox.waiting)

    def take(self, messages: list):
        """Put *messages* on record (``Inbox.take``); return their ``Item``s, or None when that
        fails, which is reported: their source must not be told that they have arrived.
        """
        try:
            return self.inbox.take(messages)
        except OSError as e:
            self._channel.trouble(
                "messages cannot be put on record: %s" % (e.strerror or e), mend(e)
            )
            return None

    def begins(self, item: Item, effect: tuple) -> bool:
        """Record that the turn of *item* comes to *effect*.  Return whether no later effect has to
        be recorded (``keep_output``).  Raises ``StoreError``: it must not begin.
        """
        if item.number not in self._running:
            self._running[item.number] = item
            self.inbox.begins(item)
        if not self._gives_up or item.acted:
            return True
        if effect[KIND] != RUN or not effect[TOOL].flags & HAS_SIDE_EFFECTS:
            return False
        tool = effect[TOOL].name
        try:
            self.inbox.acts(item, tool)
        except OSError as e:
            raise StoreError(
                "%s may not begin: it cannot be recorded that it does: %s"
                % (tool, e.strerror or e),
                mend(e),
            ) from None
        return True

    def end(self, item: Item, text: str):
        """The turn of *item* has ended with *text*."""
        self._running.pop(item.number, None)
        if text.strip():
            self.inbox.keep_answer(item, text)
            self._answer(item)
        else:
            self.remove(item)

    def remove(self, item: Item):
        """Nothing is left to do for *item*."""
        self._running.pop(item.number, None)
        self.inbox.remove(item)

    def say(self, actor: str, text: str, mark: tuple):
        """Put *text* for *actor*, which answers nothing, on record, and send it; once for each
        *mark*, an int > 0 and a string.
        """
        if self.inbox.knows(*mark):
            return
        try:
            self._answer(self.inbox.put_answer(mark, actor, text))
        except OSError as e:
            item = Item(0, actor, "", b"")
            item.answer = text
            self._channel.trouble(
                "a message cannot be put on record: %s" % (e.strerror or e), mend(e)
            )
            self._answer(item)

    def put_back(self, item: Item, is_in_order: bool = True):
        """The turn of *item* was cut off: it begins again later.  *is_in_order*: because the agent
        stopped, which is no fault of the message.
        """
        if self._running.pop(item.number, None) and is_in_order:
            self.inbox.withdraws(item)
        self.restored.append(item)

    def close(self):
        for item in self._running.values():
            self.inbox.withdraws(item)
        self._running = {}
        self.inbox.close()

    # -- what an earlier process left

    def _go_on(self, item: Item):
        """Continue a message that is on record: send its reply, begin its turn, or give it up."""
        if item.answer is not None:
            self._answer(item)
        elif self._channel.takes_up(item):
            return
        elif self._channel.access.role(item.actor) is None:
            self._channel.log("dropped", actor=item.actor, reason="stranger")
            self.remove(item)
        elif self._gives_up and item.acted:
            self._give_up(
                item,
                "the agent ended while %s was under way, which may have happened" % item.acted,
                "The agent ended while it worked on this message, and %s may have happened. Look, "
                "and write again if it is still to be done." % item.acted,
            )
        elif item.begun >= MOST_TRIES:
            why = "it was started %d times" % item.begun
            said = (
                "This message was given up: %s, and each time the agent ended before it was "
                "done." % why
            )
            self._give_up(item, why, said)
        else:
            self._begin(item)

    def _give_up(self, item: Item, why: str, said: str):
        """Keep *item* as a dead letter, and tell its sender and the person at the console."""
        self._channel.log("dropped", actor=item.actor, reason=why)
        if self._dead:
            try:
                gone = self._dead.put(
                    item.actor, item.text, item.correlation, why, self._channel.now_s()
                )
            except OSError as e:  # it stays in the inbox, and is given up at the next start
                return self._channel.trouble(
                    "a dead letter cannot be stored: %s" % (e.strerror or e), mend(e)
                )
            if gone:
                self._channel.log(
                    "dropped", reason="dead letter %d was removed to make room" % gone
                )
            self._look_ms = self._channel.now_ms() + LOOK_MS
        self._channel.trouble(
            "a message was given up: " + why, "see it with: clawlite channels dead"
        )
        self.end(item, said)

    def _look(self):
        """Begin the dead letters that somebody wants to run again; look for more while there are
        any.
        """
        if not self._dead or self._look_ms is None or self._channel.now_ms() < self._look_ms:
            return
        letters = self._dead.all()
        self._look_ms = self._channel.now_ms() + LOOK_MS if letters else None
        for letter in letters:
            if not letter.is_asked or self.room() <= 0:
                continue
            if letter.is_damaged or self._channel.access.role(letter.actor) is None:
                self._dead.refuse(letter.number)
                self._channel.trouble(
                    "dead letter %d does not run again: %s"
                    % (
                        letter.number,
                        "its file is damaged"
                        if letter.is_damaged
                        else "its sender is no longer known",
                    )
                )
                continue
            try:
                items = self.inbox.take([(0, "", letter.actor, letter.text, letter.correlation)])
                self._dead.drop(letter.number)
            except OSError as e:
                return self._channel.trouble(
                    "dead letter %d cannot run again: %s" % (letter.number, e.strerror or e),
                    mend(e),
                )
            self._go_on(items[0])

"""Channels of type queue: an MQTT 5 topic whose messages begin turns (CKP 0.2.0, 5.3
``queue_name``; docs/channels.md).

    broker -> on_message, in paho's thread -> poll, in the loop: who, how long -> inbox.py, synced
    -> acknowledged -> a turn -> reply topic

1. With overlap_policy ``queue``, a message is acknowledged once it is on disk.  With ``skip`` and
   ``allow``, it is acknowledged once it was checked.
2. The connection tells the broker how long a message may be, and how many messages it may send
   without an acknowledgement.  So neither paho nor this module ever holds more.
3. The actor is the topic level in the place of the "+", which a broker can enforce.  The content of
   a message does not change who the actor is.
4. A message is acknowledged only on the connection that it came by, because another session uses
   the same packet ids for other messages.
"""

import os
import sys
import threading
from collections import deque

from clawlite.core.base.errors import ClawError
from clawlite.core.base.text import decode_utf8
from clawlite.linux.channels.dead_letters import SUFFIX, DeadLetters
from clawlite.linux.channels.inbox import MOST_TRIES, REMEMBERED, ROOM, Inbox, Item, digest_of
from clawlite.linux.channels.overlap import QUEUE
from clawlite.linux.files.files import mend
from clawlite.linux.secrets.secrets import resolve, stores

KEEPALIVE_S = 60
AGAIN_S = (1, 120)  # pause between attempts to connect: doubled each time
OVERHEAD = 4096  # bytes of a message beside its payload: topic and properties
MAX_CORRELATION = 256  # bytes that a reply carries back
# replies on their way to the broker; at this number no more messages are read
MAX_OUT = 1000
AGAIN_MS = 5000  # pause after a write to disk failed
LOOK_MS = 10000  # between looks for messages that are to run again
FOREVER_S = 0xFFFFFFFF  # a session that does not expire (MQTT 5, 3.1.2.11.2)
LEAVE_S = 1.0
MAX_ACTOR = 128  # characters of an id that the log has
# no retained messages: what was published before the subscription is no event (MQTT 5, 3.8.3.1)
NEVER_RETAINED = 2


class Message:
    """A message from the broker.  *topic* is None when it is not UTF-8; *correlation*: bytes."""

    def __init__(self, connection: int, message):
        self.connection, self.packet, self.qos, self.again, self.payload = (
            connection,
            message.mid,
            message.qos,
            message.dup,
            message.payload,
        )
        self.correlation = getattr(message.properties, "CorrelationData", b"")[:MAX_CORRELATION]
        try:
            self.topic = message.topic
        except UnicodeDecodeError:
            self.topic = None


class Mqtt:
    """One topic.

    channel  ``channel.Channel``
    own      [secure, host, port, user or "", name of the secret, client id, QoS, clean, topic,
             reply topic or ""] of the image
    Raises ``ClawError`` when the secret is missing, or the file of messages cannot be read.
    """

    def __init__(self, channel, own: list):
        self._channel = channel
        (
            secure,
            self._host,
            self._port,
            user,
            secret,
            client,
            self._qos,
            clean,
            self._topic,
            self._reply,
        ) = own
        # filled by paho's thread: events (kind, ...), and ``Message``s
        self._events, self._come = deque(), deque()
        self._connection = 0
        # (packet id, "" or why it was refused) of each reply that the broker answered; packet id ->
        # the Item that a reply under way belongs to
        self._arrived, self._open = deque(), {}
        self._is_up = self._is_known = self._told = self._closed = False
        self._left = threading.Event()
        self._again_ms = None
        self._inbox = self._dead = None
        self._running = {}  # number -> the Item whose turn has had an effect
        if channel.policy == QUEUE:
            try:
                self._inbox = Inbox(channel.path(".queue"))
                self._dead = DeadLetters(channel.path(SUFFIX)) if channel.path(SUFFIX) else None
            except OSError as e:
                raise ClawError(
                    "the messages on record cannot be read: %s" % (e.strerror or e),
                    "check the disk, and who may read the folder of the agent",
                ) from None
        # when to look for dead letters next; None: there are none
        self._look_ms = 0 if self._dead else None
        self._client = self._made(client, clean, secure)
        if user:
            password = resolve(secret, stores(channel.agent.image.agent.name))
            if channel.agent.image.guard is not None:
                channel.agent.image.guard.learn(password)
            self._client.username_pw_set(user, password)
        self._restored = list(self._inbox.waiting.values()) if self._inbox else []
        self._client.loop_start()

    def _made(self, name: str, clean: bool, secure: bool):
        from paho.mqtt import client as paho  # found by linux/runtime/startup.py
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        self._paho, self._properties = paho, lambda: Properties(PacketTypes.PUBLISH)
        client = paho.Client(
            paho.CallbackAPIVersion.VERSION2, name, protocol=paho.MQTTv5, manual_ack=True
        )
        client.reconnect_delay_set(*AGAIN_S)
        client.max_queued_messages_set(ROOM)
        if secure:
            from clawlite.linux.net.tls import context

            client.tls_set_context(context())
        client.on_connect, client.on_disconnect, client.on_connect_fail = (
            self._connected,
            self._disconnected,
            self._failed,
        )
        client.on_subscribe, client.on_message, client.on_publish = (
            self._subscribed,
            self._received,
            self._published,
        )
        asked = Properties(PacketTypes.CONNECT)
        asked.SessionExpiryInterval = 0 if clean else FOREVER_S
        asked.ReceiveMaximum = REMEMBERED
        asked.MaximumPacketSize = 4 * self._channel.processing[0] + OVERHEAD
        client.connect_async(
            self._host, self._port, KEEPALIVE_S, clean_start=clean, properties=asked
        )
        return client

    # -- in paho's thread

    def _connected(self, client, data, flags, reason, properties):
        if reason.is_failure:
            self._event("refused", str(reason))
            return
        self._connection += 1
        self._left.clear()
        if flags.session_present:
            self._come.clear()  # they were not acknowledged, so the broker sends them again
        self._is_up, self._is_known = True, flags.session_present
        client.subscribe(
            self._topic,
            options=self._paho.SubscribeOptions(
                self._qos, noLocal=True, retainHandling=NEVER_RETAINED
            ),
        )

    def _disconnected(self, client, data, flags, reason, properties):
        self._is_up = False
        self._left.set()
        self._event("down", str(reason))

    def _failed(self, client, data):
        error = sys.exc_info()[1]  # paho calls this inside its exception handler
        self._event(
            "down",
            getattr(error, "verify_message", None)
            or getattr(error, "strerror", None)
            or str(error or "nothing answers there"),
        )

    def _subscribed(self, client, data, mid, reasons, properties):
        refused = [reason for reason in reasons if reason.is_failure]
        self._event(
            *(
                ("refused", "it does not allow reading %s: %s" % (self._topic, refused[0]))
                if refused
                else ("up", self._is_known)
            )
        )

    def _received(self, client, data, message):
        # a broker sends at most REMEMBERED with a QoS, and sends them again until acknowledged
        if len(self._come) < (REMEMBERED if message.qos else ROOM):
            self._come.append(Message(self._connection, message))
            self._wake()
        else:
            self._event("dropped")

    def _published(self, client, data, mid, reason, properties):
        self._arrived.append((mid, str(reason) if reason.is_failure else ""))
        self._wake()

    def _event(self, *event):
        self._events.append(event)
        self._wake()

    def _wake(self):
        if self._closed:  # the wake pipe's descriptor may belong to another file by now
            return
        try:
            os.write(self._channel.wake, b"\0")
        except BlockingIOError:  # it is awake already
            return

    # -- in the loop

    def poll(self):
        """Read the messages that have come, acknowledge them, and begin their turns."""
        restored, self._restored = self._restored, []
        for item in restored:
            self._go_on(item)
        while self._arrived:
            packet, refused = self._arrived.popleft()
            item = self._open.pop(packet, None)
            if refused:  # to send it again would not help
                self._channel.log(
                    "dropped", actor=item.actor[:MAX_ACTOR] if item else "", reason=refused
                )
                self._heed("refused", "it refuses what is sent to %s: %s" % (self._reply, refused))
            if item:
                self._inbox.ended(item)
        self._look()
        while self._events:
            self._heed(*self._events.popleft())
        now_ms = self._channel.now_ms()
        if self._again_ms is not None and now_ms < self._again_ms:
            return
        self._again_ms = None
        batch = []
        while (
            self._come
            and len(self._open) < MAX_OUT
            and (self._inbox is None or len(self._inbox.waiting) + len(batch) < ROOM)
        ):
            batch.append(self._come.popleft())
        if batch:
            self._take(batch)

    def deadline(self):
        """Return the monotonic time at which ``poll`` has something to do, or None.  Messages wake
        the loop by themselves.
        """
        times = [at for at in (self._again_ms, self._look_ms) if at is not None]
        return self._channel.now_ms() if self._restored else min(times, default=None)

    def begins(self, to):
        """Record that the first effect of the turn for *to* begins."""
        if self._inbox and isinstance(to, Item):
            self._running[to.number] = to
            self._inbox.begins(to)

    def reply(self, to, text: str, final: bool = True, failed: bool = False):
        """Send *text* to the sender.  *to*: an ``Item``, or the id of an actor."""
        if final and isinstance(to, Item):
            self._running.pop(to.number, None)
        if not isinstance(to, Item):
            self.send(to, text)
        elif final and self._inbox and self._reply and text.strip():
            self._inbox.answered(to, text)
            self._answer(to)
        else:
            if text.strip():
                self.send(to.actor, text, to.correlation)
            if final and self._inbox:
                self._inbox.ended(to)
                if self._come:  # there is room for what waits
                    self._wake()

    def _answer(self, item: Item):
        """Send the reply to *item*, which is done when the broker has it."""
        packet, wrong = self._publish(item.actor, item.answer, item.correlation)
        if wrong:
            self._inbox.ended(item)
        else:
            self._open[packet] = item

    def send(self, actor: str, text: str, correlation: bytes = b"") -> str:
        """Publish *text* to *actor*, or show it on the console when no reply topic is declared.
        Return "", or why it was not published.
        """
        if not self._reply:
            self._channel.tell(text)
            return "no reply topic is declared for it"
        return self._publish(actor, text, correlation)[1]

    def _publish(self, actor: str, text: str, correlation: bytes) -> tuple:
        """Publish a reply.  Return (packet id, ""), or (0, why it failed); a failure is logged."""
        properties = self._properties()
        if correlation:
            properties.CorrelationData = correlation
        try:
            info = self._client.publish(
                self._reply.replace("+", actor),
                text.encode("utf-8", "replace"),
                self._qos,
                False,
                properties,
            )
        except ValueError as e:  # no topic can have such a level
            wrong = str(e)
        else:
            # without a connection, a message with a QoS waits for one
            if (
                info.rc == self._paho.MQTT_ERR_SUCCESS
                or self._qos
                and info.rc == self._paho.MQTT_ERR_NO_CONN
            ):
                return info.mid, ""
            wrong = self._paho.error_string(info.rc)
        self._channel.log("dropped", actor=actor[:MAX_ACTOR], reason=wrong)
        return 0, wrong

    def recipient(self, name: str):
        """Return "" when the reply topic has no "+" and *name* is the reply topic itself, else
        None: *name* is an actor.
        """
        return "" if "+" not in self._reply and name == self._reply else None

    def close(self):
        """Disconnect, and keep the session: the broker keeps the messages that come meanwhile."""
        was_up, self._closed = self._is_up, True
        self._client.disconnect()
        if was_up:
            self._left.wait(LEAVE_S)
        if self._inbox:
            for item in self._running.values():
                self._inbox.withdraws(item)
            self._inbox.close()

    def _heed(self, kind: str, said=None):
        if kind == "up":
            self._told = False
            self._channel.log("connected")
            if self._inbox and not said:
                self._inbox.forget()
        elif kind == "dropped":
            self._channel.log("dropped", reason="%d messages wait already" % ROOM)
        elif not self._told:
            self._told = True
            self._channel.trouble(
                "MQTT broker %s port %d: %s" % (self._host, self._port, said),
                "look at [mqtt] in clawlite.toml, and at the broker's log",
            )

    def _take(self, batch: list):
        """Check messages, write them to the inbox, acknowledge them and begin their turns, in this
        order.
        """
        good, done = [], []  # [(message, digest, actor, text, role)], [message]
        for message in batch:
            actor, text = self._read(message)
            digest = (
                digest_of(message.topic, message.payload)
                if text is not None and self._inbox
                else ""
            )
            if (
                text is not None
                and self._inbox
                and message.again
                and self._inbox.knows(message.packet, digest)
            ):
                self._channel.log("again")
                text = None
            role = self._channel.judged(actor, text, actor)[0] if text is not None else None
            if role is None:
                done.append(message)
            else:
                good.append((message, digest, actor, text, role))
        items = [Item(0, actor, text, message.correlation) for message, _, actor, text, _ in good]
        if self._inbox and good:
            try:
                items = self._inbox.take(
                    [
                        (message.packet, digest, actor, text, message.correlation)
                        for message, digest, actor, text, _ in good
                    ]
                )
            except OSError as e:
                self._channel.trouble(
                    "messages cannot be put on record: %s" % (e.strerror or e), mend(e)
                )
                self._come.extendleft(reversed([one[0] for one in good]))
                self._again_ms = self._channel.now_ms() + AGAIN_MS
                good = []
        for message in done + [one[0] for one in good]:
            if message.qos and message.connection == self._connection and self._is_up:
                self._client.ack(message.packet, message.qos)
        for item, one in zip(items, good):
            self._channel.offer(one[-1], item.actor, item.text, item)

    def _read(self, message: Message) -> tuple:
        """Return (actor, text) of a message.  Text is None when the message is refused, which is
        logged.
        """
        actor, text, levels = "", "", self._topic.split("/")
        try:
            text = decode_utf8(message.payload)
            if "+" in levels and message.topic:
                actor = message.topic.split("/")[levels.index("+")]
        except (ValueError, IndexError):
            pass  # the payload is no text, or the topic is not the subscribed one
        if text.strip() and message.topic and (actor or "+" not in levels):
            return actor, text
        self._channel.log("refused", actor=actor[:MAX_ACTOR], reason="text")
        return actor, None

    def _go_on(self, item: Item):
        """Continue a message that is in the inbox: send its reply, begin its turn, or give it
        up.
        """
        role = self._channel.access.role(item.actor)
        if item.answer is not None and self._reply:
            self._answer(item)
        elif role is None:
            self._channel.log("dropped", actor=item.actor, reason="stranger")
            self._inbox.ended(item)
        elif item.begun >= MOST_TRIES:
            self._give_up(item)
        else:
            self._channel.offer(role, item.actor, item.text, item)

    def _give_up(self, item: Item):
        """Keep *item* as a dead letter, and tell its sender and the person at the console."""
        why = "it was started %d times" % item.begun
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
            "a message was given up: %s, and each time the agent ended" % why,
            "see it with: clawlite channels dead",
        )
        self.reply(
            item,
            "This message was given up: %s, and each time the agent ended before it was "
            "done." % why,
        )

    def _look(self):
        """Begin the dead letters that somebody wants to run again; look for more while there are
        any.
        """
        if self._look_ms is None or self._channel.now_ms() < self._look_ms:
            return
        letters = self._dead.all()
        self._look_ms = self._channel.now_ms() + LOOK_MS if letters else None
        for letter in letters:
            if not letter.is_asked or len(self._inbox.waiting) >= ROOM:
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
                items = self._inbox.take([(0, "", letter.actor, letter.text, letter.correlation)])
                self._dead.drop(letter.number)
            except OSError as e:
                return self._channel.trouble(
                    "dead letter %d cannot run again: %s" % (letter.number, e.strerror or e),
                    mend(e),
                )
            self._go_on(items[0])


Source = Mqtt  # the class that channel.py loads for this kind of channel

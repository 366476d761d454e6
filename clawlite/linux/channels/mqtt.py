"""Channels of type queue: an MQTT 5 topic whose messages begin turns (CKP 0.2.0, 5.3
``queue_name``; docs/channels.md).

    broker -> on_message, in paho's thread -> poll, in the loop: who, how long -> delivery.py,
    synced -> acknowledged -> a turn -> reply topic

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
from typing import Any

from clawlite.core.base.text import decode_utf8
from clawlite.linux.channels.delivery import Delivery
from clawlite.linux.channels.inbox import REMEMBERED, ROOM, Item, digest_of
from clawlite.linux.channels.overlap import QUEUE
from clawlite.linux.secrets.secrets import resolve, stores

# The processor wakes three times in it: at half of it, at its end for a ping, and for the answer.
KEEPALIVE_S = 100
AGAIN_S = (1, 120)  # pause between attempts to connect: doubled each time
OVERHEAD = 4096  # bytes of a message beside its payload: topic and properties
MAX_CORRELATION = 256  # bytes that a reply carries back
# replies on their way to the broker; at this number no more messages are read
MAX_OUT = 1000
AGAIN_MS = 5000  # pause after a write to disk failed
FOREVER_S = 0xFFFFFFFF  # a session that does not expire (MQTT 5, 3.1.2.11.2)
LEAVE_S = 1.0
# A broker that does not take a reply may end the connection, and gets it again on the next one.  So
# the oldest reply is given up once connections have ended this often before one had arrived: one
# that ended for what was sent counts as three.
MOST_ENDED, FAULT = 5, 3
FAULTS = (  # reasons to disconnect (MQTT 5, 3.14.2.1), as paho names them
    "Malformed packet",
    "Protocol error",
    "Not authorized",
    "Topic name invalid",
    "Packet too large",
    "Payload format invalid",
    "Retain not supported",
    "QoS not supported",
)
HEAD = 64  # bytes of a packet beside topic, correlation and payload, at most
CUT = "\n[cut: the broker takes no more]"
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


def _patient(paho: Any):
    """Return paho's client, which waits in its thread for half a keepalive at once.

    By itself it waits for one second, although a message, something to send and its end wake it;
    all else that it looks at then is the keepalive, which the broker may shorten.  A message that
    comes just before the keepalive is over puts the ping off by one wait, and a broker ends a
    connection after one and a half keepalives: so a wait is half of one.
    """

    class Client(paho.Client):
        def _loop(self, timeout: float = 1.0):
            return super()._loop(self.keepalive / 2 or timeout)

    return Client


class Mqtt:
    """One topic.

    channel  ``channel.Channel``
    own      [secure, host, port, user or "", name of the secret, client id, QoS, clean, topic,
             reply topic or "", gives up (delivery.py)] of the image
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
            *gives_up,
        ) = own
        # filled by paho's thread: events (kind, ...), and ``Message``s
        self._events, self._come = deque(), deque()
        self._connection = 0
        # (packet id, "" or why it was refused) of each reply that the broker answered; packet id ->
        # the Item that a reply under way belongs to
        self._arrived, self._open = deque(), {}
        self._most = 0  # bytes of a packet that the broker takes, where it says so
        self._ended = 0  # connections in a row, as ``MOST_ENDED`` counts them
        self._is_up = self._is_known = self._told = self._closed = False
        self._left = threading.Event()
        self._again_ms = None
        self._kept = None  # what is on record, with overlap_policy ``queue``
        if channel.policy == QUEUE:
            self._kept = Delivery(channel, self._queue, self._answer, gives_up == [True])
        self._client = self._make_client(client, clean, secure)
        if user:
            password = resolve(secret, stores(channel.agent.image.agent.name))
            if channel.agent.setup.guard is not None:
                channel.agent.setup.guard.learn(password)
            self._client.username_pw_set(user, password)
        self._client.loop_start()

    def _make_client(self, name: str, clean: bool, secure: bool):
        from paho.mqtt import client as paho  # found by linux/runtime/startup.py
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        self._paho, self._properties = paho, lambda: Properties(PacketTypes.PUBLISH)
        client = _patient(paho)(
            paho.CallbackAPIVersion.VERSION2, name, protocol=paho.MQTTv5, manual_ack=True
        )
        client.reconnect_delay_set(*AGAIN_S)
        client.max_queued_messages_set(ROOM)
        if secure:
            from clawlite.linux.net.tls import context

            client.tls_set_context(context())
        client.on_connect, client.on_disconnect, client.on_connect_fail = (
            self._on_connect,
            self._on_disconnect,
            self._on_connect_fail,
        )
        client.on_subscribe, client.on_message, client.on_publish = (
            self._on_subscribe,
            self._on_message,
            self._on_publish,
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

    def _on_connect(self, client, data, flags, reason, properties):
        if reason.is_failure:
            self._event("refused", str(reason))
            return
        self._connection += 1
        self._most = getattr(properties, "MaximumPacketSize", 0)
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

    def _on_disconnect(self, client, data, flags, reason, properties):
        if self._is_up and client._out_messages:
            self._ended += FAULT if str(reason) in FAULTS else 1
            if self._ended >= MOST_ENDED:
                self._ended = 0
                packet = next(iter(client._out_messages))
                with client._out_message_mutex:
                    client._out_messages.pop(packet, None)
                self._arrived.append((packet, "the connection ends each time: %s" % reason))
        self._is_up = False
        self._left.set()
        self._event("down", str(reason))

    def _on_connect_fail(self, client, data):
        error = sys.exc_info()[1]  # paho calls this inside its exception handler
        self._event(
            "down",
            getattr(error, "verify_message", None)
            or getattr(error, "strerror", None)
            or str(error or "nothing answers there"),
        )

    def _on_subscribe(self, client, data, mid, reasons, properties):
        refused = [reason for reason in reasons if reason.is_failure]
        self._event(
            *(
                ("refused", "it does not allow reading %s: %s" % (self._topic, refused[0]))
                if refused
                else ("up", self._is_known)
            )
        )

    def _on_message(self, client, data, message):
        # a broker sends at most REMEMBERED with a QoS, and sends them again until acknowledged
        if len(self._come) < (REMEMBERED if message.qos else ROOM):
            self._come.append(Message(self._connection, message))
            self._wake()
        else:
            self._event("dropped")

    def _on_publish(self, client, data, mid, reason, properties):
        self._ended = 0
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
        while self._arrived:
            packet, refused = self._arrived.popleft()
            item = self._open.pop(packet, None)
            if refused:  # to send it again would not help
                self._channel.log(
                    "dropped", actor=item.actor[:MAX_ACTOR] if item else "", reason=refused
                )
                self._handle_event(
                    "refused", "it refuses what is sent to %s: %s" % (self._reply, refused)
                )
            if item:
                self._kept.remove(item)
        if self._kept and not self._channel.is_draining:
            self._kept.poll()
        while self._events:
            self._handle_event(*self._events.popleft())
        now_ms = self._channel.now_ms()
        if self._again_ms is not None and now_ms < self._again_ms or self._channel.is_draining:
            return
        self._again_ms = None
        batch = []
        while (
            self._come
            and len(self._open) < MAX_OUT
            and (self._kept is None or self._kept.room() > len(batch))
        ):
            batch.append(self._come.popleft())
        if batch:
            self._take(batch)

    def deadline(self):
        """Return the monotonic time at which ``poll`` has something to do, or None.  Messages wake
        the loop by themselves.
        """
        times = (self._again_ms, self._kept and self._kept.deadline())
        return min([at for at in times if at is not None], default=None)

    def begins(self, to, effect: tuple):
        """The turn for *to* comes to *effect* (``Delivery.begins``)."""
        return self._kept.begins(to, effect) if self._kept and isinstance(to, Item) else True

    def put_back(self, to, is_in_order: bool = True):
        """The turn for *to* was cut off (``Delivery.put_back``)."""
        if self._kept and isinstance(to, Item):
            self._kept.put_back(to, is_in_order)

    def say(self, actor: str, text: str, mark: tuple):
        """Send *text* to *actor*, once for each *mark* (``Delivery.say``)."""
        if self._kept:
            self._kept.say(actor, text, mark)
        else:
            self.send(actor, text)

    def reply(self, to, text: str, final: bool = True, failed: bool = False):
        """Send *text* to the sender.  *to*: an ``Item``, or the id of an actor."""
        if not isinstance(to, Item):
            self.send(to, text)
        elif final and self._kept:
            self._kept.end(to, text)
            if self._come:  # there is room for what waits
                self._wake()
        elif text.strip():
            self.send(to.actor, text, to.correlation)

    def _queue(self, item: Item):
        self._channel.queue_message(
            self._channel.access.role(item.actor), item.actor, item.text, item, is_kept=True
        )

    def _answer(self, item: Item):
        """Send the reply to *item*, which is done when the broker has it."""
        if not self._reply:
            self._channel.tell(item.answer)
            return self._kept.remove(item)
        packet, wrong = self._publish(item.actor, item.answer, item.correlation)
        if wrong:
            self._kept.remove(item)
        else:
            self._open[packet] = item

    def is_sending(self) -> bool:
        """Return whether replies are on their way to the broker."""
        return bool(self._open) and self._is_up

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
        topic, payload = self._reply.replace("+", actor), text.encode("utf-8", "replace")
        room = self._most - HEAD - len(topic.encode("utf-8", "replace")) - len(correlation)
        if self._most and len(payload) > room:
            payload = payload[: max(0, room - len(CUT))].decode("utf-8", "ignore").encode()
            payload += CUT.encode()
        try:
            info = self._client.publish(
                topic,
                payload,
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
        if self._kept:
            self._kept.close()

    def _handle_event(self, kind: str, said=None):
        if kind == "up":
            self._told = False
            self._channel.log("connected")
            if self._kept and not said:
                self._kept.inbox.forget()
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
                digest_of(message.topic, message.payload) if text is not None and self._kept else ""
            )
            if (
                text is not None
                and self._kept
                and message.again
                and self._kept.inbox.knows(message.packet, digest)
            ):
                self._channel.log("again")
                text = None
            role = self._channel.judge(actor, text, actor)[0] if text is not None else None
            if role is None:
                done.append(message)
            else:
                good.append((message, digest, actor, text, role))
        items = [Item(0, actor, text, message.correlation) for message, _, actor, text, _ in good]
        if self._kept and good:
            items = self._kept.take(
                [
                    (message.packet, digest, actor, text, message.correlation)
                    for message, digest, actor, text, _ in good
                ]
            )
            if items is None:
                self._come.extendleft(reversed([one[0] for one in good]))
                self._again_ms = self._channel.now_ms() + AGAIN_MS
                good, items = [], []
        for message in done + [one[0] for one in good]:
            if message.qos and message.connection == self._connection and self._is_up:
                self._client.ack(message.packet, message.qos)
        for item, one in zip(items, good):
            self._channel.queue_message(one[-1], item.actor, item.text, item)

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


Source = Mqtt  # the class that channel.py loads for this kind of channel

"""One connection to an MQTT 3.1.1 broker, as a swarm's engine uses it: in a clean session.

It lives in the thread that calls ``run``.  Other threads give it work with ``call``.  The package
paho-mqtt is imported in that thread alone, so the agent's loop does not wait for it.

What is retained has QoS 1.  All else has QoS 0: the log itself says what has come
(``mqtt_log.py``), and the acknowledgements of each hop would wake every process once more for each
entry (docs/adr/0211-no-hop-of-a-log-is-acknowledged.md).
"""

import os
import select
import socket
import threading
import time
from collections import deque
from typing import Any

from clawlite.linux.swarm_engines.engine import TOLD_S, Refused

KEEPALIVE_S = 15  # a cable that is pulled is noticed after one and a half of it
TICK_S = 1.0  # between calls of ``ticked``
MOST_READ = 200  # packets, before what has come is looked at
LAST_S = 1.0  # for the last words of a connection


class Owner:
    """What a ``Line`` calls, in its thread."""

    def subscribed(self):
        """The broker has taken the subscriptions."""

    def heard(self, topic: str, data: bytes, is_retained: bool):
        """A message has come."""

    def read(self):
        """What had come is heard."""

    def ticked(self):
        """Some time has passed, ``TICK_S`` at most."""


class Line:
    """A connection that may be made again and again, with one client id.

    place   (secure, host, port, user or "", password)
    client  its id, by which the broker ends an older connection of the same process
    topics  what is subscribed
    will    (topic, data): retained, and published by the broker when this connection dies; the
            owner may set another one before ``run``; None: none
    """

    def __init__(self, place: tuple, client: str, topics: list, will, owner: Owner):
        self._place, self._id, self._topics, self.will = place, client, topics, will
        self._owner, self._calls = owner, deque()
        self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._lock = threading.Lock()  # of _fd
        self._left = threading.Event()
        self._client: Any = None
        self._wrong: Exception | None = None
        self._is_in = False

    def call(self, function, *values):
        """Call *function* in the line's thread; never waits.  Dropped without a connection."""
        self._calls.append((function, values))
        self._wake()

    def publish(self, topic: str, data: bytes, is_retained: bool = False):
        """Publish; in the line's thread."""
        self._client.publish(topic, data, int(is_retained), is_retained)

    def close(self):
        """Let ``run`` end."""
        self._left.set()
        self._wake()

    def free(self):
        """Give back the descriptor, when ``run`` has ended."""
        with self._lock:
            fd, self._fd = self._fd, -1
            if fd >= 0:
                os.close(fd)

    def _wake(self):
        with self._lock:
            if self._fd >= 0:
                os.eventfd_write(self._fd, 1)

    # -- in the line's thread

    def run(self):
        """Connect and serve until ``close``, then publish the will.  Raises ``Refused``, or another
        exception when the connection ended.
        """
        self._calls.clear()
        self._is_in, self._wrong = False, None
        secure, host, port, user, password = self._place
        self._client = client = self._made(secure, user, password)
        client.connect(host, port, KEEPALIVE_S)
        link = client.socket()
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self._serve(client, link)
            if self._is_in and self.will:
                topic, data = self.will
                client.publish(topic, data, 1, True)
            client.disconnect()
            until = time.monotonic() + LAST_S
            while client.socket() and client.want_write() and time.monotonic() < until:
                select.select([], [link], [], LAST_S)
                client.loop_write()
        finally:
            self._client = None
            link.close()

    def _made(self, secure: bool, user: str, password: str):
        from paho.mqtt import client as paho

        made = paho.Client(paho.CallbackAPIVersion.VERSION2, self._id, protocol=paho.MQTTv311)
        made.connect_timeout = TOLD_S
        if user or password:
            made.username_pw_set(user, password)
        if secure:
            from clawlite.linux.net.tls import context

            made.tls_set_context(context())
        if self.will:
            topic, data = self.will
            made.will_set(topic, data, 1, True)
        made.on_connect, made.on_subscribe = self._connected, self._subscribed
        made.on_message = self._message
        return made

    def _serve(self, client, link):
        until, tick = time.monotonic() + TOLD_S, time.monotonic() + TICK_S
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        while not self._left.is_set():
            poll.register(link, select.POLLIN | (select.POLLOUT if client.want_write() else 0))
            pending = getattr(link, "pending", int)()
            wait_s = 0 if pending else max(0, tick - time.monotonic())
            found = dict(poll.poll(wait_s * 1000))
            if pending or found.get(link.fileno(), 0) & ~select.POLLOUT:
                self._take(client, link)
            if found.get(link.fileno(), 0) & select.POLLOUT:
                client.loop_write()
            if self._fd in found:
                os.eventfd_read(self._fd)
            while self._is_in and self._calls:
                function, values = self._calls.popleft()
                function(*values)
            now = time.monotonic()
            if now >= tick:
                tick = now + TICK_S
                client.loop_misc()
                if self._is_in:
                    self._owner.ticked()
            if self._wrong:
                raise self._wrong
            if client.socket() is None or not self._is_in and now >= until:
                raise ConnectionError(
                    "it does not answer" if client.socket() else "the connection ended"
                )

    def _take(self, client, link):
        for _ in range(MOST_READ):
            client.loop_read()
            if client.socket() is None or self._wrong:
                return
            if not getattr(link, "pending", int)() and not select.select([link], [], [], 0)[0]:
                break
        # else the broker's next message may wait for an acknowledgement that TCP delays
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        if self._is_in:
            self._owner.read()

    def _connected(self, client, data, flags, reason, properties):
        if not reason.is_failure:
            client.subscribe([(topic, 1) for topic in self._topics])
            return
        said = str(reason)
        if "authorized" in said.lower() or "password" in said.lower():
            *_, user, _ = self._place
            login = "the login %s" % user if user else "the login"
            names = "operator_credential" if user == "operator" else "user and credential"
            self._wrong = Refused("it refuses %s" % login, "look at %s of [swarm]" % names)
        else:
            self._wrong = ConnectionError(said)

    def _subscribed(self, client, data, mid, reasons, properties):
        for topic, reason in zip(self._topics, reasons, strict=True):
            if reason.is_failure:
                self._wrong = may_not(self._place, "read " + topic)
                return
        self._is_in = True
        self._owner.subscribed()

    def _message(self, client, data, message):
        try:
            topic = message.topic
        except UnicodeDecodeError:
            return
        self._owner.heard(topic, message.payload, message.retain)


def may_not(place: tuple, what: str, needs: str = "") -> Refused:
    """Return what is raised when the ACL of the broker forbids *what*.

    needs  the login that a person's command needs for it, if it is one
    """
    *_, user, _ = place
    login = "the login %s" % user if user else "a client without a login"
    hint = "clawlite swarm acl mqtt, emqx or nats-mqtt prints what a login needs"
    if needs not in ("", user):
        hint = (
            "a person's commands need the login %s: name the secret that is its password as "
            "operator_credential of [swarm], and build again" % needs
        )
    return Refused("%s may not do this: %s" % (login, what), hint, True)

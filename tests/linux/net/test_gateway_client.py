"""What a device sends to its gateway while its line is full, in the thread that has the connection.

The other end of the connection is the test's own, which reads when it wants to, so that the thread
waits for room in a send while calls begin and end.
"""

import json
import os
import socket
import threading
import time
from contextlib import contextmanager

import pytest
from agents import DEADLINE_S, eventually

from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.net import gateway_client
from clawlite.linux.net.connections import Connection
from clawlite.linux.net.gateway_client import _AT_ONCE, _MOST_GIVEN_UP, _SILENT_S, GatewayCalls
from clawlite.linux.net.stream import Cancelled, Stream, TimedOut

LATE_MS = -60000  # the time of a call was over before it began
LATER_MS = 10**9
BIG = {"text": "y" * 300000}  # more than a socket takes at once


class Image:
    """As much of an image as a call needs that is not authenticated."""

    def section(self, number: int):
        return [["127.0.0.1", 9, False], []]


class Seam:
    asks = watches = staticmethod(lambda task: False)
    tell = staticmethod(lambda *about: None)


class Line:
    """The calls of a device, whose connection ends here.  ``seen`` is what has come."""

    def __init__(self, wake: int, stream_class=Stream):
        now_ms = lambda: int(time.monotonic() * 1000)
        codecs, question = (loads, dumps), lambda *about: about
        self.calls = GatewayCalls(Image(), wake, now_ms, lambda: "secret", codecs, Seam, question)
        self.connection = self.calls._connection = Connection()
        self.connection.reader, self.connection.writer = os.pipe()
        self._ours, theirs = socket.socketpair()
        self._ours.setblocking(False)
        theirs.setblocking(False)
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        self.stream = stream_class(self.connection, self.calls._lock, 0)
        self.stream.sock, self.stream.due = theirs, None
        self.calls._is_greeted = True
        self._thread = threading.Thread(target=self._work)
        self._data = b""

    def begin(self):
        self._thread.start()

    def _work(self):
        try:
            while self.calls._goes_on(self.stream):
                self.stream.receive_if_any(100)
        except (Cancelled, TimedOut):
            pass

    def has_ended(self) -> bool:
        return not self._thread.is_alive()

    def records(self) -> list:
        """Return what has come so far: [(method, name of the tool or id), ...], but pieces."""
        try:
            self._data += self._ours.recv(1 << 20)
        except BlockingIOError:
            pass
        found = [json.loads(line[1:]) for line in self._data.split(b"\n")[:-1]]
        return [
            (one["method"].rpartition(".")[2], one["params"].get("tool", one["params"].get("id")))
            for one in found
            if not one["method"].endswith(".message")
        ]

    def end(self):
        self.calls.close()
        self._thread.join(DEADLINE_S)
        self.stream.close()
        self._ours.close()
        for fd in (self.connection.reader, self.connection.writer):
            os.close(fd)


@pytest.fixture
def wake():
    """Both ends of the pipe that wakes the loop; it can be read without waiting."""
    ends = os.pipe()
    os.set_blocking(ends[0], False)
    yield ends
    for fd in ends:
        os.close(fd)


@contextmanager
def line(wake, stream_class=Stream):
    made = Line(wake[1], stream_class)
    try:
        yield made
    finally:
        made.end()


def is_under_way(line, task: int) -> bool:
    """Whether the thread has begun to send the call *task*."""
    return line.calls._calls[task].id in line.calls._sent


@contextmanager
def full_line(wake, *more):
    """A line on which the thread waits for room, in the middle of the call 1; *more* are the
    arguments of calls that wait behind it.
    """
    with line(wake) as device:
        device.calls.start(1, "big", BIG, LATER_MS)
        for arguments in more:
            device.calls.start(*arguments)
        device.begin()
        eventually(lambda: is_under_way(device, 1))
        yield device


def test_a_call_that_begins_while_another_is_sent_goes_up_next(wake):
    """The wait for room reads the nudge that was meant for the thread."""
    with full_line(wake) as device:
        device.calls.start(2, "small", {}, LATER_MS)
        eventually(lambda: ("tool", "small") in device.records())
        assert device.records() == [("tool", "big"), ("tool", "small")]


def test_a_call_that_was_refused_as_not_called_is_never_sent(wake):
    with full_line(wake, (2, "pump", {}, LATE_MS)) as device:
        ((task, (has_run, why)),) = device.calls.poll()
        assert (task, has_run) == (2, False) and "nothing was called" in why.message
        device.calls.start(3, "last", {}, LATER_MS)
        eventually(lambda: ("tool", "last") in device.records())
        assert device.records() == [("tool", "big"), ("tool", "last")]


def test_a_cancellation_that_is_never_acknowledged_ends_with_its_time(wake, monkeypatch):
    """As one does that is older: the connection ends, and so does its thread."""
    monkeypatch.setattr(gateway_client, "_CANCEL_MS", 50)
    with line(wake) as device:
        device.calls.start(1, "small", {}, LATER_MS)
        device.begin()
        eventually(lambda: ("tool", "small") in device.records())
        id = device.calls._calls[1].id
        device.calls.cancel(1)
        eventually(lambda: ("cancel", id) in device.records())
        eventually(device.has_ended)
        assert device.calls._cancels_until() is None and device.calls._given_up == {}


def test_a_call_that_is_cancelled_half_sent_is_not_begun(wake):
    """The gateway is told to forget the pieces that it has."""
    with full_line(wake) as device:
        id = device.calls._calls[1].id
        device.calls.cancel(1)
        eventually(lambda: ("cancel", id) in device.records())
        assert device.records() == [("cancel", id)]


class CancelsMore(Stream):
    """While the first cancellation is sent, the loop cancels all other calls."""

    calls = None

    def send(self, data: bytes):
        if b"gateway.cancel" in data:
            for task in range(2, _AT_ONCE + 1):
                self.calls.cancel(task)
        super().send(data)


def test_cancellations_go_before_the_calls_that_they_make_room_for(wake):
    with line(wake, CancelsMore) as device:
        device.stream.calls = device.calls
        for task in range(1, 2 * _AT_ONCE + 1):
            device.calls.start(task, "t%d" % task, {}, LATER_MS)
        device.begin()
        eventually(lambda: len(device.records()) == _AT_ONCE)
        device.calls.cancel(1)
        eventually(lambda: len(device.records()) == 3 * _AT_ONCE)
        under_way = most = 0
        for method, _ in device.records():
            under_way += 1 if method == "tool" else -1
            most = max(most, under_way)
        assert most == _AT_ONCE


def test_cancellations_that_were_not_told_in_time_go_with_the_next_connection(wake):
    with line(wake) as device:
        device.calls._given_up["old-1"] = [0, False]  # its time is long over
        assert not device.calls._has_work(device.connection)
        device.connection.reader, device.connection.writer = os.pipe()
        device.calls._connection = device.connection
        device.calls.start(1, "echo", {}, LATER_MS)
        device.begin()
        eventually(lambda: len(device.records()) == 2)
        assert device.records() == [("cancel", "old-1"), ("tool", "echo")]


def test_of_calls_that_were_given_up_the_newest_are_kept(wake):
    with line(wake) as device:
        device.begin()
        for number in range(_MOST_GIVEN_UP + 1):
            device.calls.start(number, "t", {}, LATER_MS)
            device.calls._calls[number].sent = True
        calls = list(device.calls._calls.values())
        device.calls._given_up = {}
        for call in calls:
            device.calls._give_up(call)
        assert list(device.calls._given_up) == [call.id for call in calls[1:]]


def test_the_loop_is_left_alone_once_the_agent_has_ended(wake):
    """Its pipe may be closed, and the number another file's."""
    with line(wake) as device:
        device.begin()
        device.calls.close()
        device.calls._nudge_loop()
        with pytest.raises(BlockingIOError):
            os.read(wake[0], 1)


def test_a_peer_that_is_silent_is_asked_whether_it_is_there():
    """tcp(7)."""
    connection = Connection()
    connection.reader, connection.writer = os.pipe()
    with socket.create_server(("127.0.0.1", 0)) as server:
        stream = Stream(connection, threading.Lock(), 60000)
        stream.connect(*server.getsockname())
        stream.watch(_SILENT_S)
        option = lambda name: stream.sock.getsockopt(socket.IPPROTO_TCP, getattr(socket, name))
        assert stream.sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert option("TCP_KEEPIDLE") == 20 and option("TCP_USER_TIMEOUT") == 20000
        assert option("TCP_KEEPINTVL") * option("TCP_KEEPCNT") <= 20
        stream.close()
    for fd in (connection.reader, connection.writer):
        os.close(fd)

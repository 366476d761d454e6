"""A real MQTT broker on loopback: mosquitto of this machine, or the one that ``make mosquitto``
put into build/.
"""

import socket
import subprocess
import threading
import time

import pytest
import unpacked
from free_ports import free_port

WAIT_S = 120


class Broker:
    """One broker, with its messages on disk: ``stop`` and ``start`` keep what waits.

    lines  of its configuration, beside the listener's
    """

    def __init__(self, folder, *lines: str, listener: str = ""):
        self._command, self._environment = unpacked.find("mosquitto", "mosquitto")
        if self._command is None:
            pytest.skip("no mosquitto: make mosquitto fetches it")
        self.port = free_port()
        folder.mkdir()
        self.log = folder / "log"
        self.log.touch()
        self._file = folder / "mosquitto.conf"
        self._file.write_text(
            "\n".join(
                [
                    f"listener {self.port} 127.0.0.1",
                    listener,
                    "persistence true",
                    f"persistence_location {folder}/",
                    "user root",
                    "max_queued_messages 0",
                    f"log_dest file {self.log}",
                    "log_type all",
                    *(lines or ["allow_anonymous true"]),
                ]
            )
            + "\n"
        )
        self._process = None
        self.start()

    def start(self):
        self._process = subprocess.Popen(
            [self._command, "-c", str(self._file)],
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + WAIT_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                assert self._process.poll() is None and time.monotonic() < end, self.log.read_text()

    def stop(self):
        """End it; it writes down what it has to keep."""
        if self._process:
            self._process.terminate()
            self._process.wait(WAIT_S)
            self._process = None


class Peer:
    """Another client: what it publishes is acknowledged, what it hears is in ``heard`` [(topic,
    text, correlation)].
    """

    def __init__(self, port: int, *topics: str, user: str = "", password: str = "", context=None):
        from paho.mqtt import client as paho
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        self.heard, self._properties = [], lambda: Properties(PacketTypes.PUBLISH)
        self._come, ready = threading.Condition(), threading.Event()
        self._client = client = paho.Client(paho.CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5)
        if user:
            client.username_pw_set(user, password)
        if context:
            client.tls_set_context(context)
        client.on_message = self._message
        client.on_connect = lambda *_: (
            client.subscribe([(topic, paho.SubscribeOptions(1)) for topic in topics])
            if topics
            else ready.set()
        )
        client.on_subscribe = lambda *_: ready.set()
        client.connect("127.0.0.1", port)
        client.loop_start()
        assert ready.wait(WAIT_S)

    def _message(self, client, data, message):
        with self._come:
            self.heard.append(
                (
                    message.topic,
                    message.payload.decode(),
                    getattr(message.properties, "CorrelationData", b""),
                )
            )
            self._come.notify_all()

    def publish(
        self, topic: str, payload, correlation: bytes = b"", qos: int = 1, retain: bool = False
    ):
        properties = self._properties()
        if correlation:
            properties.CorrelationData = correlation
        return self._client.publish(topic, payload, qos, retain, properties)

    def tell(self, topic: str, payload, *more, **named):
        """Publish, and wait until the broker has it."""
        self.publish(topic, payload, *more, **named).wait_for_publish(WAIT_S)

    def waits(self, count: int):
        """Wait until *count* messages have been heard."""
        with self._come:
            assert self._come.wait_for(lambda: len(self.heard) >= count, WAIT_S), self.heard

    def close(self):
        self._client.disconnect()
        self._client.loop_stop()

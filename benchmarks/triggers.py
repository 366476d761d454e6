"""Triggers of one agent, in its own shell: ``python benchmarks/triggers.py IMAGE cron|queue ROUNDS
[PORT]``.

    cron    ten schedules of every minute; a round is a clock that goes ahead by 100 minutes: 1,000
            runs, all made up for
    queue   a round is 1,000 messages of 300 bytes that another process publishes to the broker at
            PORT (``publisher``)

Prints one JSON line: [ns of each trigger, one number a round].  overlap_policy is "queue", and what
is lost ends it with an error.  A turn is a rule's answer; what the shell does beside it, the log
and the messages on disk and the replies among it, is in the time."""

import json
import os
import subprocess
import sys
import time

COUNT = 1000
WAIT_S = 60
FILLER = "x" * 290
MINUTES_MS = 100 * 60000


class Run:
    """One agent, whose turns are counted and whose clock can be moved."""

    def __init__(self, image: str):
        from clawlite.linux.files.files import open_image
        from clawlite.linux.io import signals
        from clawlite.linux.runtime.optional_parts import prepare
        from clawlite.linux.runtime.shell import Shell

        os.dup2(os.pipe()[0], 0)  # an operator who says nothing, and does not go
        self.shell = Shell(
            open_image(image, prepare), os.path.dirname(image), True, signals.catch()
        )
        self.wake, self.ended, self.ahead_ms, self.connected = signals.waker(), 0, 0, False
        self.shell.start()
        for channel in self.shell.channels.all:
            self._watch(channel)
        self.step()

    def _watch(self, channel):
        # The clock stands but for ``ahead_ms``: on a busy machine a minute could pass in a round.
        now_ms, ended, log = channel.wall_ms(), channel._reply_end, channel.log

        def count(*more):
            ended(*more)
            self.ended += 1

        def told(what: str, **more):
            log(what, **more)
            self.connected = self.connected or what == "connected"
            if what not in ("turn", "connected", "missed"):
                sys.exit("channel.%s: %s" % (what, more))

        channel.wall_ms, channel._reply_end, channel.log = (
            lambda: now_ms + self.ahead_ms,
            count,
            told,
        )

    def step(self):
        os.write(self.wake, b"\0")  # whatever waits is looked at now
        self.shell.step()

    def until(self, holds):
        due = time.monotonic() + WAIT_S
        while not holds():
            if time.monotonic() > due:
                sys.exit("%d turns have ended after %d s" % (self.ended, WAIT_S))
            self.shell.step()

    def round(self, begin) -> float:
        """Return the ns of each of the triggers that *begin()* sets off."""
        wanted, began = self.ended + COUNT, time.perf_counter_ns()
        begin()
        self.until(lambda: self.ended >= wanted)
        took = (time.perf_counter_ns() - began) / COUNT
        self.step()
        if self.ended != wanted:
            sys.exit("%d turns came of %d triggers" % (self.ended - wanted + COUNT, COUNT))
        return took


def cron(image: str, rounds: int) -> list:
    run = Run(image)

    def ahead():
        run.ahead_ms += MINUTES_MS
        os.write(run.wake, b"\0")

    found = [run.round(ahead) for _ in range(rounds + 1)]
    run.shell.leave()
    return found[1:]


def queue(image: str, rounds: int, port: str) -> list:
    run = Run(image)
    run.until(lambda: run.connected)
    other = subprocess.Popen(
        [sys.executable, __file__, "publisher", port],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    )
    other.stdout.readline()

    def publish():
        other.stdin.write(b"\n")

    found = [run.round(publish) for _ in range(rounds + 1)]
    other.stdin.close()
    other.wait()
    other.stdout.close()
    run.shell.leave()
    return found[1:]


def publisher(port: str) -> None:
    """Publish ``COUNT`` messages for each line of stdin."""
    from paho.mqtt import client as paho

    client = paho.Client(paho.CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5)
    client.max_inflight_messages_set(COUNT)
    client.connect("127.0.0.1", int(port))
    client.loop_start()
    print("ready", flush=True)
    for number, _ in enumerate(sys.stdin):
        for one in range(COUNT):
            last = client.publish("t/jobs", "echo %d %d %s" % (number, one, FILLER), 1)
        last.wait_for_publish(WAIT_S)
    client.disconnect()
    client.loop_stop()


if __name__ == "__main__":
    if sys.argv[1] == "publisher":
        publisher(sys.argv[2])
    else:
        out = os.dup(1)  # an operator's agent has stdout to itself
        image, kind, rounds = sys.argv[1:4]
        found = (
            cron(image, int(rounds)) if kind == "cron" else queue(image, int(rounds), sys.argv[4])
        )
        os.write(out, json.dumps(found).encode())

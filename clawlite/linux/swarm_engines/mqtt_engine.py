"""A swarm's log over an MQTT 3.1.1 broker: mosquitto, EMQX, or the MQTT listener of nats-server.
One member keeps it (``mqtt_log.py``); the broker carries it and says who speaks.

    claw/v1/NAME/log/IDENTITY           an entry for the log; the last level is who speaks, so an
                                        ACL of the broker can prove it
    claw/v1/NAME/out                    the log, from its keeper
    claw/v1/NAME/ask/IDENTITY/PROCESS   what came after a position?
    claw/v1/NAME/say/IDENTITY/PROCESS   the answer, from the keeper
    claw/v1/NAME/keeper                 retained, and its will: which log there is, and whether its
                                        keeper is there
    claw/v1/NAME/here/IDENTITY/PROCESS  retained, and its will: that process is connected
    claw/v1/NAME/ping/PROCESS           whether it still is
    claw/v1/NAME/estop                  retained, from the keeper: whether a person has stopped the
                                        swarm; for boards, which do not read the log

1. Nothing depends on what the broker keeps: an entry that has not come back is sent again.
2. A presence that was retained counts once its process has spoken in this connection: a broker
   that is killed publishes no wills.
3. An entry of the log that did not come is noticed by its number, and asked for.
"""

import sqlite3
import time
from importlib.util import find_spec
from typing import Any

from clawlite.core.base.errors import ClawError
from clawlite.linux.files.files import tell_doctor
from clawlite.linux.io.jsontext import loads
from clawlite.linux.swarm_engines.engine import (
    DOWN,
    ENTRY,
    MQTT,
    NAMES,
    NOTE,
    OPERATOR,
    OTHER_LOG,
    SNAPSHOT,
    SYNCED,
    THERE,
    TOLD_S,
    Engine,
)
from clawlite.linux.swarm_engines.mqtt_line import Line, Owner, may_not
from clawlite.linux.swarm_engines.mqtt_log import Keeper, KeptLog, base, packed, unpacked

BROKER = "broker"  # file in the swarm's folder: the address
MOST_LATER = 1000  # messages of the log that wait until those before them are there
AWAY_S = 2.0  # a keeper that is back by then was never away
SENT_S = 2.0  # after which an entry that has not come back is asked for
_HERE = b"1"


class MQTTEngine(Engine, Owner):
    """See ``engine.Engine``."""

    name = NAMES[MQTT]

    def __init__(self, *given):
        if find_spec("paho") is None:
            raise ImportError("paho")
        super().__init__(*given)
        self._folder, self._keeps = self.home
        *_, user, _ = self.place
        self._who = self.identity or user or OPERATOR
        self._base = at = base(self.swarm)
        mine = "%s/%s" % (self._who, self.process)
        self._topic_here, self._topic_ask = at + "here/" + mine, at + "ask/" + mine
        topics = ["here/+/+", "keeper", "out", "say/" + mine, "ping/" + self.process]
        will = self._topic_here, b""
        self._line = Line(self.place, self.process, [at + one for one in topics], will, self)
        self._keeper: Any = None
        self._log = ""  # id of the log that this process follows
        self._ask = 0  # number of the last question
        self._begin()

    def _begin(self):
        """What a connection knows."""
        self._there = {}  # process -> whether it has spoken in this connection
        self._pinged = {}  # process -> when
        self._is_in = False  # what is retained has come
        self._since_in = time.monotonic()
        self._known = self._birth = ""  # id of the log, and birth of its keeper that is there
        self._absent_s = None  # when the keeper was missed, until the loop is told
        self._has_met = False  # the keeper has spoken in this connection
        self._sent = {}  # sender -> when its first entry was sent since one of its came back
        self._lost = {}  # sender -> answers in a row that had nothing of what it sent before
        self._asked_s = None  # when the last question was asked that is open
        self._later, self._state = [], b""
        self._is_up = False

    def append(self, sender: str, data: bytes):
        self._line.call(self._append, sender, data, self.generation)

    def ask_there(self, processes: list):
        self._line.call(self._look, processes)

    def save(self, position: str, data: bytes):
        if self._keeper:  # any other process has the same state, and no log to cut
            self._keeper.save(int(position), data)

    def stopped(self, stop):
        if self._keeper:
            self._keeper.tell_stop(stop)

    def close(self):
        super().close()
        if self._keeper:
            self._keeper.close()
            self._keeper = None
        if not self._thread.is_alive():
            self._line.free()

    def _end(self):
        self._line.close()

    # -- in the engine's thread

    def _run(self):
        self._begin()
        tell_doctor(self._folder, BROKER, self.address)  # it looks at the broker's settings
        self._line.run()

    def subscribed(self):
        self._since_in = time.monotonic()
        self._line.publish(self._topic_here, _HERE, True)

    def heard(self, topic: str, data: bytes, is_retained: bool):
        kind, *levels = topic[len(self._base) :].split("/")
        try:
            getattr(self, "_on_" + kind)(levels, data, is_retained)
        except (ValueError, TypeError, KeyError, ClawError) as e:
            self._put(NOTE, "%s: %s" % (topic[:200], str(e)[:200]))

    def ticked(self):
        now = time.monotonic()
        if not self._is_in and now - self._since_in > TOLD_S:
            raise may_not(self.place, "write %s, or read it" % self._topic_here)
        late = [sender for sender, at in self._sent.items() if now - at > SENT_S]
        if self._is_up and late:
            for sender in late:
                self._lost[sender] = self._lost.get(sender, 0) + 1
            self._is_up = False
            self._sent.clear()
            self._question()
        elif self._asked_s is not None and now - self._asked_s > TOLD_S:
            self._asked_s = None
            self._missing("does not answer")
            self._keep()
            self._question()
        elif self._is_in and not self._birth and not self._keep():
            if self._absent_s and now - self._absent_s > AWAY_S:
                self._absent_s = None
                self._missing("is not there")

    def _on_here(self, levels: list, data: bytes, is_retained: bool):
        _, process = levels
        if data:
            self._there[process] = self._there.get(process, False) or not is_retained
        else:
            self._there.pop(process, None)
        if process == self.process and data and not is_retained and not self._is_in:
            self._is_in = True
            self._settle()

    def _on_ping(self, levels: list, data: bytes, is_retained: bool):
        self._line.publish(self._topic_here, _HERE, True)

    def _on_keeper(self, levels: list, data: bytes, is_retained: bool):
        if is_retained and self._has_met:  # it may come after what is newer
            return
        self._has_met = not is_retained
        said = loads(data) if data else {"log": "", "there": False, "birth": ""}
        self._known, birth = str(said["log"]), str(said["birth"])
        if not said["there"]:
            if self._birth not in ("", birth) and data:  # an older connection of it has ended
                return
            birth = ""
        if birth != self._birth or not birth:
            self._birth, self._asked_s = birth, None
            if self._is_in:
                self._settle()

    def _settle(self):
        """Begin with a keeper that has come, or without the one that has gone."""
        if self._birth:
            self._is_up = False
            self._question()
        else:
            self._is_up, self._absent_s = False, time.monotonic()
            self._keep()

    def _missing(self, how: str):
        self._down(
            "its member %s, which keeps its log, %s" % (self._keeps, how),
            "start %s: clawlite swarm up, or run" % self._keeps,
        )

    def _down(self, why: str, hint: str):
        self._is_up = False
        self._put(DOWN, why, hint, False)

    def _keep(self) -> bool:
        """Become the keeper, where this process may, and nobody is; return whether it is, or the
        loop was told why not.
        """
        if self._keeper or self.identity != self._keeps:
            return self._keeper is not None
        try:
            log = KeptLog(self._folder)
        except BlockingIOError:  # another process of this machine does
            return False
        except (OSError, sqlite3.Error) as e:
            self._down("the log of the swarm cannot be kept: %s" % e, "look at " + self._folder)
            return True
        if self._known not in ("", log.id):
            log.close()
            self._down(
                "the log of the swarm lies on another machine, or is lost: it is not in %s"
                % self._folder,
                "start %s there, or, when it is lost, publish an empty retained message on %skeeper"
                % (self._keeps, self._base),
            )
            return True
        self._keeper = Keeper(
            self.place, self.swarm, self.process, log, lambda reason: self._put(NOTE, reason)
        )
        return True

    # -- the log

    def _append(self, sender: str, data: bytes, of: int):
        if self._is_up and of == self._connections:
            self._sent.setdefault(sender, time.monotonic())
            topic = self._base + "log/" + sender
            self._line.publish(topic, self._birth.encode() + b"\n" + data)

    def _question(self):
        self._ask += 1
        self._asked_s, self._state = time.monotonic(), b""
        asked = {"ask": self._ask, "since": int(self.since or 0)}
        self._line.publish(self._topic_ask, packed(asked))

    def _on_say(self, levels: list, data: bytes, is_retained: bool):
        head, body = unpacked(data)
        if head["ask"] != self._ask or self._asked_s is None:
            return
        self._asked_s = time.monotonic()
        if head["kind"] == "state":
            self._state += body
            if len(self._state) == head["size"]:
                self.since = str(int(head["position"]))
                self._put(SNAPSHOT, self.since, self._state)
                self._state = b""
        elif head["kind"] == "entries":
            self._entries(head, body)
        elif self._log not in ("", head["log"]):
            self._asked_s = None
            self._down(*OTHER_LOG)
        else:
            self._caught_up(head)

    def _caught_up(self, head: dict):
        self._log, later, self._later = head["log"], self._later, []
        complete = all([self._entries(*one) for one in later])
        if not complete or int(self.since or 0) < head["head"]:
            self._question()
            return
        self.since, self._asked_s = self.since or "0", None
        self._birth, self._has_met = str(head["birth"]), True
        lost = [sender for sender, times in self._lost.items() if times > 1]
        if lost:
            topic = self._base + "log/" + lost[0]
            raise may_not(self.place, "write %s" % topic, "" if self.identity else OPERATOR)
        if not self._is_up:
            self._is_up = True
            self._connections += 1
            self._put(SYNCED)
            self._up()

    def _on_out(self, levels: list, data: bytes, is_retained: bool):
        head, body = unpacked(data)
        if self._asked_s is not None:
            if len(self._later) < MOST_LATER:
                self._later.append((head, body))
        elif self._is_up and head["log"] == self._log and not self._entries(head, body):
            self._question()

    def _entries(self, head: dict, body: bytes) -> bool:
        """Hand over what is new; return False where something before it did not come."""
        position, at = int(head["first"]), 0
        next_one = int(self.since or 0) + 1
        for at_ms, sender, size in head["entries"]:
            if position == next_one:
                self.since, next_one = str(position), position + 1
                self._put(ENTRY, self.since, at_ms, sender, body[at : at + size])
                self._sent.pop(sender, None)
                self._lost.pop(sender, None)
            position, at = position + 1, at + size
        return position <= next_one

    # -- who is there

    def _look(self, processes: list):
        now, found = time.monotonic(), {}
        for process in processes:
            has_spoken = self._there.get(process)
            if has_spoken is not False:
                found[process] = bool(has_spoken)
                self._pinged.pop(process, None)
            elif now - self._pinged.setdefault(process, now) > TOLD_S:
                found[process] = False
            else:
                self._line.publish(self._base + "ping/" + process, b"")
        self._put(THERE, found)


ENGINE = MQTTEngine

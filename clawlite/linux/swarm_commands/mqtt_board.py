"""``clawlite swarm board``: one process that is the member of a swarm which is a board with Wi-Fi.
Both reach the MQTT broker with the board's login; ``BoardMember`` does what a member does, and the
board (firmware-host, mqttmember.py) plays its turns.

1. The board is there when it says so, and gone GRACE_MS after the broker has said that it is not.
   What was retained of it counts once it has answered.
2. Each task under way is given again when the board is there anew, and each AGAIN_MS: it is known
   by its id, so nothing runs twice.
3. A board with another boot was reset: to the others, its process was killed.
"""

import os
import threading
from collections import deque
from typing import Any

from clawlite.core.base.errors import ClawError
from clawlite.core.image.image import SWARM
from clawlite.core.swarm.swarm import FAILED, Swarm
from clawlite.linux.files.files import open_image
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.io.printing import print_line
from clawlite.linux.io.stdio import now_ms
from clawlite.linux.secrets.secrets import resolve, stores
from clawlite.linux.swarm.board_member import BoardMember
from clawlite.linux.swarm_commands.stepping import until_signal, wait
from clawlite.linux.swarm_engines.engine import (
    FIRST_PAUSE_S,
    LONGEST_PAUSE_S,
    MQTT,
    TOLD_S,
    Refused,
)
from clawlite.linux.swarm_engines.mqtt_line import Line, Owner
from clawlite.linux.swarm_engines.mqtt_log import base

GRACE_MS = 3000  # a board that is back by then was never gone
AGAIN_MS = 10000  # between repetitions of what has no answer
MAX_RECORD = 8192  # bytes that a board takes
_TOO_LONG = "longer than the %d bytes that a board takes" % MAX_RECORD
_METHOD = "claw.gateway."


class MQTTBoard(Owner):
    """The board of the image at *path*.  Raises ``ClawError``: its swarm is not over MQTT, or its
    secret is missing.
    """

    def __init__(self, path: str):
        image = open_image(path)
        record: Any = image.section(SWARM) if image.size_of(SWARM) else None
        swarm = Swarm(record) if record else None
        if swarm is None or not swarm.engine or swarm.engine[0] != MQTT:
            raise ClawError(
                "%s is in no swarm over MQTT" % image.agent.name,
                'write [swarm] transport = "mqtt" in its clawlite.toml: docs/swarm-boards.md',
            )
        _, secure, host, port, user, secret, *_ = swarm.engine
        password = resolve(secret, stores(image.agent.name)) if secret else ""
        if password and image.guard is not None:
            image.guard.learn(password)
        self._path, self.name = path, swarm.own.identity
        self._base = base(swarm.name)
        topics = [self._base + kind + self.name for kind in ("status/", "up/")]
        place = secure, host, port, user, password
        process = "%s-%s" % (self.name, os.urandom(4).hex())
        self._line = Line(place, process, topics, None, self)
        self._address = "mqtt://%s:%d" % (host, port)
        self._events, self._is_leaving = deque(), threading.Event()
        self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._thread = threading.Thread(target=self._run_line, daemon=True, name="board")
        self._member: Any = None
        self._boot = ""  # of the board that the member is
        self._tasks = {}  # id of a turn -> what the board was given
        self._gone_ms: Any = None  # when a board that is not there is gone
        self._again_ms: Any = None
        self._last_trouble = ""

    def run(self) -> int:
        """Serve until a signal; return 0 after SIGTERM, 130 after Ctrl-C."""
        print_line("%s: speaks for it at %s" % (self.name, self._address))
        self._thread.start()
        try:
            return until_signal(self._step)
        finally:
            self._is_leaving.set()
            self._line.close()
            self._thread.join(TOLD_S)
            if self._member:
                self._member.close()

    def _step(self):
        members = [self._member] if self._member else []
        wait([self._fd], members, (self._gone_ms, self._again_ms))
        try:
            os.eventfd_read(self._fd)
        except BlockingIOError:
            pass
        while self._events:
            kind, *given = self._events.popleft()
            getattr(self, kind)(*given)
        now = now_ms()
        if self._gone_ms is not None and now >= self._gone_ms:
            self._gone_ms = None
            self._end_member("%s is gone" % self.name)
        if self._again_ms is not None and now >= self._again_ms:
            self._give_again()
        if self._member:
            self._member.poll()

    # -- what the board says

    def _status(self, data: bytes, is_retained: bool):
        try:
            boot = loads(data).get("boot") if data else None
        except (ClawError, AttributeError):
            boot = None
        if not isinstance(boot, str):
            if self._member and self._gone_ms is None:
                self._gone_ms = now_ms() + GRACE_MS
            return
        if is_retained:  # it may have died with its broker
            self._send_to_board("hello", {})
            if self._member and self._gone_ms is None:
                self._gone_ms = now_ms() + GRACE_MS
            return
        self._gone_ms = None
        if self._member and boot != self._boot:
            self._end_member("%s was reset" % self.name)
        if self._member is None:
            self._boot = boot
            try:
                self._member = BoardMember(self._path, self._take_member_record)
            except ClawError as e:
                print_line("%s: %s%s" % (self.name, e.message, " - " + e.hint if e.hint else ""))
                return
            print_line("%s is there" % self.name)
        self._give_again()

    def _end_member(self, why: str):
        if self._member:
            print_line(why)
            self._member.gone()
            self._member = None
        self._tasks, self._again_ms = {}, None

    def _take_board_record(self, data: bytes):
        try:
            message = loads(data)
            method, params = message["method"], message["params"]
            turn = params.get("id")
            if not self._member or not isinstance(turn, str):
                return
            if method == _METHOD + "begins":
                self._member.begins(turn)
            elif method == _METHOD + "swarm":
                self._member.operator_asks(turn, params.get("method"), params.get("params"))
            elif method == _METHOD + "report":
                texts = str(params["status"]), str(params["text"])
                error = params.get("error")
                self._tasks.pop(turn, None)
                self._member.ended(turn, *texts, None if error is None else str(error))
        except (ClawError, KeyError, TypeError, AttributeError) as e:
            print_line("%s: a record that no board sends: %s" % (self.name, str(e)[:200]))

    # -- what the member says

    def _take_member_record(self, record: dict):
        if "event" in record:
            print_line(dumps(record["event"]))
        elif "task" in record:
            given = {key: record[key] for key in ("text", "caller", "ms")}
            self._tasks[record["task"]] = dict(given, id=record["task"])
            if not self._send_to_board("task", self._tasks[record["task"]]):
                self._events.append(("_too_long", record["task"]))
            self._again_ms = now_ms() + AGAIN_MS
        elif "swarm" in record:
            name = "result" if "result" in record else "error"
            answer = {"id": record["swarm"], "text": ""}
            if not self._send_to_board("swarm", {**answer, name: record[name]}):
                error = {"code": -32603, "message": "its answer is " + _TOO_LONG}
                self._send_to_board("swarm", {**answer, "error": error})
        elif "begun" in record:
            self._send_to_board("begun", {"id": record["begun"], "text": record["text"]})
        else:
            self._tasks.pop(record["withdrawn"], None)
            self._send_to_board("withdrawn", {"id": record["withdrawn"], "text": record["text"]})

    def _too_long(self, turn: str):
        if self._tasks.pop(turn, None) and self._member:
            self._member.ended(turn, FAILED, "", "it is " + _TOO_LONG)

    def _give_again(self):
        for given in self._tasks.values():
            self._send_to_board("task", given)
        self._again_ms = now_ms() + AGAIN_MS if self._tasks else None

    def _send_to_board(self, name: str, params: dict) -> bool:
        data = dumps({"jsonrpc": "2.0", "method": _METHOD + name, "params": params}).encode()
        if len(data) > MAX_RECORD:
            return False
        self._line.call(self._line.publish, self._base + "down/" + self.name, data)
        return True

    def _report_broker(self, why: str):
        if why != self._last_trouble:
            self._last_trouble = why
            print_line("%s: the broker %s: %s" % (self.name, self._address, why or "is reached"))

    # -- in the line's thread

    def _run_line(self):
        pause_s = FIRST_PAUSE_S
        while not self._is_leaving.is_set():
            try:
                self._line.run()
            except Refused as e:
                self._queue_event("_report_broker", "%s - %s" % (e, e.hint))
            except Exception as e:  # whatever the package raises: it is away
                self._queue_event("_report_broker", str(e) or type(e).__name__)
            self._is_leaving.wait(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _queue_event(self, *event):
        self._events.append(event)
        os.eventfd_write(self._fd, 1)

    def heard(self, topic: str, data: bytes, is_retained: bool):
        if topic.startswith(self._base + "status/"):
            self._queue_event("_status", data, is_retained)
        elif not is_retained:
            self._queue_event("_take_board_record", data)

    def subscribed(self):
        self._queue_event("_report_broker", "")

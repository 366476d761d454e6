"""An agent that was taken over, at the far end of the page's line: each text that it says is
markup, script, a link, marks of direction or a megabyte without a space.
"""

import json
import os
import socket
import threading

MARK = "PAYLOAD"
BAD = (
    MARK + " <img src=/x.png onerror=window.ran=1><script>window.ran=2</script>"
    "<svg onload=window.ran=3></svg><a href='javascript:window.ran=4'>x</a>"
    "[y](javascript:window.ran=5)<iframe src=//evil.example></iframe>"
    "<style>*{display:none}</style>\" onfocus=window.ran=6 autofocus='"
    "\u202e\u2066\u200b\ufeff\u200d\u2069 ${window.ran=7} {{7*7}} \x1b[2J &lt;b&gt;"
)
LONG = "x" * 1_000_000
AT = "2026-01-02T03:04:05Z"
GIVEN = {BAD: BAD, "long": LONG, "deep": {BAD: [BAD]}}
CALL = {
    "event": "tool.call",
    "tool": BAD,
    "time": AT,
    "timestamp": AT,
    "status": BAD,
    "action": BAD,
    "rule_id": BAD,
    "approval": BAD,
    "reason": BAD,
    "caller": BAD,
    "note": BAD,
    "arguments": GIVEN,
    "gates": [[BAD, BAD], ["policy", "stopped"]],
    "rules": [{"id": BAD, "action": BAD, "condition": BAD, "why": BAD, "decides": False}],
    "never": [BAD],
    "lines": [BAD],
    "why": ["* " + BAD],
}
QUESTION = {
    "number": 1,
    "asked_ms": 1,
    "state": "waiting",
    "tool": BAD,
    "arguments": GIVEN,
    "asker": BAD,
    "why": BAD,
    "allow": False,
    "timeout_ms": 60000,
    "left_ms": 60000,
}
READING = {"name": BAD, "value": 5, "field": BAD, "age_s": 1, "wrong": BAD}
RULE = {
    "name": BAD,
    "begins": BAD,
    "call": BAD,
    "if": [BAD],
    "is_on": True,
    "waits": False,
    "next": AT,
    "last": {"at": AT, "status": BAD},
    "why": BAD,
}
RECORD = {"n": 1, "time": AT, "prev": BAD, "hash": BAD, "more": BAD, BAD: LONG}
USAGE = {
    "agent": BAD,
    "version": BAD,
    "image": BAD,
    "state": BAD,
    "uptime_ms": 1,
    "memory_bytes": 1,
    "calls_last_minute": 1,
    "under_way": 1,
    "waiting": 1,
    "turns": 1,
    "last_turn": {"by": BAD, "status": BAD, "timestamp": AT},
    "tokens": {"read": BAD, "written": BAD},
    "cost_usd": BAD,
    "limits": [{"limit": BAD, "max": 10, "used": 5, "provider": BAD}],
}
MEMBER = {"identity": BAD, "role": BAD, "processes": 1, "status": BAD}
TASK = {"description": BAD + LONG, "state": BAD, "task_id": BAD, "sender": BAD, "tries": 2}
ANSWERS = {
    "claw.initialize": {"protocolVersion": "0.3.0", "capabilities": {}},
    "claw.approval.subscribe": {"approvals": [QUESTION]},
    "claw.approval.answer": {"acknowledged": False},
    "claw.log.subscribe": {"subscribed": True},
    "claw.status": {"state": BAD, "version": BAD, "uptime_ms": 1, "memory": {"free_bytes": 1}},
    "claw.usage.get": USAGE,
    # what each object of JavaScript has is no curve
    "claw.reading.list": {"readings": [READING, {**READING, "name": "constructor", "value": None}]},
    "claw.reading.history": {"samples": [[1, 2], [2, 3]], "from": 1, "to": 2},
    "claw.rule.list": {"rules": [RULE]},
    "claw.rule.why": {"text": BAD + "\n" + LONG},
    "claw.pin.list": {"pins": [{"name": BAD + "2", "kind": BAD, "value": 1, "of": 1}]},
    "claw.call.list": {"calls": [CALL]},
    "claw.call.preview": CALL,
    "claw.audit.list": {"records": [{**CALL, **RECORD}], "truncated": True},
    "claw.audit.verify": {
        "ok": False,
        "records": 1,
        "first": BAD,
        "last": BAD,
        "hash": BAD,
        "problems": [BAD + LONG],
    },
    "claw.memory.list": {"stores": [{"name": BAD, "type": BAD, "scope": BAD}]},
    "claw.memory.query": {
        "entries": [
            {"id": BAD, "key": BAD, "content": BAD + LONG, "timestamp": AT},
            {"id": BAD, "key": BAD, "content": {BAD: BAD}, "timestamp": BAD},
        ],
        "truncated": True,
    },
    "claw.swarm.list": {
        "swarm": BAD,
        "stopped": {"by": BAD, "time": AT},
        "members": [MEMBER],
        "differs": [BAD],
        "tasks": [{**TASK, "time": AT}],
    },
}


class HostileAgent:
    """``with HostileAgent(state folder)``: it listens at the control socket there.

    lacks  methods that it does not have
    """

    def __init__(self, folder, lacks=()):
        self._lacks = lacks
        os.makedirs(folder, exist_ok=True)
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listening.bind(os.path.join(folder, "control.sock"))
        self._listening.listen(8)
        self._lines, self._threads = [], [threading.Thread(target=self._accept)]

    def __enter__(self):
        self._threads[0].start()
        return self

    def __exit__(self, *_):
        for one in (self._listening, *self._lines):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in self._threads:
            thread.join()
        for one in (self._listening, *self._lines):
            one.close()

    def _accept(self):
        while True:
            try:
                line, _ = self._listening.accept()
            except OSError:
                return
            self._lines.append(line)
            self._threads.append(threading.Thread(target=self._serve, args=(line,)))
            self._threads[-1].start()

    def _serve(self, line):
        try:
            with line.makefile("rb") as file:
                for number, data in enumerate(file):
                    if number:  # the first says who is there
                        for said in self._answer(json.loads(data)):
                            line.sendall(json.dumps(said).encode() + b"\n")
        except OSError:
            return

    def _answer(self, asked: dict):
        method, params = asked.get("method"), asked.get("params") or {}
        if method == "claw.log.subscribe":
            for event in (CALL, {"event": BAD, "timestamp": AT, BAD: BAD, "long": LONG}):
                yield {"jsonrpc": "2.0", "method": "claw.log.event", "params": event}
        if method is None or "id" not in asked:
            return
        if method in self._lacks:
            error = {"code": -32601, "message": "unknown method: " + method}
            yield {"jsonrpc": "2.0", "id": asked["id"], "error": error}
            return
        if method.startswith("claw.task."):
            task = {"task_id": params["task_id"], "state": "completed"}
            yield {"jsonrpc": "2.0", "method": "claw.log.event", "params": CALL}
            value = {**task, "result": {"text": BAD + LONG}}
        elif method in ANSWERS:
            value = ANSWERS[method]
        else:
            error = {"code": -32603, "message": BAD, "data": {"hint": BAD}}
            yield {"jsonrpc": "2.0", "id": asked["id"], "error": error}
            return
        yield {"jsonrpc": "2.0", "id": asked["id"], "result": value}

"""A board that looks at beds and waters them, for tests of swarms: who is in the swarm, the board's
tools.py, and an operator at its line.
"""

import json
import os
import select
import tty

from agents import eventually
from swarm_team import BEDS, UUID

AGENTS = [
    {"identity_ref": "lead", "role": "leader"},
    {"identity_ref": "shed", "role": "worker"},
]
# where the bed is a folder on the board, each run leaves an x there, and waits for its file go
TOOLS = (
    BEDS
    + """\
def _wait(bed):
    where = "/" + bed
    if _is_there(where + "/waits"):
        with open(where + "/begun", "a") as file:
            file.write("x")
        while not _is_there(where + "/go"):
            yield 10


def _is_there(path):
    try:
        open(path).close()
        return True
    except OSError:
        return False
"""
)


class Operator:
    """An operator at the console's terminal *path*, of a board or of its gateway."""

    def __init__(self, path: str):
        self._fd, self._heard = os.open(path, os.O_RDWR | os.O_NOCTTY), b""
        tty.setraw(self._fd)
        params = {
            "protocolVersion": "0.3.0",
            "clientInfo": {"name": "test", "version": "1"},
            "manifest": "claw://local/identity/shed",
            "capabilities": {},
        }
        self.capabilities = self.call("claw.initialize", params, "i")["result"]["capabilities"]

    def send(self, method: str, params: dict, id=None):
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if id is not None:
            message["id"] = id
        os.write(self._fd, b"\x1e" + json.dumps(message).encode() + b"\n")

    def call(self, method: str, params: dict, id) -> dict:
        """Return the answer."""
        self.send(method, params, id)
        found: list = []

        def came() -> bool:
            if select.select([self._fd], [], [], 0)[0]:
                self._heard += os.read(self._fd, 65536)
            for line in self._heard.split(b"\n"):
                if b"\x1e{" in line and line.endswith((b"}", b"}\r")):
                    answer = json.loads(line[line.rindex(b"\x1e") + 1 :])
                    if answer.get("id") == id and "method" not in answer:
                        found.append(answer)
            return bool(found)

        eventually(came, 60)
        return found[0]

    def close(self):
        fd, self._fd = self._fd, -1
        os.close(fd)


def speaks_for_its_board(operator: Operator, others: dict, done, heard):
    """An operator of the board ``shed`` uses each method of 9.3.3.

    others  {identity of another member: its status}
    done    function(number of a task) -> its state, when it has ended
    heard   function() -> whether another member has heard the broadcast {"said": "rain"}
    """
    context = {"swarm": "team", "request_id": UUID % 99}
    assert operator.capabilities["swarm"] == {}
    peers = operator.call("claw.swarm.discover", {"swarm": "team"}, 1)["result"]["peers"]
    here = {"identity": "shed", "uri": "claw://local/identity/shed", "status": "ready"}
    assert here in peers
    assert {one["identity"]: one["status"] for one in peers} == dict(others, shed="ready")
    params = {"task_id": UUID % 41, "task": {"description": "look at 4"}, "context": context}
    for number in (2, 3):  # delivered twice, it runs once
        answer = operator.call("claw.swarm.delegate", params, number)
        assert answer["result"] == {"acknowledged": True}
    assert done(41) == "completed"
    wrong = dict(params, task={"description": "look at 5"})
    refused = operator.call("claw.swarm.delegate", wrong, 4)["error"]
    assert refused["code"] == -32602 and "is the id of another task" in refused["message"]
    report = {"task_id": UUID % 41, "status": "completed", "result": {"text": "seen"}}
    assert operator.call("claw.swarm.report", report, 5)["result"] == {"acknowledged": True}
    unknown = dict(report, task_id=UUID % 77)
    assert operator.call("claw.swarm.report", unknown, 6)["result"] == {"acknowledged": False}
    refused = operator.call("claw.swarm.broadcast", {}, 7)["error"]
    assert (refused["code"], refused["data"]) == (-32600, {"hint": "send it without an id"})
    operator.send("claw.swarm.broadcast", {"swarm": "team", "message": {"said": "rain"}})
    eventually(heard, 60)

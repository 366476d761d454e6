"""The program beside the agent that understands sentences: it has the examples, asks the engine,
and traces what that says to the sentence.  The engine is a process of its own below it.

    python -c "... mind.main()"         a socket is its stdin

Messages are those of confined.py, each a JSON object with "do": "setup" (comes once, first), and
then "propose", "answer", "embed".  Each gets one answer, {"error": text, "hint": text} when it
fails.
"""

import json
import os
import signal

from clawlite.core.base.errors import ClawError
from clawlite.linux.confinement import syscalls
from clawlite.linux.local import confined
from clawlite.linux.local.engine import Engine
from clawlite.linux.local.understanding import NOTHING, Understanding

_LONGEST = 8192  # bytes of a text that gets a vector


def main():
    """Serve on stdin until it ends."""
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    mind = _Mind({"timeout_ms": 1, "tools": [], "examples": []})
    while True:
        message = confined.receive(lambda count: os.read(0, count))
        if message is None:
            break
        try:
            asked = json.loads(message)
            if asked["do"] == "setup":
                mind = _Mind(asked)
                continue
            answer = mind.answer(asked)
        except ClawError as e:
            answer = {"error": e.message, "hint": e.hint}
        except Exception as e:  # a bug here is one clear error there
            answer = {"error": "the local model: %s: %s" % (type(e).__name__, e), "hint": ""}
        data = memoryview(confined.frame(json.dumps(answer).encode()))
        while data:
            data = data[os.write(0, data) :]
    mind.close()


class _Mind:
    """What one agent's process knows.

    setup  "tools", "examples" (understanding.py), "timeout_ms"
    """

    def __init__(self, setup: dict):
        timeout_ms = setup["timeout_ms"]
        self._known = Understanding(setup["tools"], setup["examples"], lambda: Engine(timeout_ms))

    def close(self):
        self._known.close()

    def answer(self, asked: dict) -> dict:
        what = asked["do"]
        try:
            if what == "propose":
                found = self._known.propose(asked["text"], asked.get("clause", False))
                said = found.to_json()
                if found.kind == NOTHING and not found.text:
                    said["text"] = self._known.abilities()
                return said
            if what == "answer":
                return self._known.answer(asked["calls"], asked["missing"], asked["text"]).to_json()
            if what == "embed":
                return {"vectors": [list(self._known.embed(t[:_LONGEST])) for t in asked["texts"]]}
            self._known.prepare()
            return {}
        except ClawError:
            self._known.close()  # the next sentence gets a new engine
            raise

"""Cases of kind "wire": the steps of an operator, and what can be said of the process
afterwards.
"""

import contextlib
import copy
import json
import time

from ckp import expect, manifests
from ckp.process import WAIT_S, Operator, World, filled, lines
from llm_server import Server

STEPS = (
    "send",
    "raw",
    "raw_hex",
    "gen",
    "sleep_ms",
    "await",
    "assert",
    "eof",
    "close_stdout",
    "restart",
)
REQUEST_ID = "c1a00000-0000-4000-8000-00000000fff0"


def run(case: dict, folder, made: dict = None, operator=Operator) -> None:
    """Play the case over a real process; raises AssertionError with what was expected and what
    came.

    operator  function(World) -> ``Operator``
    """
    made = made or manifests.resolved(case["setup"])
    with _provider(case["setup"], made):
        _play(Seen(case, World(case, folder, made), operator), case, folder)


@contextlib.contextmanager
def _provider(setup: dict, made: dict):
    """For ``provider: fake``, put a server behind the first provider: every answer spends as
    many tokens as it may.
    """
    if "provider" not in setup:
        yield
        return
    assert setup["provider"] == "fake"

    def step(request):
        tokens = request.body.get("max_tokens") or request.body.get("max_completion_tokens")
        return {
            "body": {
                "object": "chat.completion",
                "model": "test-model",
                "usage": {"prompt_tokens": 1, "completion_tokens": tokens},
                "choices": [
                    {
                        "index": 0,
                        "message": {"role": "assistant", "content": "ok"},
                        "finish_reason": "stop",
                    }
                ],
            }
        }

    with Server(step) as server:
        made["providers"][0]["spec"]["endpoint"] = server.endpoint
        yield


def _play(seen, case: dict, folder) -> None:
    try:
        seen.start()
        for step in filled(case["input"]["steps"], folder):
            seen.step(step)
        seen.settle()
        # that one answers what waits, so it comes last
        for one in sorted(case["expect"], key=lambda one: "pending" in one):
            expect.check(seen, filled(one, folder))
    finally:
        seen.operator.__exit__()


class Seen:
    """One run of a case: what ``expect`` may ask.

    operator  the process (the last one, after a restart)
    ended_at  monotonic time of the last step
    """

    def __init__(self, case: dict, world: World, make=Operator):
        self.case, self.world, self._make = case, world, make
        self.operator = None
        self.ended_at = 0
        self._fences = 0

    def start(self) -> Operator:
        (self.world.folder / "home").mkdir(exist_ok=True)
        before = self.operator
        self.operator = self._make(self.world)
        if before is not None:
            self.operator.came, self.operator.sent = before.came + self.operator.came, before.sent
        if self.case["setup"].get("session") != "none":
            self.operator.boot()
        return self.operator

    def step(self, step: dict) -> None:
        kind = [key for key in STEPS if key in step][0]
        getattr(self, "_" + kind)(step)
        self.ended_at = time.monotonic()

    def _send(self, step):
        self.operator.request(step["send"])

    def _raw(self, step):
        self.operator.send(step["raw"].encode() + b"\n")

    def _raw_hex(self, step):
        self.operator.send(bytes.fromhex(step["raw_hex"]) + b"\n")

    def _gen(self, step):
        if step["gen"] == "nested-params":
            depth = step["depth"]
            self.operator.send(
                b'{"jsonrpc":"2.0","id":2,"method":"claw.status","params":'
                + b'{"a":' * depth
                + b"1"
                + b"}" * depth
                + b"}\n"
            )
        else:
            assert step["gen"] == "echo-bytes"
            self.operator.request(
                {
                    "jsonrpc": "2.0",
                    "id": step["id"],
                    "method": "claw.tool.call",
                    "params": {
                        "name": "echo",
                        "arguments": {"text": "x" * step["bytes"]},
                        "context": {"request_id": REQUEST_ID, "identity": "test-agent"},
                    },
                }
            )

    def _sleep_ms(self, step):
        self.operator.watch(step["sleep_ms"] / 1000)

    def _await(self, step):
        self.operator.watch(WAIT_S, lambda: self.operator.has(step["await"]))

    def _assert(self, step):
        self.fence()
        expect.check(self, step["assert"])

    def _eof(self, step):
        self.operator.end()

    def _close_stdout(self, step):
        self.operator.stop_reading()
        self.operator.at_end = True

    def _restart(self, step):
        self.operator.end()
        self.operator.ended(WAIT_S)
        self.operator.__exit__()
        self.start()

    def fence(self):
        self._fences += 1
        self.operator.fence("fence-%d" % self._fences)

    def settle(self):
        """Wait for every answer that the case expects, and for all that was sent to have been
        looked at.
        """
        wanted = expect.awaited(self.case["expect"])
        self.operator.watch(
            WAIT_S, lambda: all(any(self.operator.has(id) for id in ids) for ids in wanted)
        )
        refused = self.refusal()
        assert refused is None or any("error_any" in entry for entry in self.case["expect"]), (
            "it was not served: %s" % refused
        )
        if self.operator.process.poll() is None:
            self.fence()

    # -- what expect asks

    def replies(self) -> list:
        return self.operator.replies()

    def ledger(self) -> list:
        return self.world.lines("ledger")

    def connects(self) -> list:
        return self.world.lines("connects")

    def records(self) -> list:
        return self.world.records()

    def telemetry(self) -> list:
        self.operator.end()  # what waits for a batch is told at the end
        assert self.operator.ended(WAIT_S) == 0
        return self.world.lines("t.jsonl")

    def telemetry_at_full_rate(self) -> list:
        """Return what the same case tells when everything is sampled: silence alone proves
        nothing.
        """
        case = copy.deepcopy(self.case)
        case["setup"]["patch"]["telemetry"]["sampling"]["rate"] = 1.0
        case["expect"] = [{"id": 2, "reply": True}, {"telemetry_some": True}]
        folder = self.world.folder / "full-rate"
        folder.mkdir(exist_ok=True)
        run(case, folder)
        return lines(folder / "t.jsonl")

    def refusal(self):
        """Return what it said when it refused to serve such a manifest, or None."""
        return (
            self.operator.errors()
            if self.operator.ended(WAIT_S if self.operator.at_end else 0) == 2
            else None
        )

    def pending(self) -> int:
        """Return how many of the calls wait for approval: denying those, and no others, is
        acknowledged.
        """
        ids = [
            step["send"]["params"]["context"]["request_id"]
            for step in self.case["input"]["steps"]
            if step.get("send", {}).get("method") == "claw.tool.call"
        ]
        for number, id in enumerate(ids):
            self.operator.request(
                {
                    "jsonrpc": "2.0",
                    "id": "deny-%d" % number,
                    "method": "claw.tool.deny",
                    "params": {"request_id": id},
                }
            )
        self.operator.watch(
            WAIT_S, lambda: all(self.operator.has("deny-%d" % number) for number in range(len(ids)))
        )
        return len(
            [
                1
                for _, message in self.replies()
                if str(message.get("id")).startswith("deny-")
                and message.get("result") == {"acknowledged": True}
            ]
        )

    def __str__(self):
        return (
            json.dumps([message for _, message in self.replies()])[:2000]
            + "\nstderr: "
            + self.operator.errors()[:2000]
        )

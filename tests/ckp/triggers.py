"""Cases of kind "trigger": a channel that starts work by itself, on the clock of
``clock.Clockwork``.

Each run asks the provider once, and the answer takes the case's ``job_ms``.  Runs that a minute
asked for and that never began were skipped.
"""

from ckp import expect, manifests
from ckp.clock import Clockwork
from ckp.process import World

from clawlite.core.base.errors import ProviderError

STEP_MS = 1000
# As in turns.py: the case's runs take their time there, and no quota of the fixture's ends them.
PROVIDER = {
    "metadata": {"name": "slow"},
    "spec": {
        "protocol": "openai-compatible",
        "endpoint": "http://localhost:1/v1",
        "model": "m",
        "auth": {"type": "none"},
        "retry": {"max_attempts": 1},
    },
}


def run(case: dict, folder) -> None:
    assert case["setup"]["clock"] == "virtual"
    given, made = case["input"], manifests.resolved(case["setup"])
    channel = dict(given["channel"])
    job_ms, kind = channel.pop("job_ms"), channel.pop("type")
    made["channels"] = [
        {
            "metadata": {"name": "trigger"},
            "spec": {
                "type": kind,
                "transport": "polling",
                "auth": {"secret_ref": "NONE"},
                "trigger": channel,
            },
        }
    ]
    made["providers"] = [PROVIDER]
    seen = Seen(Clockwork(World(case, folder, made)).open(), job_ms)
    seen.play(given["advance_s"])
    for entry in case["expect"]:
        expect.check(seen, entry)


class Seen:
    def __init__(self, work: Clockwork, job_ms: int):
        self.work, self.job_ms = work, job_ms
        self.started = self.most_at_once = self.minutes = 0
        self.begun = set()  # tasks whose answer has begun
        work.on_open = self._opened

    def _opened(self, task: int):
        self.started += 1
        self.most_at_once = max(self.most_at_once, len(self.work.opened))

    def play(self, seconds: int):
        self.minutes = seconds // 60
        for _ in range(seconds * 1000 // STEP_MS):
            self.work.move(STEP_MS)
            for task, at in list(self.work.opened.items()):
                over = self.work.now - at >= self.job_ms
                self.work.agent.receive(
                    task,
                    (False, ProviderError("the job is over")) if over else (True, self._next(task)),
                    self.work.now,
                )
                self.work.settle()

    def _next(self, task: int) -> bytes:
        """Return what the provider sends meanwhile: a provider that is silent for a minute is
        given up.
        """
        if task in self.begun:
            return b": still at it\n\n"
        self.begun.add(task)
        return b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"

    def skipped(self) -> int:
        return self.minutes - self.started

    def __str__(self):
        return "%d started, at most %d at once" % (self.started, self.most_at_once)

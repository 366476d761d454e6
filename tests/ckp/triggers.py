"""Cases of kind "trigger": a channel that starts work by itself, on the clock of ``clock.Clockwork``.

Each run asks the provider once, and the answer takes the case's ``job_ms``.  Runs that a minute asked for and that never
began were skipped.
"""
from ckp import expect, manifests
from ckp.clock import Clockwork
from ckp.process import World

from clawlite.core.errors import ProviderError

STEP_MS = 1000


def run(case: dict, folder) -> None:
    assert case["setup"]["clock"] == "virtual"
    given, made = case["input"], manifests.resolved(case["setup"])
    channel = dict(given["channel"])
    job_ms, kind = channel.pop("job_ms"), channel.pop("type")
    made["channels"] = [{"metadata": {"name": "trigger"}, "spec": {"type": kind, "transport": "polling", "auth": {"secret_ref": "NONE"},
                                                                   "trigger": channel}}]
    seen = Seen(Clockwork(World(case, folder, made)).open(), job_ms)
    seen.play(given["advance_s"])
    for entry in case["expect"]:
        expect.check(seen, entry)


class Seen:
    def __init__(self, work: Clockwork, job_ms: int):
        self.work, self.job_ms = work, job_ms
        self.started = self.most_at_once = self.minutes = 0
        work.on_open = self._opened

    def _opened(self, task: int):
        self.started += 1
        self.most_at_once = max(self.most_at_once, len(self.work.opened))

    def play(self, seconds: int):
        self.minutes = seconds // 60
        for _ in range(seconds * 1000 // STEP_MS):
            self.work.move(STEP_MS)
            for task, at in list(self.work.opened.items()):
                if self.work.now - at >= self.job_ms:
                    self.work.agent.received(task, (False, ProviderError("the job is over")), self.work.now)
                    self.work.settle()

    def skipped(self) -> int:
        return self.minutes - self.started

    def __str__(self):
        return "%d started, at most %d at once" % (self.started, self.most_at_once)

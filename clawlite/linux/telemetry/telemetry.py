"""Reports the work of an agent to exporters (CKP 0.2.0, 5.10): events by category, sampled and
redacted, and metrics.

1. It only observes: the shell shows it each effect, each outcome of a task and what each answer
   of a provider used, and it changes none.  Without telemetry, nothing here is loaded.
2. Events have only the fields that are listed here.  None of them is a prompt, a thought or the
   body of a provider's answer.
3. Exporters work in threads of their own (exporters.py).  An exporter that fails, or never answers,
   does not affect the agent.
"""

import time

from clawlite.core.base import effect as E
from clawlite.core.base.clock import iso8601
from clawlite.core.base.render import canonical
from clawlite.core.image.image import TELEMETRY
from clawlite.linux.io.stdio import Part
from clawlite.linux.telemetry.event import BOUNDS_MS

PLACEHOLDER = "[REDACTED]"
MOST_TEXT = 1024  # characters of arguments, or of a result
SNAPSHOT_MS = 10000  # metrics go out so often, while anything happens
_PROVIDER_CODES = (-32020, -32021)  # their messages may quote what a provider answered
_COUNT, _SUM_MS, _BUCKETS = range(3)  # positions in a histogram
_SWARM = ("swarm.delegate", "swarm.discover", "swarm.report")  # 5.10
_PREDICTION = (
    "world_model",
    "tool",
    "status",
    "code",
    "risk",
    "uncertainty",
    "cost",
    "duration_ms",
)
_FIELDS = {
    "tool.call": (
        "tool",
        "caller",
        "status",
        "code",
        "duration_ms",
        "action",
        "rule_id",
        "request_id",
        "again",
    ),
    "lifecycle.transition": ("from", "to", "duration_ms"),
}
# core/image/header.py
_SHAPE = ([(5, str, str, -(1 << 32), -(1 << 32))], [str], [str], float, bool, bool)


def telemetry_of(setup, now_ms):
    """Return the ``Telemetry`` that the image of *setup* declares.  Raises ``ImageError``."""
    from clawlite.core.image.header import check_shape

    rows = check_shape(setup.image.section(TELEMETRY), _SHAPE, "the telemetry")
    return Telemetry(rows, setup, now_ms)


class Telemetry(Part):
    """The telemetry of one agent.

    record     section TELEMETRY of the image
    setup      ``agent_setup.Setup``
    exporters  list of objects with ``put(event)``, ``stop()`` and ``wait(timeout_s)``; None: those
               that *record* names
    now_ms     function -> monotonic ms
    """

    def __init__(self, record: list, setup, now_ms, exporters=None):
        (
            targets,
            self._categories,
            self._metrics,
            self._rate,
            self._no_arguments,
            self._no_results,
        ) = record
        self._setup = setup
        self._now_ms = now_ms
        if exporters is None:
            from clawlite.linux.telemetry.exporters import exporter

            exporters = [exporter(target, setup.image.agent) for target in targets]
        self._exporters = exporters
        self._seen = 0  # events, for sampling
        # task -> monotonic ms at which its request to a provider began
        self._opened = {}
        # task -> (what it asks of the memory, name of the store, monotonic ms)
        self._asked = {}
        self._counters = {}  # (name, label) -> number
        self._histograms = {}  # name -> [count, sum, [count of each bucket]]
        self._changed = False
        self._told_ms = now_ms()
        self._looks = {
            E.LOG: self._on_log,
            E.SEND: self._on_send,
            E.OPEN: self._open,
            E.CLOSE: self._close,
        }
        if "memory_ops" in self._categories:
            self._looks[E.REMEMBER] = self._asks

    def observe(self, effect: tuple):
        """Look at an effect that is carried out next."""
        look = self._looks.get(effect[E.KIND])
        if look:
            look(effect)

    def close(self, timeout_s: float = 0.5):
        """Hand out what is left, and give the exporters at most *timeout_s* for it, all
        together.
        """
        if self._changed:
            self._snapshot()
        for exporter in self._exporters:
            exporter.stop()
        due = time.monotonic() + timeout_s
        for exporter in self._exporters:
            exporter.wait(max(0, due - time.monotonic()))

    # -- what is seen

    def _on_log(self, effect: tuple):
        event = effect[E.EVENT]
        name = event["event"]
        if name == "tool.call":
            if "duration_ms" in event:
                self._observe("tool", event["duration_ms"])
            self._tell("tool_calls", name, event)
        elif name == "lifecycle.transition":
            self._tell("lifecycle", name, event)
        elif name in _SWARM:
            self._tell("swarm_ops", name, event, ("swarm", "task_id", "status"))
        elif name == "world_model.prediction":
            self._tell("world_model_ops", name, event, _PREDICTION)
        elif name == "planning.fallback":
            self._tell("planning_ops", name, event, ("world_model", "tool", "fallback"))

    def _on_send(self, effect: tuple):
        sent = effect[E.MESSAGE]
        for message in sent if isinstance(sent, list) else (sent,):
            error = message.get("error")
            if error:
                code = error["code"]
                said = (
                    {"code": code}
                    if code in _PROVIDER_CODES
                    else {"code": code, "message": self._clean(error["message"])}
                )
                self._tell("errors", "error", said, ("code", "message"))

    def _asks(self, effect: tuple):
        _, task, verb, store, *_ = effect
        self._asked[task] = verb, store.name, self._now_ms()

    def hear_done(self, number: int, outcome: tuple):
        """Report the outcome of a task's request, if it was one to the memory."""
        asked = self._asked.pop(number, None)
        if asked:
            verb, store, began_ms = asked
            done, value = outcome
            self._tell(
                "memory_ops",
                "memory." + verb,
                {
                    "store": store,
                    "status": "ok" if done else "error",
                    "code": None if done else value.code,
                    "duration_ms": self._now_ms() - began_ms,
                },
                ("store", "status", "code", "duration_ms"),
            )

    def _open(self, effect: tuple):
        self._opened[effect[E.TASK]] = self._now_ms()

    def _close(self, effect: tuple):
        began = self._opened.pop(effect[E.TASK], None)
        if began is not None:
            self._observe("provider", self._now_ms() - began)

    def hear_spent(self, provider, read: int, written: int):
        """Count the tokens of an answer."""
        if "token_usage" in self._metrics:
            self._count(("input_tokens", provider.name), read)
            self._count(("output_tokens", provider.name), written)
        if "cost_usd" in self._metrics:
            self._count(
                ("cost_nano_usd", provider.name),
                read * provider.prices[0] + written * provider.prices[1],
            )

    # -- what is told

    def _tell(self, category: str, name: str, event: dict, fields: tuple = None):
        if category not in self._categories:
            return
        self._seen += 1
        if int(self._seen * self._rate) == int((self._seen - 1) * self._rate):
            return
        told = self._begin(category, name)
        for field in fields or _FIELDS[name]:
            if event.get(field) is not None:
                told[field] = event[field]
        if name == "tool.call":
            if isinstance(event.get("arguments"), dict):
                told["arguments"] = (
                    PLACEHOLDER
                    if self._no_arguments
                    else self._clean(canonical(event["arguments"]))
                )
            if "result" in event:
                told["result"] = PLACEHOLDER if self._no_results else self._clean(event["result"])
        self._put(told)
        if self._changed and self._now_ms() - self._told_ms >= SNAPSHOT_MS:
            self._snapshot()

    def _clean(self, text: str) -> str:
        """Return *text* without secrets, where they are looked for, and cut."""
        guard = self._setup.guard
        text = text if guard is None else guard.text(text)
        return text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + "..."

    def _begin(self, category: str, name: str) -> dict:
        now = time.time_ns()
        return {
            "timestamp": iso8601(now // 1000000000),
            "time_ns": now,
            "category": category,
            "event": name,
            "agent": self._setup.image.agent.name,
        }

    def _snapshot(self):
        self._changed, self._told_ms = False, self._now_ms()
        told = self._begin("metrics", "metrics")
        told["counters"] = [
            [name, label, value] for (name, label), value in sorted(self._counters.items())
        ]
        told["histograms"] = [
            [name, count, total, list(buckets)]
            for name, (count, total, buckets) in sorted(self._histograms.items())
        ]
        self._put(told)

    def _put(self, told: dict):
        for exporter in self._exporters:
            exporter.put(told)

    def _count(self, key: tuple, amount: int):
        self._counters[key] = self._counters.get(key, 0) + amount
        self._changed = True

    def _observe(self, name: str, ms: int):
        if "latency_histogram" in self._metrics:
            histogram = self._histograms.setdefault(name, [0, 0, [0] * (len(BOUNDS_MS) + 1)])
            histogram[_COUNT] += 1
            histogram[_SUM_MS] += ms
            histogram[_BUCKETS][sum(ms > bound for bound in BOUNDS_MS)] += 1
            self._changed = True

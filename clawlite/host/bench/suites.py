"""Suites of one process: the compiler here, the runtime in a Python of its own
(benchmarks/inprocess.py).
"""

import json
import os
import sys

from clawlite.host.bench import agent as bench_agent
from clawlite.host.bench.run import build, spawn

AUDIT = "  audit: { destination: file, log_inputs: true, log_outputs: true }\n"
MANY_TOOLS = 200
# case of the suite load -> unit, nanoseconds of it, note
_SCHEMA = {
    "compile the schema of web-fetch": ("us", 1e3, "on the host"),
    "check a web-fetch": ("ns", 1, "arguments with a url alone"),
}


def load(bench):
    """Yield rows: an image file to usable tables of tools and policy; a schema compiled, and
    arguments checked against it.
    """
    images = [bench.agent()]
    if not bench.is_here:  # a device has ready images alone
        images.append(build(bench_agent.write(bench.make("many"), tool_count=MANY_TOOLS)))
    for core, cases in run_inside(bench, "load", *images):
        for case, ns in cases.items():
            unit, each, note = _SCHEMA.get(case, ("ms", 1e6, "20 tools, 30 rules"))
            yield bench.row("load", case, unit, [n / each for n in ns], note=note, core=core)


def call(bench):
    """Yield rows: one claw.tool.call in process."""
    images = [bench.agent()]
    if not bench.is_here:  # a device has ready images alone
        folder = bench_agent.write(bench.make("audited"))
        with open(os.path.join(folder, "policy.yaml"), "a", encoding="utf-8") as file:
            file.write(AUDIT)
        images.append(build(folder))
    yield from _make_rows(bench, "call", images, "in process: ", "echo, a line of 342 bytes")


def turn(bench):
    """Yield rows: one turn in process."""
    yield from _make_rows(bench, "turn", [bench.agent()])


def netrules(bench):
    """Yield rows: whether a tool may fetch a URL, and which addresses of its name it may connect
    to.
    """
    note = "a list of 100 hosts, 8 addresses"
    yield from _make_rows(bench, "netrules", [bench.agent()], note=note)


def _make_rows(bench, suite: str, images: list, where: str = "", note: str = ""):
    for core, cases in run_inside(bench, suite, *images):
        for case, ns in cases.items():
            times = [n / 1e3 for n in ns]
            yield bench.row(suite, where + case, "us", times, note=note, core=core)


def run_inside(bench, suite: str, *images: str):
    """Yield (core, {case: [ns, ...]}): this package, and its Cython build where ``make accel``
    left one.
    """
    for path in filter(None, (bench.package, bench.extensions())):
        environment = dict(bench.environment(), PYTHONPATH=path)
        found = json.loads(
            spawn(
                [
                    sys.executable,
                    bench.script("inprocess.py"),
                    suite,
                    images[0],
                    str(bench.rounds),
                    *images[1:],
                ],
                environment,
            )
        )
        yield found["core"], found["cases"]

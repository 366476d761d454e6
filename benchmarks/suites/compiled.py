"""Suites of the compiler: builds, and what it makes of rules and of texts to look for, measured in
a Python of its own (benchmarks/inprocess.py).
"""

import json
import os
import statistics
import sys
import time
import types

from clawlite.core.base.errors import ClawError
from clawlite.core.image import image as layout
from clawlite.core.image.header import MAGIC
from clawlite.host.bench import agent as bench_agent
from clawlite.host.bench.run import spawn
from clawlite.host.bench.suites import run_inside

GUARDED = """claw: "0.3.0"
kind: Claw
metadata: { name: guarded, version: "1.0.0" }
spec:
  identity: { inline: { personality: x } }
  providers: [ { inline: { protocol: openai-compatible, endpoint: "http://127.0.0.1:9/v1", model: x, auth: { type: none } } } ]
  policies: [ { inline: { rules: [ { id: all, action: allow, scope: all } ], secret_scanning: { enabled: true }, prompt_injection: { detection: pattern } } } ]
"""  # noqa: E501
SIZES = (10, 100, 1000, 10000)  # rules
MANY_RULES = (10_000, 100_000)  # of a build; the last of a long run alone


def build(bench):
    """Yield rows: processor time of a manifest to an image, the interpreter and its imports not
    counted.
    """
    from clawlite.host.builder import build as build_command
    from clawlite.host.compiler import compiler
    from clawlite.host.manifest import manifest
    from clawlite.host.projects import new

    folders = [bench_agent.write(bench.make("built")), os.path.join(bench.folder, "greenhouse")]
    new.new(folders[1])
    samples, sizes = [[], []], [0, 0]
    for _ in range(bench.rounds + 1):
        for at, folder in enumerate(folders):
            begin = time.process_time_ns()
            data = compiler.build(manifest.load(folder)).data
            samples[at].append((time.process_time_ns() - begin) / 1e6)
            sizes[at] = len(data)
            if data[:3] != MAGIC:
                raise ClawError(f"the build of {folder} gave no image")
    for case, found, size in zip(("20 tools, 30 rules", "greenhouse template"), samples, sizes):
        yield bench.row("build", case, "ms", found[1:], note=f"image of {size} bytes")
    for count in MANY_RULES if bench.is_long else MANY_RULES[:1]:
        folder = bench_agent.write(bench.make(f"rules-{count}"), count=count)
        begin = time.process_time_ns()
        build_command.build(folder)
        spent = (time.process_time_ns() - begin) / 1e6
        note = "all that clawlite build does: boards that it fits, rules that say nothing"
        yield bench.row("build", f"20 tools, {count:,} rules", "ms", [spent], note=note)
        peak = _build_peak(bench, folder)
        if peak is not None:
            case, note = f"20 tools, {count:,} rules, memory", "VmHWM of a process of its own"
            yield bench.row("build", case, "MiB", [peak / 1024], note=note)


def _build_peak(bench, folder: str):
    """Return the KiB that a process of its own takes at most to build *folder*, or None: the kernel
    does not tell.
    """
    code = (
        "import sys\nfrom clawlite.host.builder import build\nbuild.build(sys.argv[1])\n"
        "print(open('/proc/self/status').read())"
    )
    if not os.path.exists("/proc/self/status"):
        return None
    said = spawn([sys.executable, "-c", code, folder], bench.environment())
    return int(said.partition("VmHWM:")[2].split()[0])


def decision(bench):
    """Yield rows: which rule decides, for known tools."""
    folder = bench.make("rules")
    images = []
    for size in SIZES:
        images.append(os.path.join(folder, "%d.cbor" % size))
        begin = time.process_time_ns()
        rule_image(images[-1], size)
        spent = (time.process_time_ns() - begin) / 1e6
    yield bench.row(
        "decision",
        f"fold {SIZES[-1]} rules for the requests' tools",
        "ms",
        [spent],
        note="on the host, once",
    )
    for core, cases in run_inside(bench, "decision", *images):
        yield from _over_empty(bench, core, cases)
        for case, ns in cases.items():
            yield bench.row(
                "decision",
                case,
                "ns",
                ns,
                core=core,
                note="32 requests, 8 of them denied by the last rule",
            )
        first, last = (cases["decide, %d rules" % size] for size in (SIZES[0], SIZES[-1]))
        ratios = [b / a for a, b in zip(first, last)]
        note = "median of the ratios of each round"
        value = statistics.median(ratios)
        yield bench.row(
            "decision", "10,000 rules over 10 rules", "ratio", ratios, value, note, core
        )
        pair = cases["by name, asked before"], cases["tool, decide, exact names"]
        ratios = [asked / known for asked, known in zip(*pair, strict=True)]
        value, case = statistics.median(ratios), "by name, over a known tool"
        yield bench.row("decision", case, "ratio", ratios, value, note, core)


def _over_empty(bench, core: str, cases: dict):
    """Yield rows: a decision over an empty call; the loop around both is left out."""
    empty, loop = cases.pop("empty call"), cases.pop("empty loop")
    for case in ("constant entry", "path condition"):
        ratios = [
            (decided - around) / (called - around)
            for decided, called, around in zip(cases[case], empty, loop, strict=True)
        ]
        call_ns = statistics.median(empty) - statistics.median(loop)
        value = (statistics.median(cases[case]) - statistics.median(loop)) / call_ns
        name, note = case + ", over an empty call", f"medians; an empty call took {call_ns:.0f} ns"
        yield bench.row("decision", name, "ratio", ratios, value, note, core)


def scan(bench):
    """Yield rows: the result of a tool, scanned for secrets and for orders."""
    folder = bench.make("guarded")
    with open(os.path.join(folder, "claw.yaml"), "w", encoding="utf-8") as file:
        file.write(GUARDED)
    from clawlite.host.builder.build import build_beside

    for core, cases in run_inside(bench, "scan", build_beside(folder)):
        for case, ns in cases.items():
            yield bench.row(
                "scan",
                case,
                "ms",
                [n / 1e6 for n in ns],
                None,
                "all kinds",
                core,
            )


def flat_rules(size: int) -> list:
    """Return *size* rules (``bench_agent.rules``) as ``folding.flatten`` gives them."""
    from msgspec import convert

    from clawlite.host.policy import folding
    from clawlite.host.policy.model import Rule

    rules = [convert(rule, Rule) for rule in bench_agent.rules(size)]
    policy = types.SimpleNamespace(name="bench", spec=types.SimpleNamespace(rules=rules))
    return folding.flatten([policy])


def rule_image(path: str, size: int) -> None:
    """Write an image of *size* rules (``bench_agent.rules``) and of the tools of 32 requests, and
    the requests beside it.

    The requests: 12 exact names, 3 each by glob, category, path and hint, spread over all blocks; 8
    that no rule names."""
    from clawlite.host.image import image_file
    from clawlite.host.policy import folding

    flat = flat_rules(size)
    records, index, wanted, known = b"", [], [], {}
    for name, category, rule in rule_requests(size // 10):
        paths = ["path"] if category and category.startswith("files") else []
        wanted.append(
            [name, {"path": "/workspace/notes/2026/may.txt"} if paths else {"text": "x"}, rule]
        )
        if name not in known:
            known[name] = True
            tool = types.SimpleNamespace(
                kind="Tool",
                name=name,
                labels={"category": category} if category else {},
                spec=types.SimpleNamespace(
                    annotations={"destructiveHint": True, "readOnlyHint": True}
                ),
            )
            record = image_file.encode(
                [
                    name,
                    layout.READ_ONLY,
                    category,
                    127,
                    None,
                    0,
                    65536,
                    [layout.BUILTIN, name],
                    paths,
                    [],
                    None,
                    [0, 0],
                    None,
                ]
            )
            index.append([name, len(records), len(record), folding.fold(flat, tool, paths)])
            records += record
    agent = [
        "bench",
        "1",
        "bench",
        2,
        2,
        30000,
        [],
        1,
        1,
        "",
        0,
        [0, 0],
        "",
        1,
        None,
        None,
        None,
        0,
    ]
    sections = {
        layout.AGENT: agent,
        layout.TOOLS: index,
        layout.RECORDS: records,
        layout.RULES: image_file.table([image_file.encode(rule.record()) for rule in flat]),
        layout.PROSE: b"",
    }
    with open(path, "wb") as file:
        file.write(image_file.write(sections, "bench", [], bytes(32), []))
    with open(path + ".requests", "w", encoding="utf-8") as file:
        json.dump(wanted, file)


def rule_requests(blocks: int):
    """Yield (tool, category, id of the rule that decides) of 32 requests over *blocks* blocks of
    ten rules.
    """
    for i in range(12):
        block = (blocks - 1) * i // 11
        number = i % 5  # the sixth of the last block is the rule that denies all
        yield (
            "echo" if block + number == 0 else f"exact-{block}-{number}",
            None,
            f"exact-{block}-{number}",
        )
    for i in range(3):
        block = (blocks - 1) * i // 2
        yield f"glob-{block}-{i}", None, f"glob-{block}"
        yield f"plain-tool-{i}", f"plain-{block}", f"category-{block}"
        yield f"files-tool-{i}", f"files-{block}", f"path-{block}"
        yield f"hint-tool-{i}", f"hint-{block}", f"hint-{block}"
    for i in range(8):
        yield f"nobody-{i}", None, "default-deny"

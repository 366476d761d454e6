"""Rules for every test run.

1. Leftovers are failures: no child process outlives its test (or the module whose fixture started
   it), no process that the run started and no thread outlives a module, and at the end this process
   listens on no socket.  A thread that waits for a socket which was closed meanwhile may wait for
   what has the socket's number next, and take its messages: a signal that stops and continues the
   process is enough.
2. New files in the checkout are told at the end; CLAWLITE_REQUIRE_ALL=1 makes them a failure.
3. Skips are counted with their reasons; CLAWLITE_REQUIRE_ALL=1 turns each into a failure (but for
   marks ``board`` and ``kernel``, and a test that is expected to fail and did).
4. CLAWLITE_REQUIRE_EXT=1: every core module that has a .pxd is the compiled one, or the run stops.
5. A run may be shared by several processes (pytest-xdist): each looks after its own tests.
6. CLAWLITE_RESULTS=FILE gets lines ``passed N``, ``failed N`` and ``skipped N REASON``; the
   Makefile adds them up. clauses.json beside it gets what the run showed of each clause of the
   protocol (clause_results.py), when it ran tests/ckp; FILE.failed gets the ids of the tests that
   failed, one a line, unless something else failed, too; FILE.seconds the seconds that each file's
   tests took, longest first. FILE.early tells each failure at once; pytest waits for the end.
7. Every test has a time limit that ends it with its name (time_limit.py), and what the machine
   lacks is told first (machine.py). A checkout in a closed home folder is open to the other users
   that root's tests run agents as (opened.py).
8. What the processes of the tests import is compiled once, before the first test, also where
   PYTHONDONTWRITEBYTECODE forbids each of them to keep what it compiled. So are the tests, whose
   assertions pytest rewrites: it takes longer than all else before the first test.
9. No garbage is looked for while the tests are collected, and what they are is never looked at
   again: it lives as long as the run.
10. The processes that fork commands and scripts (warm.py, warm_script.py) are no leftovers: they
   end with the run.
"""

import compileall
import ctypes
import gc
import importlib
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

import machine
import made_folders
import opened
import pytest
import time_limit
import warm
import warm_script
from listening import listening

ROOT = Path(__file__).resolve().parents[1]
REQUIRE_ALL = os.environ.get("CLAWLITE_REQUIRE_ALL") == "1"
GRACE_S = 30.0  # for a child that has been told to end and is just ending, on a busy machine
# What takes longest begins first, so that at the end no process is left alone with it.
LONGEST = (
    "redteam/test_redteam.py",
    "host/bench/test_bench.py",
    "device/test_power.py",
    "test_wheel.py",
    "linux/swarm/test_contract.py",
    "linux/files/test_disk_faults.py",
    "device/test_slot_files.py",
    "host/cli/test_pages.py",
    "test_run_rules.py",
    "test_limits_of_tests.py",
    "linux/mcp/test_offered.py",
    "linux/net/test_netrules_oracle.py",
    "device/test_out_of_memory.py",
    "device/test_words32.py",
    "host/schema/test_automata.py",
    "host/schema/test_schemas.py",
    "ckp/test_cases.py",
    "test_layers.py",
    "test_tidy.py",
)
_MARK = "CLAWLITE_TEST_RUN=%d.%d" % (os.getpid(), time.time_ns())
_before = {}
_seconds = {}  # file -> of its tests
_LIBC = ctypes.CDLL(None)
# boards of every test get the same, linked once
os.environ["NO_COLOR"] = "1"  # whatever the terminal of this run: who tests colours sets it anew
os.environ.setdefault("CLAWLITE_CACHE", str(ROOT / "build/cache"))


# -- processes and sockets


def _stat(pid: str) -> list:
    """Return state, parent, ... of a process (proc(5) "stat", after the name), or [] when it is
    gone.
    """
    try:
        return Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _children() -> set:
    """Return the pids of this process' own children; zombies count as ended."""
    try:
        found = {
            pid
            for task in os.listdir("/proc/self/task")
            for pid in Path("/proc/self/task", task, "children").read_text().split()
        }
    # a kernel without CONFIG_PROC_CHILDREN; no /proc at all: nothing to see
    except OSError:
        pids = (
            [p for p in os.listdir("/proc") if p.isdigit()] if os.path.isdir("/proc/self") else []
        )
        found = {pid for pid in pids if _stat(pid)[1:2] == [str(os.getpid())]}
    return {pid for pid in found if _stat(pid)[:1] not in ([], ["Z"])}


def _descendants() -> set:
    """Return the pids of all living processes that inherited this run's mark, whoever their
    parent is now.
    """
    found = set()
    for pid in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if pid.isdigit() and pid != str(os.getpid()):
            try:
                if _MARK.encode() in Path("/proc", pid, "environ").read_bytes().split(b"\0"):
                    found.add(pid)
            except OSError:  # gone, or another user's
                pass
    return found


def _left(look, before: set) -> set:
    return look() - before - warm.pids() - warm_script.pids()


def _fail_on_new(look, before: set, whose: str) -> None:
    left = _left(look, before)
    if left:
        gc.collect()
        deadline = time.monotonic() + GRACE_S
        while left and time.monotonic() < deadline:
            time.sleep(0.01)
            left = _left(look, before)
    names = []
    for pid in sorted(left, key=int):
        try:
            line = (
                Path("/proc", pid, "cmdline")
                .read_bytes()
                .replace(b"\0", b" ")
                .decode("utf-8", "replace")
                .strip()
            )
            if "multiprocessing.resource_tracker" in line:
                continue  # lives as long as this process, by design
            os.kill(int(pid), signal.SIGKILL)  # so that the next test does not meet it
            names.append("%s (%s)" % (pid, line[:200]))
        except OSError:
            pass
    if names:
        pytest.fail("%s left processes behind: %s" % (whose, ", ".join(names)), pytrace=False)


@pytest.fixture(scope="module", autouse=True)
def _module_leaves_no_process(request):
    before = _descendants()
    yield
    _fail_on_new(_descendants, before, request.node.name)


def _stands(thread, frames: dict) -> str:
    """Return the name of *thread* and the last lines that it has reached."""
    lines = traceback.format_stack(frames[thread.ident])[-2:] if thread.ident in frames else []
    return "%s\n%s" % (thread.name, "".join(lines))


@pytest.fixture(scope="module", autouse=True)
def _module_leaves_no_thread(request):
    before = set(threading.enumerate())
    yield
    until = time.monotonic() + GRACE_S
    left = set(threading.enumerate()) - before
    for thread in left:
        thread.join(max(0, until - time.monotonic()))
    frames = sys._current_frames()
    names = [_stands(thread, frames) for thread in left if thread.is_alive()]
    if names:
        whose = request.node.name
        pytest.fail("%s left threads behind: %s" % (whose, "; ".join(names)), pytrace=False)


@pytest.fixture(autouse=True)
def _test_leaves_no_process(_module_leaves_no_process):
    before = _children()  # after this module's fixtures started theirs
    yield
    _fail_on_new(_children, before, "this test")


def _checkout() -> set:
    """Return the lines of ``git status``, or an empty set where there is no git or no checkout."""
    try:
        done = subprocess.run(
            ["git", "status", "--porcelain", "--untracked-files=all"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
    except OSError:
        return set()
    return set(done.stdout.splitlines())


# -- the session


def pytest_configure(config):
    config.addinivalue_line(
        "markers",
        "limit(seconds): how long each phase of this test may take, instead of time_limit.LIMIT_S",
    )
    machine.hear_signals()
    time_limit.prepare()
    if not hasattr(config, "workerinput"):  # once, not by each worker
        lacks = machine.lacks()
        closed = "" if lacks else opened.open_for_others(opened.places())
        lacks += [closed] if closed else []
        if lacks:
            raise pytest.UsageError("this machine cannot run the tests: " + "; ".join(lacks))
        compileall.compile_dir(ROOT / "clawlite", quiet=2)
        for folder in (
            "tests",
            "tests/helpers",
            "tests/redteam",
        ):  # not the agents below tests/golden
            compileall.compile_dir(ROOT / folder, maxlevels=0, quiet=2)
    if os.environ.get("CLAWLITE_REQUIRE_EXT") == "1":
        for source in sorted((ROOT / "clawlite/core").glob("*/*.pxd")):
            module = importlib.import_module(
                "clawlite.core.%s.%s" % (source.parent.name, source.stem)
            )
            if module.__file__.endswith(".py"):
                raise pytest.UsageError(
                    "CLAWLITE_REQUIRE_EXT=1, but %s is not compiled" % module.__file__
                )


def pytest_report_header(config):
    return (
        ["clawlite seed: %s" % os.environ["CLAWLITE_SEED"]] if "CLAWLITE_SEED" in os.environ else []
    )


def pytest_sessionstart(session):
    name, _, value = _MARK.partition("=")
    os.environ[name] = value
    _before["checkout"], _before["listening"] = _checkout(), listening()
    _before["problems"], _before["of_workers"] = [], []


def pytest_sessionfinish(session, exitstatus):
    time_limit.limit_the_end()
    made_folders.clean()
    warm.end()
    warm_script.end()
    sockets = [s for s in listening() if s not in _before["listening"]]
    problems = ["still listening: " + s for s in sockets]
    new = sorted(_checkout() - _before["checkout"])
    if REQUIRE_ALL:  # else somebody may be editing while the tests run
        problems += ["changed in the checkout: " + line for line in new]
    # one of several processes that share a run's tests: the first one tells
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["problems"] = problems
        return
    problems += [problem for problem in _before["of_workers"] if problem not in problems]
    _before["problems"], _before["notes"] = problems, new
    if problems and exitstatus == 0:
        session.exitstatus = 1


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    _before["of_workers"] += (
        node.workeroutput["problems"]
        if hasattr(node, "workeroutput")
        else ["a process of the run ended: %s" % error]
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection():
    kept, sys.dont_write_bytecode = sys.dont_write_bytecode, False
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        sys.dont_write_bytecode = kept


def pytest_collection_modifyitems(items):
    order = {ROOT / "tests" / name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path, len(order)))


# -- time


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item):
    # an agent of the test before, in this process, hid it from its own user (PR_SET_DUMPABLE)
    _LIBC.prctl(4, 1, 0, 0, 0)
    with time_limit.limit(item.nodeid, "setup", time_limit.seconds_for(item)):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item):
    with time_limit.limit(item.nodeid, "call", time_limit.seconds_for(item)):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item):
    with time_limit.limit(item.nodeid, "teardown", time_limit.seconds_for(item)):
        return (yield)


# -- skips


def _refuse_skip(report, what: str) -> None:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    report.outcome = "failed"
    report.longrepr = "%s was skipped, and CLAWLITE_REQUIRE_ALL=1: %s" % (what, reason)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if (
        REQUIRE_ALL
        and report.skipped
        and not item.get_closest_marker("board")
        and not item.get_closest_marker("kernel")
        and not hasattr(report, "wasxfail")
    ):
        _refuse_skip(report, item.nodeid)


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector):
    report = (yield).get_result()
    if REQUIRE_ALL and report.skipped:
        _refuse_skip(report, collector.nodeid)


def pytest_runtest_logreport(report):
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    file = report.nodeid.partition("::")[0]
    _seconds[file] = _seconds.get(file, 0) + report.duration
    if report.failed and "CLAWLITE_RESULTS" in os.environ:
        with open(os.environ["CLAWLITE_RESULTS"] + ".early", "a") as early:
            early.write("%s\n%s\n\n" % (report.nodeid, report.longreprtext))


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter):
    stats = terminalreporter.stats
    for problem in _before["problems"]:
        terminalreporter.write_line("LEFT BEHIND " + problem, red=True)
    if not REQUIRE_ALL:
        for line in _before.get("notes", ()):
            terminalreporter.write_line("note: changed in the checkout meanwhile: " + line)
    if "CLAWLITE_RESULTS" not in os.environ:
        return
    lines = [
        "passed %d" % len(stats.get("passed", ())),
        "failed %d"
        % (sum(len(stats.get(k, ())) for k in ("failed", "error")) + len(_before["problems"])),
    ]
    reasons = {}
    for kind in ("skipped", "xfailed"):
        for report in stats.get(kind, ()):
            reason = (
                report.longrepr[2]
                if isinstance(report.longrepr, tuple)
                else getattr(report, "wasxfail", kind)
            )
            reasons[reason] = reasons.get(reason, 0) + 1
    lines += [
        "skipped %d %s" % (n, " ".join(reason.removeprefix("Skipped: ").split()))
        for reason, n in sorted(reasons.items())
    ]
    results = Path(os.environ["CLAWLITE_RESULTS"])
    results.write_text("\n".join(lines) + "\n")
    longest = sorted(_seconds.items(), key=lambda one: -one[1])
    results.with_name(results.name + ".seconds").write_text(
        "".join("%7.1f %s\n" % (seconds, file) for file, seconds in longest)
    )
    failed = [report for kind in ("failed", "error") for report in stats.get(kind, ())]
    are_tests = all("::" in getattr(report, "nodeid", "") for report in failed)
    ids = {report.nodeid for report in failed} if are_tests and not _before["problems"] else ()
    results.with_name(results.name + ".failed").write_text("".join(f"{i}\n" for i in sorted(ids)))
    outcomes = {
        report.nodeid: "failed" if kind == "error" else kind
        for kind in ("passed", "xfailed", "skipped", "failed", "error")
        for report in stats.get(kind, ())
        if hasattr(report, "nodeid")
    }
    if any(name.startswith("tests/ckp/") for name in outcomes):
        from clause_results import write

        write(results.with_name("clauses.json"), outcomes)

"""The real engine in its process (linux/local/engine.py, confined.py), and engines that fail."""

import mmap
import os
import shutil
import signal

import pytest
from local_model import EXAMPLES, FOLDER, TIMEOUT_MS, TOOLS, in_turn, needs_model

from clawlite.linux.local import confined, model_files
from clawlite.linux.local.engine import Engine
from clawlite.linux.local.model_files import LocalError
from clawlite.linux.local.understanding import ACT, ASK, NOTHING, REFUSE, RULE, Understanding


@pytest.fixture(autouse=True)
def _here(monkeypatch, tmp_path):
    monkeypatch.setenv("CLAWLITE_LOCAL", str(FOLDER))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def _make() -> Engine:
    """Return an engine all of whose threads have their turn before ordinary ones: they inherit it.
    One thread alone that had it would keep the one that it waits for from running.
    """
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    in_turn()
    try:
        return Engine(TIMEOUT_MS)
    finally:
        os.sched_setscheduler(0, *before)


SENTENCES = (
    ("water the plants for 7 seconds", ACT, [["water", {"seconds": 7}]]),
    ("run the pump for half a minute", ACT, [["water", {"seconds": 30}]]),
    ("how wet is the soil", ACT, [["read-soil", {}]]),
    ("water the plants", ASK, [["water", {}]]),
    ("should I open the coop?", ASK, [["open-coop", {}]]),
    ("water for 500 seconds", REFUSE, []),
    ("don't water the plants", REFUSE, []),
    ("water tomorrow for 5 seconds", RULE, []),
    ("tell me a joke", NOTHING, []),
    ("is the coop open?", NOTHING, []),
    ("x" * 201, NOTHING, []),
    ("x" * 1000000, NOTHING, []),
)


@needs_model
def test_the_real_model_and_the_code_around_it(tmp_path):
    known = Understanding(TOOLS, EXAMPLES, _make, str(tmp_path))
    try:
        found = [known.propose(text) for text, _, _ in SENTENCES]
        assert [(one.kind, one.calls) for one in found] == [row[1:] for row in SENTENCES]
        asked = found[3]
        assert asked.missing == "seconds" and asked.text.endswith("how many seconds?")
        done = known.answer(asked.calls, asked.missing, "a quarter of a minute")
        assert (done.kind, done.calls) == (ACT, [["water", {"seconds": 15}]])
        assert known.answer(asked.calls, asked.missing, "500").kind == REFUSE
        assert known.answer([["open-coop", {}]], "", "y").calls == [["open-coop", {}]]
        assert known.answer([["open-coop", {}]], "", "no").kind == REFUSE
        assert known.answer([["open-coop", {}]], "", "how wet is the soil").kind == NOTHING
    finally:
        known.close()


@needs_model
def test_the_engine_has_no_rights():
    one = _make()
    try:
        status = dict(
            line.split(":\t", 1) for line in open("/proc/%d/status" % one.pid).read().splitlines()
        )
        assert status["NoNewPrivs"].strip() == "1" and status["Seccomp"].strip() == "2"
        assert int(status["CapEff"], 16) == 0
        if os.geteuid() == 0:
            assert status["Uid"].split()[0] != "0"
        assert len(os.listdir("/proc/%d/fd" % one.pid)) == 4
        limits = open("/proc/%d/limits" % one.pid).read()
        most = int(limits.partition("Max address space")[2].split()[0])
        assert confined.MEMORY < most < 1 << 40
    finally:
        one.close()


@needs_model
def test_a_large_parent_leaves_the_engine_its_room():
    """The limit of addresses counts what the child inherits."""
    large = mmap.mmap(-1, 2 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    try:
        _make().close()
    finally:
        large.close()


@needs_model
def test_it_ends_with_the_process_that_started_it():
    ready, written = os.pipe()
    parent = os.fork()
    if parent == 0:
        try:
            one = _make()
            os.write(written, b"%d" % one.pid)
            signal.pause()
        finally:
            os._exit(1)
    os.close(written)
    pid = int(os.read(ready, 16))
    watched = os.pidfd_open(pid)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    import select

    assert select.select([watched], [], [], 60)[0]
    os.close(watched)
    os.close(ready)


@needs_model
def test_one_processor_is_refused_with_what_to_do():
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        with pytest.raises(LocalError, match="needs two processors") as caught:
            Engine()
        assert "taskset" in caught.value.hint
    finally:
        os.sched_setaffinity(0, allowed)


@needs_model
def test_cut_weights_are_never_loaded(tmp_path, monkeypatch):
    for name in (model_files.ENGINE, model_files.WEIGHTS):
        shutil.copy(FOLDER / name, tmp_path / name)
    with open(tmp_path / model_files.WEIGHTS, "r+b") as file:
        file.truncate(1000)
    monkeypatch.setenv("CLAWLITE_LOCAL", str(tmp_path))
    with pytest.raises(LocalError, match="not the file that is pinned.*1000 bytes"):
        Engine()


def test_without_its_files_it_says_how_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setenv("CLAWLITE_LOCAL", str(tmp_path))
    monkeypatch.setattr(model_files, "machine", lambda: "x86_64")
    with pytest.raises(LocalError, match="not on this machine") as caught:
        Engine()
    assert "clawlite local fetch" in caught.value.hint


def test_a_machine_without_an_engine_is_told_so(monkeypatch):
    monkeypatch.setattr(model_files, "machine", lambda: "armv7l")
    with pytest.raises(LocalError, match="no engine of the local model for linux armv7l"):
        Engine()


# -- engines that fail: a process in the place of confined.serve


def _asking(monkeypatch, tmp_path, serve) -> Engine:
    """Return an engine whose process runs *serve(line)*."""

    def stand_in(line, *_):
        serve(line)
        os._exit(0)

    monkeypatch.setattr(confined, "serve", stand_in)
    monkeypatch.setattr(model_files, "require_folder", lambda: str(tmp_path))
    monkeypatch.setattr(model_files, "read_pinned", lambda folder, name: b"x")
    return Engine(200)


def _ready(line):
    os.write(line, confined.frame(b"+"))
    confined.receive(lambda count: os.read(line, count))


def test_one_that_hangs_is_killed(monkeypatch, tmp_path):
    def hang(line):
        _ready(line)
        signal.pause()

    one = _asking(monkeypatch, tmp_path, hang)
    with pytest.raises(LocalError, match="did not answer within 0.2 s, and was killed"):
        one.complete("x")
    assert one.pid == 0
    with pytest.raises(LocalError, match="has ended"):
        one.complete("x")


@pytest.mark.parametrize(
    "answer, said",
    [
        (b"", "ended without an answer"),
        (confined.frame(b"?"), "ended without an answer"),
        (confined.frame(b"-no memory"), "local model: no memory"),
        (b"\xff\xff\xff\xff" + b"x" * 100000, "answered nonsense: a message of 4294967295 bytes"),
        (confined.frame(b"+[1]"), "answered nonsense"),
        (confined.frame(b'+{"function_calls": [{"name": 7, "arguments": {}}], "confidence": 1}'),
         "answered nonsense"),
        (confined.frame(b'+{"function_calls": "x", "confidence": "high"}'), "answered nonsense"),
    ],
)  # fmt: skip
def test_one_that_answers_nonsense_floods_or_dies_is_one_error(monkeypatch, tmp_path, answer, said):
    def reply(line):
        _ready(line)
        os.write(line, answer)

    one = _asking(monkeypatch, tmp_path, reply)
    one._timeout_ms = 60000
    with pytest.raises(LocalError, match=said):
        one.complete("x")
    assert one.pid == 0

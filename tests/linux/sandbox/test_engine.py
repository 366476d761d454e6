"""Jobs and their outcomes, whatever profile this machine has."""

import array
import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time

import pytest
from sandboxes import WAIT_S, Player, profile

from clawlite.core.base.effect import ASKS_PROVIDER, IS_OK
from clawlite.core.base.errors import ClawError, InvalidParams, InvalidRequest, ToolTimeout
from clawlite.linux.io.stdio import now_ms
from clawlite.linux.sandbox.engine import MAX_CALLS, MAX_QUEUE, Engine
from clawlite.linux.sandbox.jobs import Builtin, Command, Function


@contextlib.contextmanager
def _started():
    """An engine whose folder tools that are nobody may enter, in profile L, too."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        os.chmod(name, 0o711)
        engine = Engine(name + "/workspace", [name])
        try:
            yield engine
        finally:
            engine.close()


@pytest.fixture(scope="module")
def engine():
    with _started() as engine:
        engine.prepare()
        yield engine


@pytest.fixture
def player(engine):
    return Player(engine)


def _shell(text: str, **more) -> Command:
    return Command(["sh", "-c", text], **more)


def _function(body: str, generator=False, **arguments) -> Function:
    return Function("tools.py", body.encode(), "f", arguments, generator)


def test_a_command_gives_its_output_and_exit_code(player):
    good, value = player.run(profile(), _shell("echo out; echo err >&2; exit 3"))
    assert good and value == {
        "exit_code": 3,
        "output": "out\nerr\n",
        "truncated": False,
        "original_bytes": 8,
        "ended": "",
        "note": "",
    }


@pytest.mark.parametrize("argv, cwd", [(["no-such-program"], ""), (["true"], "/no/such/folder")])
def test_a_program_that_could_not_begin_is_no_result(player, argv, cwd):
    """9.3.2: it has not run, so it is not remembered under its request id."""
    good, error = player.run(profile(), Command(argv, cwd=cwd))
    assert not good and error.code == -32010 and error.data["ran"] is False, error
    assert "No such file" in error.message and (cwd or argv[0]) in error.message


@pytest.mark.parametrize(
    "first, asks_for",
    [
        ("#!/no/such/python", "/no/such/python"),
        ("#!/usr/bin/env no-such-node", "no-such-node in PATH"),
        ("#!/bin/sh\r", r"/bin/sh\r (the line ends as on Windows)"),
    ],
)
def test_a_script_whose_interpreter_is_not_there(player, first, asks_for):
    made = player.run(profile(), _shell("cat > script; chmod +x script", stdin=first.encode()))
    assert made[1]["exit_code"] == 0
    good, error = player.run(profile(), Command(["./script"]))
    assert not good and error.code == -32010 and error.data["ran"] is False, error
    assert "of ./script (#!) asks for %s, which" % asks_for in error.message


def test_a_signal_is_128_and_its_number(player):
    assert player.run(profile(), _shell("kill -9 $$"))[1]["exit_code"] == 137


def test_stdin_is_what_was_given_and_ends(player):
    assert player.run(profile(), _shell("cat"))[1]["output"] == ""
    long = b"x" * 300000
    assert player.run(profile(), _shell("wc -c", stdin=long))[1]["output"].strip() == "300000"


def test_the_environment_is_clean_but_for_what_the_job_gives(player, engine, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary")
    good, value = player.run(profile(), _shell("env | sort", env={"TOKEN": "mine"}))
    names = {line.partition("=")[0] for line in value["output"].splitlines()}
    more = {"GIT_CONFIG_NOSYSTEM"} if engine.report()["profile"] == "L" else set()
    assert names == {"HOME", "LANG", "PATH", "PWD", "TMPDIR", "TOKEN", "WORKSPACE"} | more
    assert "canary" not in value["output"]


def test_no_environment_is_left_in_memory(player, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary-in-memory")
    source = "def f():\n    return open('/proc/self/environ').read()\n"
    good, value = player.run(profile(), _function(source))
    assert not good or "canary" not in value


def test_a_program_that_does_not_exist_is_an_error_with_its_name(player):
    good, error = player.run(profile(), Command(["no-such-program"]))
    assert not good and "no-such-program" in error.message and error.hint


def test_the_workspace_is_where_a_command_starts_and_it_stays(player, engine):
    assert player.run(profile(), _shell("echo kept > note"))[0]
    assert (
        player.run(profile(), _shell('cat note "$WORKSPACE/note" "$HOME/note"'))[1]["output"]
        == "kept\n" * 3
    )


def test_a_denied_path_of_the_agents_own_workspace_is_made_to_be_covered(player, engine):
    if engine.report()["profile"] == "N":
        value = player.run(
            profile(denied=["/workspace/.env"]),
            _shell("echo x > .env; mkdir .env/x; ls .env; cat .env"),
        )[1]
        assert value["exit_code"] != 0
        assert player.run(profile(), _shell("rmdir .env && echo gone"))[1]["output"] == "gone\n"


def test_output_is_cut_at_its_limit_and_says_so(player):
    for size, cut in ((9, False), (10, False), (11, True), (1000000, True)):
        value = player.run(
            profile(max_output_bytes=10), _shell("head -c %d /dev/zero | tr '\\0' x" % size)
        )[1]
        assert (value["output"], value["truncated"], value["original_bytes"]) == (
            "x" * min(size, 10),
            cut,
            size,
        )


def test_output_that_is_no_utf8_stays_within_the_limit(player):
    value = player.run(
        profile(max_output_bytes=10), _shell("head -c 10 /dev/zero | tr '\\0' '\\377'")
    )[1]
    assert (
        len(value["output"].encode()) <= 10 and value["truncated"] and value["original_bytes"] == 10
    )


def test_a_timeout_ends_the_tree_that_will_not_hear(player):
    good, error = player.run(
        profile(timeout_ms=200), _shell("trap '' TERM; sleep 3600 & setsid sleep 3600 & wait")
    )
    assert not good and isinstance(error, ToolTimeout)


def test_a_tree_that_hears_term_has_half_a_second(player):
    good, error = player.run(
        profile(timeout_ms=200),
        _shell("trap 'echo bye > heard; exit' TERM; while :; do sleep 0.02; done"),
    )
    assert isinstance(error, ToolTimeout)
    assert player.run(profile(), _shell("cat heard"))[1]["output"] == "bye\n"


def test_the_call_ends_when_its_command_does_whoever_is_left(player):
    assert (
        player.run(profile(), _shell("(setsid sleep 3600 &) ; sleep 3600 & echo done"))[1]["output"]
        == "done\n"
    )


def test_a_cancelled_call_says_nothing_more(player, engine):
    number = player.start(profile(), _shell("sleep 60"))
    engine.cancel(number)
    assert player.run(profile(), _shell("echo next"))[1]["output"] == "next\n"
    assert number not in player.outcomes and not engine.is_busy


def test_calls_beyond_those_at_once_wait_and_one_too_many_is_refused(player, engine):
    numbers = [player.start(profile(), _shell("sleep 600")) for _ in range(MAX_CALLS + MAX_QUEUE)]
    assert player.outcomes == {} and engine.is_busy
    good, error = player.run(profile(), _shell("true"))
    assert (
        not good
        and isinstance(error, InvalidRequest)
        and error.data["ran"] is False
        and str(MAX_QUEUE) in error.message
    )
    engine.cancel(numbers.pop())
    numbers.append(player.start(profile(), _shell("sleep 600")))
    assert player.outcomes == {}, "the place of one that was cancelled is free"
    for number in numbers:
        engine.cancel(number)
    assert not engine.is_busy
    assert player.run(profile(), _shell("true"))[0]


def test_those_that_wait_run_in_their_order_and_the_wait_takes_nothing_of_their_time(
    player, engine
):
    held = [player.start(profile(), _shell("sleep 600")) for _ in range(MAX_CALLS)]
    waiting = [
        player.start(profile(), _shell("echo %d >> order" % at), now_ms() + 60000)
        for at in range(4)
    ]
    gone = player.start(profile(), _shell("echo gone >> order"))
    late = player.start(profile(), _shell("echo late >> order"), now_ms())
    engine.cancel(gone)
    engine.cancel(held.pop())
    assert engine.deadline() == 0, "there is room: the loop need not wait for anything"
    assert all(player.wait(number)[0] for number in waiting)
    assert isinstance(player.wait(late)[1], ToolTimeout), "its time was over before it came"
    assert player.run(profile(), _shell("cat order"))[1]["output"].split()[:4] == [
        "0",
        "1",
        "2",
        "3",
    ]
    for number in held:
        engine.cancel(number)


def test_a_function_returns_its_value(player):
    assert player.run(
        profile(), _function("def f(a, b):\n    return {'sum': a + b, 'of': [a, b]}\n", a=1, b=2)
    ) == (True, {"sum": 3, "of": [1, 2]})


def test_a_long_value_comes_whole(player):
    for size in (32766, 32767, 65534, 1000000):
        good, value = player.run(profile(), _function("def f(n):\n    return 'x' * n\n", n=size))
        assert good and len(value) == size


def test_a_value_beyond_the_limit_comes_whole_to_be_cut(player):
    good, value = player.run(
        profile(max_output_bytes=1000), _function("def f():\n    return 'x' * 200000\n")
    )
    assert good and len(value) == 200000


def test_a_value_that_nobody_would_hold_is_refused(player):
    good, error = player.run(
        profile(max_output_bytes=1000), _function("def f():\n    return 'x' * 5000000\n")
    )
    assert not good and "4194304 bytes" in error.message


@pytest.mark.parametrize(
    "body, said",
    [
        ("def f():\n    raise ValueError('odd')\n", "ValueError: odd"),
        ("def f():\n    raise SystemExit\n", "SystemExit"),
        ("def f():\n    return object()\n", "TypeError"),
        ("def f(:\n", "SyntaxError"),
        ("def f():\n    import os\n    os._exit(7)\n", "exit code 7"),
        ("def f():\n    import os\n    os.kill(os.getpid(), 11)\n", "exit code 139"),
    ],
)
def test_what_a_function_raises_is_its_outcome(player, body, said):
    good, error = player.run(profile(), _function(body))
    assert not good and type(error) is ClawError and said in error.message


def test_what_a_child_says_out_of_turn_is_bounded(player):
    """The maker's code can reach the line to the agent, which believes nothing that comes from
    it.
    """
    find = (
        "import json, os, _socket\ndef f(say):\n    for fd in range(3, 64):\n        try:\n   "
        "         if os.readlink('/proc/self/fd/%d' % fd).startswith('socket:'):\n"
        "                _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, "
        "fd).send(say.encode())\n"
        "        except OSError:\n            pass\n    os._exit(0)\n"
    )
    for said, expected in (
        ("R{", "not JSON"),
        ("R" + "[" * 100, "not JSON"),
        ("Xnull", "the wrong form"),
        ("X{}", "the wrong form"),
        ("Q5", "the wrong form"),
        ('Q{"ask":""}', "expected"),
        ("Z1", "exit code 0"),
        ('X{"code":-32603,"message":"' + "m" * 9000 + '","hint":"","data":null}', "m" * 50),
    ):
        good, error = player.run(profile(), _function(find, say=said))
        assert good is False and expected in error.message and len(error.message) <= 4000, (
            said[:20],
            error,
        )


def test_arguments_that_are_no_json_are_refused(player):
    good, error = player.run(profile(), _function("def f(a):\n    pass\n", a=object()))
    assert not good and isinstance(error, InvalidParams)


def test_a_generator_waits_asks_and_goes_on(player, engine):
    source = (
        "def f(word):\n    yield 5\n    said = yield {'ask': word + '?', 'max_tokens': 9}\n  "
        "  return said.upper()\n"
    )
    number = player.start(profile(), _function(source, True, word="well"))
    assert player.wait(number) == (ASKS_PROVIDER, ("well?", 9))
    engine.resume(number, (True, "yes" * 100000))
    assert player.wait(number) == (True, "YES" * 100000)


def test_a_question_that_is_none_ends_the_call(player):
    good, error = player.run(profile(), _function("def f():\n    yield {'ask': ''}\n", True))
    assert not good and "expected" in error.message


def test_a_question_that_failed_is_raised_where_it_was_asked(player, engine):
    source = (
        "def f():\n    try:\n        yield {'ask': 'x'}\n    except Exception as e:\n        "
        "return 'no: %s' % e\n"
    )
    number = player.start(profile(), _function(source, True))
    assert player.wait(number)[IS_OK] == ASKS_PROVIDER
    engine.resume(number, (False, ClawError("nobody there")))
    assert player.wait(number) == (True, "no: nobody there")


def test_finally_runs_when_the_time_is_over(player):
    source = (
        "def f():\n    try:\n        while True:\n            yield 1000\n    finally:\n"
        "        open('closed', 'w').write('valve shut')\n"
    )
    assert isinstance(player.run(profile(timeout_ms=200), _function(source, True))[1], ToolTimeout)
    assert player.run(profile(), _shell("cat closed"))[1]["output"] == "valve shut"


def test_a_builtin_is_a_function_of_clawlite(player):
    uri = "claw://local/tool/x"
    assert player.run(profile(), Builtin("clawlite.core.base.uri", "parse", {"uri": uri})) == (
        True,
        ["local", "tool", None, "x", None],
    )
    good, error = player.run(profile(), Builtin("clawlite.core.base.uri", "parse", {"uri": "x"}))
    assert not good and type(error) is InvalidParams
    with pytest.raises(ValueError):
        Builtin("os", "system", {})


def test_what_the_server_says_of_itself_leaves_nothing_to_wake_for():
    """Its probe, and its end: nobody calls a tool meanwhile."""
    with _started() as engine:
        engine.prepare()
        for victim in (None, engine._server[0]):
            if victim:
                os.kill(victim, signal.SIGKILL)
            assert select.select([engine.fileno()], [], [], WAIT_S)[0] and engine.has_news
            assert engine.poll() == [] and not engine.has_news
            assert not select.select([engine.fileno()], [], [], 0)[0]


def test_the_server_comes_back_when_it_has_died():
    with _started() as engine:
        player = Player(engine)
        assert player.run(profile(), _shell("true"))[0]
        os.kill(engine._server[0], signal.SIGKILL)
        end = time.monotonic() + WAIT_S
        while engine._server is not None:
            assert time.monotonic() < end
            engine.poll()
        assert player.run(profile(), _shell("echo again"))[1]["output"] == "again\n"


def test_a_supervisor_whose_server_is_gone_already_ends():
    """Else it keeps the line open that tells the agent so."""
    lines = (
        "import os",
        "from clawlite.linux.sandbox import supervisor",
        "life, end = os.pipe()",
        "os.close(end)",
        "supervisor.wait(-1, -1, life, {'profile': 'L'}, None, None, None, None)",
    )
    assert subprocess.run([sys.executable, "-c", "\n".join(lines)]).returncode == 0


def _take(calls) -> tuple:
    """Return (the line, the other descriptors) of the next call, as a supervisor takes it."""
    data, extra, _, _ = calls.recvmsg(64, socket.CMSG_SPACE(16))
    fds = array.array("i")
    fds.frombytes(extra[0][2])
    return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, fds[3]), fds[:3]


def _gone(line, fds):
    line.close()
    for fd in fds:
        os.close(fd)


@pytest.mark.parametrize("begins", [False, True])
def test_what_had_not_begun_is_begun_again_once(tmp_path, begins):
    engine = Engine(str(tmp_path), [])
    ours, server = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    engine._server = os.posix_spawn("/bin/true", ["true"], {}), ours
    engine._epoll.register(ours, select.EPOLLIN)
    try:
        assert engine.start(1, profile(), _shell("true"), None, 0) is None
        line, fds = _take(server)
        if begins:
            assert line.recv(16) == b"J"
        _gone(line, fds)
        ended = engine.poll(0)
        if not begins:
            assert ended == []
            _gone(*_take(server))  # not twice
            ended = engine.poll(0)
        ((number, (done, error)),) = ended
        assert number == 1 and not done and error.message == "the sandbox ended before its call did"
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.recv(64)
    finally:
        server.close()
        engine.close()


def test_the_time_of_a_call_is_the_shorter_one(tmp_path):
    engine = Engine(str(tmp_path), [])
    ours, server = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    engine._server = os.posix_spawn("/bin/true", ["true"], {}), ours
    engine._epoll.register(ours, select.EPOLLIN)
    try:
        for number, (limit, due, told) in enumerate(
            [
                (None, None, b"J"),
                (500, None, b"J500"),
                (None, 1300, b"J300"),
                (500, 1300, b"J300"),
                (200, 1300, b"J200"),
                (None, 900, b"J0"),
            ]
        ):
            assert (
                engine.start(number, profile(timeout_ms=limit), _shell("true"), due, 1000) is None
            )
            assert server.recv(64, socket.MSG_PEEK) == told
            line, fds = _take(server)
            line.recv(1)
            _gone(line, fds)
    finally:
        server.close()
        engine.close()

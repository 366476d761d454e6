"""Built-in tools by their names: what runs where, what a command's end says, and what rules
forbid.
"""

import os

import pytest

from clawlite.core.base.effect import Result
from clawlite.core.base.errors import ClawError, SandboxDenied
from clawlite.core.turns.tool_result import result_of
from clawlite.host.schema.automata import compile_pattern
from clawlite.linux.confinement import landlock
from clawlite.linux.files import workspace
from clawlite.linux.sandbox import plan
from clawlite.linux.sandbox.jobs import Builtin, Command
from clawlite.linux.tools import builtin, file_tools, memory_tools
from clawlite.linux.tools.builtin import Builtins, Text, command_of, milliseconds
from clawlite.protocols.sandbox import profile as P
from clawlite.protocols.sandbox.profile import Profile


def profile(
    level=P.PROCESS,
    files=P.SCOPED,
    mounts=(("/workspace", True),),
    denied=(),
    shell=P.UNRESTRICTED,
    commands=(),
    patterns=(),
) -> Profile:
    return Profile(
        [
            "box",
            level,
            [P.DENY, [], True],
            [files, list(mounts), list(denied)],
            [P.BOUNDARY, False],
            [shell, list(commands), list(patterns)],
            [None] * 6,
        ]
    )


def builtins(folder, **more) -> Builtins:
    sandbox = profile(**more)
    state = str(folder / "state")
    root = workspace.folder(sandbox, state)
    return Builtins(sandbox, None, state, root, workspace.paths_to_hide(sandbox, state, root))


def test_mounted_secrets_are_hidden(tmp_path, monkeypatch):
    (tmp_path / "home/secrets").mkdir(parents=True)
    monkeypatch.setenv("CLAW_SECRETS_DIR", str(tmp_path / "home/secrets"))
    home, state = str(tmp_path / "home"), str(tmp_path / "state/a")
    assert workspace.paths_to_hide(profile(mounts=[(home, True)]), state, home) == [
        str(tmp_path / "state"),
        home + "/secrets",
    ]
    by_name = profile(
        mounts=[(home + "/secrets/some", False), (str(tmp_path / "state/shared"), True)]
    )
    assert workspace.paths_to_hide(by_name, state, str(tmp_path / "state/shared")) == [
        state,
        str(tmp_path / "state/swarms"),  # who could write there would give other agents tasks
    ]
    assert workspace.paths_to_hide(profile(), state, state + "/workspace") == [
        str(tmp_path / "state"),
        home + "/secrets",
    ]


# -- where they run


def test_what_runs_here_and_what_in_the_sandbox(tmp_path):
    inside, none = builtins(tmp_path), builtins(tmp_path, level=P.NONE)
    assert [name for name in builtin.NAMES if inside.runs_here(name)] == [
        "memory-read",
        "memory-write",
    ]
    assert [name for name in builtin.NAMES if none.runs_here(name)] == list(builtin.NAMES)
    assert not none.runs_here("web-fetch")


def test_file_tools_run_here_at_level_none_with_the_same_checks(tmp_path):
    tools = builtins(tmp_path, level=P.NONE, denied=["/workspace/private"])
    assert tools.run_here("write-file", {"path": "a/b", "content": "hello"}) == (
        True,
        "wrote 5 bytes to a/b",
    )
    assert tools.run_here("read-file", {"path": "a/b"}) == (True, "hello")
    assert (tmp_path / "state/workspace/a/b").read_text() == "hello"
    for path in ("private/x", "/etc/passwd", "../MEMORY.md", str(tmp_path / "state/MEMORY.md")):
        done, error = tools.run_here("write-file", {"path": path, "content": ""})
        assert not done and isinstance(error, SandboxDenied), path
    done, error = tools.run_here("read-file", {"path": "nope"})
    assert not done and type(error) is ClawError


def test_the_agents_state_is_hidden_where_everything_is_open(tmp_path):
    tools = builtins(tmp_path, level=P.NONE, files=P.FULL, mounts=())
    assert (
        tools.run_here("memory-write", {"content": "mine"})[0]
        and tools.run_here("write-file", {"path": "x", "content": "y"})[0]
    )
    assert isinstance(
        tools.run_here("read-file", {"path": str(tmp_path / "state/MEMORY.md")})[1], SandboxDenied
    )
    assert tools.run_here("read-file", {"path": str(tmp_path / "state/workspace/x")}) == (True, "y")


@pytest.mark.parametrize("name", ["exec-shell", "spawn"])
def test_no_command_runs_at_level_none(tmp_path, name):
    done, error = builtins(tmp_path, level=P.NONE).run_here(name, {"command": "true"})
    assert (
        not done
        and isinstance(error, SandboxDenied)
        and error.hint
        and error.data["required"] == ["process"]
    )


def test_a_file_tool_is_a_job_of_the_sandbox(tmp_path, monkeypatch):
    tools = builtins(
        tmp_path, denied=[str(tmp_path / "state/workspace/private"), "/workspace/other"]
    )
    job = tools.job(1, "read-file", {"path": "private/x"})
    assert isinstance(job, Builtin) and job.pack()
    inside = tmp_path / "state/workspace"
    (inside / "private").mkdir(parents=True)
    (inside / "private/x").write_text("secret")
    (inside / "y").write_text("plain")
    monkeypatch.setenv("WORKSPACE", str(inside))
    assert job.module == file_tools.__name__ and job.name == "run_inside"
    with pytest.raises(SandboxDenied):
        file_tools.run_inside(**job.arguments)
    assert file_tools.run_inside(**dict(job.arguments, arguments={"path": "y"})) == {
        "text": "plain"
    }
    # In a root of its own the workspace is known as /workspace alone: a denied path has that name
    # too.
    denied = job.arguments["files"][2]
    assert (
        denied[: len(tools._profile.denied)] == tools._profile.denied
        and denied.count("/workspace/private") == 1
    )


def test_without_namespaces_a_file_tool_may_still_change_what_is_above_a_denied_path(tmp_path):
    """Landlock cannot deny below what it allows: a command is refused beside a denied path, a file
    tool knows it itself.
    """
    tools = builtins(tmp_path, denied=["/workspace/private"], mounts=[("/workspace", True)])
    folder = str(tmp_path / "state/workspace")
    os.makedirs(folder + "/private")
    os.makedirs(folder + "/sub")

    def allowed(name, arguments) -> list:
        job = tools.job(1, name, arguments)
        made = plan.make(tools._profile, job, folder, [str(tmp_path / "state")])
        plan.for_landlock(made, landlock.around, landlock.listable)
        return [path for path, _ in made["allowed"] if path.startswith(str(tmp_path))]

    assert allowed("write-file", {"path": "x", "content": "y"}) == [folder]
    with pytest.raises(plan.Refused, match="takes no rights away below a folder"):
        allowed("exec-shell", {"command": "ls"})


# -- commands


def test_command_of(tmp_path):
    assert command_of("exec-shell", {"command": "ls | wc"}, profile(), None) == [
        "/bin/sh",
        "-c",
        "ls | wc",
    ]
    assert command_of("spawn", {"command": "ls", "args": ["-l", "a b"]}, profile(), None) == [
        "ls",
        "-l",
        "a b",
    ]
    assert command_of("spawn", {"command": "ls"}, profile(), None) == ["ls"]
    job = builtins(tmp_path).job(1, "exec-shell", {"command": "ls"})
    assert (
        isinstance(job, Command)
        and job.argv == ["/bin/sh", "-c", "ls"]
        and job.stdin == b""
        and job.env == {}
    )


def test_modes_of_the_shell():
    table = compile_pattern("eval", "python")
    for name, arguments in (
        ("exec-shell", {"command": "rm -rf /"}),
        ("spawn", {"command": "rm", "args": ["-rf", "/"]}),
        ("exec-shell", {"command": "eval x"}),
        ("spawn", {"command": "eval"}),
    ):
        for mode in (P.DENY, P.RESTRICTED):
            with pytest.raises(SandboxDenied) as e:
                command_of(
                    name,
                    arguments,
                    profile(shell=mode, commands=["rm -rf /"], patterns=[7]),
                    lambda number: table,
                )
            assert e.value.hint and e.value.data["reason"] == (
                "no shell" if mode == P.DENY else "blocked command"
            )
        assert command_of(name, arguments, profile(commands=["rm -rf /"], patterns=[7]), None)
    assert command_of(
        "exec-shell",
        {"command": "ls"},
        profile(shell=P.RESTRICTED, commands=["rm -rf /"], patterns=[7]),
        lambda number: table,
    )


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_an_argument_is_bounded(over):
    argument = "ü" + "x" * (builtin.MAX_ARGUMENT - 2 + over)
    for name, arguments in (
        ("exec-shell", {"command": argument}),
        ("spawn", {"command": "x", "args": [argument]}),
    ):
        if over > 0:
            with pytest.raises(ClawError) as e:
                command_of(name, arguments, profile(), None)
            assert "131071 bytes" in e.value.message
        else:
            command_of(name, arguments, profile(), None)


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_so_many_programs_run_at_once(tmp_path, over):
    tools = builtins(tmp_path)
    for task in range(builtin.MAX_SPAWNED - 1):
        tools.job(task, "spawn", {"command": "sleep"})
    for task in range(100, 100 + over):
        tools.job(task, "spawn", {"command": "sleep"})
    if over > 0:
        with pytest.raises(ClawError) as e:
            tools.job(5, "spawn", {"command": "sleep"})
        assert "wait until one" in e.value.message
        tools.job(6, "exec-shell", {"command": "true"})  # those are not counted
        tools.note_end(100)
    tools.job(7, "spawn", {"command": "sleep"})


def test_how_long_a_command_may_take():
    assert (
        milliseconds("exec-shell", {"command": "x"}) == 30000
        and milliseconds("spawn", {"command": "x"}) == 60000
    )
    assert (
        milliseconds("exec-shell", {"command": "x", "timeout": 0.25}) == 250
        and milliseconds("spawn", {"command": "x", "timeout": 1e-9}) == 1
    )
    assert milliseconds("read-file", {"path": "x"}) is None


def ended(output="", code=0, truncated=False, original=0, by=""):
    return True, {
        "exit_code": code,
        "output": output,
        "truncated": truncated,
        "original_bytes": original,
        "ended": by,
    }


class Image:
    guard = None


class Tool:
    name, output = "exec-shell", None

    def __init__(self, most):
        self.max_output = most


@pytest.mark.parametrize(
    "outcome, text, is_error, original",
    [
        (ended("hi\n"), "hi\n", False, 0),
        (ended("no\n", 2), "exit code 2\nno\n", True, 0),
        (ended("", 1), "exit code 1\n", True, 0),
        (ended("x" * 100, truncated=True, original=5000), "x" * 64, False, 5000),
        # the engine cut it to what fits
        (ended("x" * 64, truncated=True, original=5000), "x" * 64, False, 5000),
        (ended("x" * 100, 1), "exit code 1\n" + "x" * 52, True, 112),
        (ended("x", 137, by="memory_mb"), "exit code 137, ended by memory_mb\nx", True, 0),
    ],
)
def test_what_a_command_printed_is_the_result(tmp_path, outcome, text, is_error, original):
    result = result_of(Tool(64), builtins(tmp_path).outcome("exec-shell", outcome), Image, {})
    assert (result.text, result.is_error, result.original_bytes) == (text, is_error, original)
    assert ("truncated" in result.to_json()) == bool(original)


def test_what_was_read_in_part_says_the_whole_size(tmp_path):
    tools = builtins(tmp_path, level=P.NONE)
    os.makedirs(tmp_path / "state/workspace")
    (tmp_path / "state/workspace/big").write_bytes(b"x" * (file_tools.MAX_READ + 10))
    result = result_of(Tool(64), tools.run_here("read-file", {"path": "big"}), Image, {})
    assert (len(result.text), result.original_bytes) == (64, file_tools.MAX_READ + 10)
    error = SandboxDenied("no")
    assert tools.outcome("exec-shell", (False, error)) == (False, error)


def test_a_plain_text_is_cut_as_before():
    result = result_of(Tool(3), (True, "aü€"), Image, {})
    assert isinstance(result, Result) and (result.text, result.original_bytes, result.is_error) == (
        "aü",
        6,
        False,
    )
    assert result_of(Tool(6), (True, Text("aü€")), Image, {}).original_bytes == 0


# -- memory


@pytest.fixture
def memory(tmp_path):
    def call(name, **arguments):
        return memory_tools.run("memory-" + name, arguments, str(tmp_path / "state"))

    return call


def test_memory_is_added_to_and_read(memory, tmp_path):
    assert memory("read") == "nothing is remembered yet"
    assert memory("write", content="The pump is on pin 5.") == "remembered, 22 bytes in all"
    memory("write", content="\nAda waters on Mondays.\nAnd Fridays.\n\n", mode="append")
    assert memory("read") == "The pump is on pin 5.\n\nAda waters on Mondays.\nAnd Fridays.\n"
    assert memory("read", query="MONDAYS ada") == "Ada waters on Mondays.\nAnd Fridays."
    assert memory(
        "read", query="the"
    ) == "The pump is on pin 5." and "nothing that is remembered" in memory("read", query="x")
    assert (
        memory("write", content="New.", mode="overwrite")
        == "remembered in place of everything, 5 bytes"
    )
    assert memory("read") == "New.\n" and sorted(os.listdir(tmp_path / "state")) == ["MEMORY.md"]
    assert os.stat(tmp_path / "state/MEMORY.md").st_mode & 0o777 == 0o600


def test_memory_that_a_person_wrote_goes_on_after_a_blank_line(memory, tmp_path):
    os.makedirs(tmp_path / "state")
    (tmp_path / "state/MEMORY.md").write_text("# Notes\n \nmine")
    memory("write", content="yours")
    assert (
        memory("read") == "# Notes\n \nmine\n\nyours\n"
        and memory("read", query="notes") == "# Notes"
    )
    (tmp_path / "state/MEMORY.md").write_bytes(b"\xff")
    with pytest.raises(ClawError) as e:
        memory("read")
    assert "no UTF-8 text (byte 0)" in e.value.message


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_memory_is_bounded(memory, over, monkeypatch):
    monkeypatch.setattr(memory_tools, "MAX_MEMORY", 20)
    memory("write", content="x" * 9)  # 10 bytes, and 10 - 2 for another
    if over > 0:
        with pytest.raises(ClawError) as e:
            memory("write", content="y" * 9)
        assert "overwrite it" in e.value.message and memory("read") == "x" * 9 + "\n"
    else:
        memory("write", content="y" * (8 + over))
    if over > 0:
        with pytest.raises(ClawError):
            memory("write", content="y" * 20, mode="overwrite")
    else:
        memory("write", content="y" * (19 + over), mode="overwrite")


def test_writers_do_not_lose_each_other(memory):
    """Processes that add while another replaces: what was acknowledged after the last
    replacement is there, each once.
    """
    pids = []
    for writer in range(4):
        pid = os.fork()
        if not pid:
            try:
                for number in range(50):
                    memory("write", content="w%d n%d" % (writer, number))
                os._exit(0)
            finally:
                os._exit(1)
        pids.append(pid)
    memory("write", content="start", mode="overwrite")
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * 4
    found = memory_tools.paragraphs(memory("read"))
    assert len(found) == len(set(found))
    for writer in range(4):
        mine = [int(p.split("n")[1]) for p in found if p.startswith("w%d" % writer)]
        assert mine == list(range(50 - len(mine), 50))  # in order, and to the last


def test_half_a_character_is_not_remembered(memory):
    with pytest.raises(ClawError) as e:
        memory("write", content="\ud800")
    assert "lone surrogate" in e.value.message

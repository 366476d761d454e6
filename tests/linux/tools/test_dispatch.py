"""Where tools run at level process: the real agent, the real sandbox (docs/adr/0018)."""

import json
import os
import sys

import pytest
from agents import Agent, eventually, linux, tool_call
from sandboxes import profile

from clawlite.host.builder.build import build_beside
from clawlite.linux.sandbox.engine import MAX_CALLS, MAX_QUEUE
from clawlite.linux.sandbox.jobs import modules_of
from clawlite.linux.tools.builtin import MAX_SPAWNED
from clawlite.linux.tools.dispatch import limit
from clawlite.linux.tools.precheck import check
from clawlite.protocols.sandbox.defaults import DEFAULTS

FUNCTIONS = '''import os
import time

_seen = []


def where() -> dict:
    """Say where it runs."""
    _seen.append(1)
    return {"pid": os.getpid(), "parent": os.getppid(), "cwd": os.getcwd(), "names": sorted(os.environ), "seen": len(_seen)}


def block(ms: int) -> str:
    """Sleep in one piece."""
    time.sleep(ms / 1000)
    return "slept"


def brief(ms: int) -> str:
    """Sleep in one piece, with a timeout."""
    time.sleep(ms / 1000)
    return "slept"


def write(path: str, text: str) -> str:
    """Write a file."""
    with open(path, "w") as file:
        file.write(text)
    return "written"


def get(url: str) -> str:
    """Get it."""
    return url


def run(command: str) -> str:
    """Run it."""
    return command


def ask() -> str:
    """Ask the model."""
    said = yield {"ask": "What?", "max_tokens": 5}
    return "it said " + said


def hold() -> str:
    """Count, and wait for a file."""
    with open("/workspace/count", "a") as file:
        file.write("x")
    while not os.path.exists("/workspace/go"):
        time.sleep(0.02)
    return "held"


def leave() -> str:
    """End the process."""
    os._exit(3)


def limits() -> dict:
    """Say what this process may use."""
    import resource
    return {"files": resource.getrlimit(resource.RLIMIT_NOFILE)[0], "memory": resource.getrlimit(resource.RLIMIT_DATA)[0],
            "processes": resource.getrlimit(resource.RLIMIT_NPROC)[0]}
'''  # noqa: E501
SCOPED = {
    "filesystem": {
        "mode": "scoped",
        "mount_paths": [
            {"path": "/workspace", "permissions": "rw"},
            {"path": "/usr/share", "permissions": "ro"},
        ],
    }
}


def project(folder, capabilities=None, settings: str = "", sandbox=True, builtin: str = None):
    """Write and build an agent at level process; return its image."""
    spec = {
        "identity": {"inline": {"personality": "x", "autonomy": "autonomous"}},
        "providers": [
            {
                "inline": {
                    "protocol": "custom",
                    "endpoint": "builtin:reflex",
                    "model": "m",
                    "auth": {"type": "none"},
                }
            }
        ],
        "tools": [
            {
                "inline": {
                    "name": "brief",
                    "description": "Sleep",
                    "timeout_ms": 50,
                    "input_schema": {
                        "type": "object",
                        "required": ["ms"],
                        "properties": {"ms": {"type": "integer"}},
                    },
                }
            }
        ],
        "policies": [{"inline": {"rules": [{"id": "all", "action": "allow", "scope": "all"}]}}],
    }
    if builtin:
        spec["tools"].append("claw://registry/clawlite/%s@1.0.0" % builtin)
    if sandbox:
        spec["sandbox"] = {
            "inline": {
                "name": "box",
                "level": "process",
                "capabilities": SCOPED if capabilities is None else capabilities,
            }
        }
    folder.mkdir()
    (folder / "claw.json").write_text(
        json.dumps({"claw": "0.3.0", "kind": "Claw", "metadata": {"name": "boxed"}, "spec": spec})
    )
    (folder / "tools.py").write_text(FUNCTIONS)
    (folder / "clawlite.toml").write_text('reflex = "r.toml"\n' + settings)
    (folder / "r.toml").write_text('[[rule]]\nwhen = "x"\nsay = "y"\n')
    return build_beside(str(folder))


class Served:
    """An agent of an image that is served; ``call`` gives its answers."""

    def __init__(self, image, home, begin=(), **env):
        words = linux("serve", image, "--stdio")
        self.agent = Agent([*(begin or words[:3]), *words[3:]], home, env=env)
        self.number = 0

    def __enter__(self):
        self.agent.__enter__().initialize()
        return self

    def __exit__(self, *error):
        self.agent.__exit__(*error)

    def call(self, name: str, **arguments):
        self.number += 1
        self.agent.line(json.dumps(tool_call(name, arguments, self.number)))
        return self.agent.message()

    def text(self, name: str, **arguments) -> str:
        return self.call(name, **arguments)["result"]["content"][0]["text"]


def test_a_function_runs_in_a_process_of_its_own_with_a_clean_environment(tmp_path):
    with Served(
        project(tmp_path / "p"), tmp_path / "home", API_KEY="a key that no tool needs"
    ) as served:
        said = [json.loads(served.text("where")) for _ in range(2)]
        assert [one["seen"] for one in said] == [1, 1] and {one["cwd"] for one in said} == {
            "/workspace"
        }
        assert set(said[0]["names"]) == {
            "HOME",
            "LANG",
            "PATH",
            "TMPDIR",
            "WORKSPACE",
        } and served.agent.process.pid not in (said[0]["pid"], said[0]["parent"])
        assert served.text("write", path="/workspace/note", text="kept") == "written"
    assert (tmp_path / "home/state/boxed/workspace/note").read_text() == "kept"


def test_a_sandbox_without_limits_has_those_of_the_runtime(tmp_path):
    with Served(project(tmp_path / "p"), tmp_path / "home") as served:
        said = json.loads(served.text("limits"))
    half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 21
    assert said["files"] == DEFAULTS["max_open_files"]
    assert said["memory"] in (min(DEFAULTS["memory_mb"], half) << 20, -1), (
        "a control group keeps it where there is one"
    )
    assert said["processes"] != -1


def test_time_and_output_have_defaults_too():
    found = profile()
    relaxed, default_ms = limit(found, [])
    assert default_ms == DEFAULTS["timeout_ms"] == 600000
    assert found.max_output_bytes == DEFAULTS["max_output_bytes"] == 10485760
    assert found.timeout_ms is None and "max_output_bytes" not in relaxed
    found = profile(timeout_ms=5, max_output_bytes=7)
    assert limit(found, [])[1] is None and found.max_output_bytes == 7, "what is declared holds"
    found = profile()
    assert limit(found, ["timeout_ms", "max_output_bytes"])[1] is None
    assert found.max_output_bytes is None


def test_the_default_time_ends_a_call_that_has_no_other(tmp_path):
    short = (
        "import sys; from clawlite.protocols.sandbox import defaults; "
        "from clawlite import command; defaults.DEFAULTS['timeout_ms'] = 50; "
        "sys.exit(command.main())"
    )
    begin = [sys.executable, "-c", short]
    with Served(project(tmp_path / "p"), tmp_path / "home", begin) as served:
        assert served.call("block", ms=3600000)["error"]["code"] == -32014


def test_a_limit_that_is_relaxed_and_not_declared_is_none(tmp_path):
    with Served(
        project(tmp_path / "p", settings='[sandbox]\nrelaxed = ["memory_mb", "max_open_files"]\n'),
        tmp_path / "home",
    ) as served:
        said = json.loads(served.text("limits"))
    assert said["memory"] == -1 and said["files"] != DEFAULTS["max_open_files"]


def test_who_asks_for_bubblewrap_runs_nothing_without_it(tmp_path):
    with Served(
        project(tmp_path / "p", settings='[sandbox]\nnamespaces = "bubblewrap"\n'),
        tmp_path / "home",
        PATH="/nonexistent",
    ) as served:
        error = served.call("write", path="/workspace/note", text="kept")["error"]
        assert (
            error["code"] == -32010
            and error["data"]["missing"] == ["bubblewrap"]
            and "no program bwrap" in error["data"]["hint"]
        ), error
    assert not (tmp_path / "home/state/boxed/workspace/note").exists()


def test_a_plain_function_that_blocks_delays_nobody_and_its_timeout_ends_it(tmp_path):
    with Served(project(tmp_path / "p"), tmp_path / "home") as served:
        served.text("where")
        served.agent.line(json.dumps(tool_call("block", {"ms": 3600000}, 100)))
        assert served.agent.call("claw.status", id="now")["id"] == "now"
        error = served.call("brief", ms=60000)["error"]
        assert (
            error["code"] == -32014
            and error["data"]["tool"] == "brief"
            and error["data"]["timeout_ms"] == 50
            and error["message"].startswith("brief: ")
        )
        assert served.text("where")
        served.agent.end()
        served.agent.wait()  # shorter than the hour that "block" takes


def test_what_ends_its_process_ends_its_call_alone(tmp_path):
    with Served(project(tmp_path / "p"), tmp_path / "home") as served:
        result = served.call("leave")["result"]
        assert result["isError"] and "exit code 3" in result["content"][0]["text"]
        assert served.text("where")


@pytest.mark.parametrize(
    "name, arguments, said",
    [
        ("write", {"path": "/etc/motd", "text": "x"}, "outside the paths of this sandbox"),
        ("write", {"path": "../../etc/motd", "text": "x"}, "outside the paths"),
        ("write", {"path": "/usr/share/x", "text": "x"}, "can only be read"),
        ("get", {"url": "http://example.com/"}, "the sandbox allows no network"),
        ("get", {"url": "file:///etc/passwd"}, "begins with http"),
        ("run", {"command": "true"}, "has no shell"),
    ],
)
def test_arguments_that_the_sandbox_forbids_are_32010_before_anything_runs(
    tmp_path, name, arguments, said
):
    with Served(project(tmp_path / "p"), tmp_path / "home") as served:
        error = served.call(name, **arguments)["error"]
        assert error["code"] == -32010 and said in error["message"] and error["data"]["reason"]


def test_a_call_that_found_no_room_is_refused_and_runs_when_it_comes_again(tmp_path):
    """9.3.2 ``context.request_id``: a refusal that is not the tool's own is not remembered under
    it.
    """
    most, work = MAX_CALLS + MAX_QUEUE, tmp_path / "home/state/boxed/workspace"
    with Served(project(tmp_path / "p"), tmp_path / "home") as served:
        for number in range(1, most + 2):
            served.agent.line(json.dumps(dict(tool_call("hold", {}, number), id=number)))
        refused = served.agent.message(60)
        assert refused["id"] == most + 1 and refused["error"]["code"] == -32600, refused
        assert "wait for their turn" in refused["error"]["message"]
        (work / "go").write_text("")
        answers = [served.agent.message(60) for _ in range(most)]
        assert {answer["id"] for answer in answers} == set(range(1, most + 1)) and not any(
            answer["result"]["isError"] for answer in answers
        )
        served.agent.line(json.dumps(dict(tool_call("hold", {}, most + 1), id="again")))
        again = served.agent.message(60)
        assert again["id"] == "again" and again["result"]["content"][0]["text"] == "held"
        assert (work / "count").read_text() == "x" * (most + 1), "each ran once"


def test_a_turn_of_programs_beyond_the_limit_is_refused_and_forgotten(tmp_path):
    """Spawned programs have a limit of their own, below that of the sandbox."""
    capabilities = dict(SCOPED, shell={"mode": "full"})
    with Served(
        project(tmp_path / "p", capabilities, builtin="spawn"), tmp_path / "home"
    ) as served:
        for number in range(1, MAX_SPAWNED + 2):
            served.agent.line(
                json.dumps(
                    dict(
                        tool_call(
                            "spawn",
                            {
                                "command": "sh",
                                "args": ["-c", "until [ -e go ]; do sleep 0.02; done"],
                            },
                            number,
                        ),
                        id=number,
                    )
                )
            )
        refused = served.agent.message()
        assert refused["id"] == MAX_SPAWNED + 1 and refused["error"]["code"] == -32600, refused
        (tmp_path / "home/state/boxed/workspace/go").write_text("")
        assert all("result" in served.agent.message() for _ in range(MAX_SPAWNED))
        served.agent.line(
            json.dumps(
                tool_call(
                    "spawn",
                    {"command": "sh", "args": ["-c", "until [ -e go ]; do sleep 0.02; done"]},
                    MAX_SPAWNED + 1,
                )
            )
        )
        assert "result" in served.agent.message()


def test_no_sandbox_is_the_most_restrictive_one(tmp_path):
    with Served(project(tmp_path / "p", sandbox=False), tmp_path / "home") as served:
        assert json.loads(served.text("where"))["cwd"] == "/tmp"
        for name, arguments in (
            ("write", {"path": "/workspace/x", "text": ""}),
            ("get", {"url": "http://example.com/"}),
            ("run", {"command": "id"}),
        ):
            assert served.call(name, **arguments)["error"]["code"] == -32010


def test_a_failed_question_is_the_providers_error(tmp_path):
    with Served(project(tmp_path / "p"), tmp_path / "home") as served:
        result = served.call("ask")
        assert "no provider that a tool could ask" in json.dumps(result)


def test_the_settings_of_one_machine(tmp_path):
    settings = (
        '[sandbox]\nenvironment = ["GREETING", "NOT_SET"]\nwritable = ["$EXTRA", "$NOT_SET"]\n'
    )
    with Served(
        project(tmp_path / "p", settings=settings),
        tmp_path / "home",
        GREETING="hello",
        EXTRA=str(tmp_path / "ledger"),
        SECRET="no",
    ) as served:
        assert {"GREETING"} == set(json.loads(served.text("where"))["names"]) - {
            "HOME",
            "LANG",
            "PATH",
            "TMPDIR",
            "WORKSPACE",
        }
        assert served.text("write", path=str(tmp_path / "ledger"), text="one") == "written"
    assert (tmp_path / "ledger").read_text() == "one"


def test_an_agent_that_is_killed_leaves_nothing_running(tmp_path):
    with Served(project(tmp_path / "p"), tmp_path / "home") as served:
        served.text("where")
        served.agent.line(json.dumps(tool_call("block", {"ms": 60000}, 100)))
        served.agent.call("claw.status")
        children = [
            pid
            for pid in os.listdir("/proc")
            if pid.isdigit() and _parent(pid) == served.agent.process.pid
        ]
        assert children
        served.agent.process.kill()
        served.agent.process.wait()
        eventually(lambda: not any(os.path.exists("/proc/" + pid) for pid in children))


def _parent(pid: str) -> int:
    try:
        with open("/proc/%s/stat" % pid) as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def test_the_modules_that_children_share():
    source = (
        b"import os, json  # import sys\nimport subprocess as sp\nfrom urllib.parse import "
        b"quote\nimport clawlite\n  import socket\n\xff\n"
    )
    assert (
        modules_of(source) == ["json", "os", "subprocess", "urllib.parse"] and modules_of(b"") == []
    )


def test_only_named_arguments_are_looked_at(tmp_path):
    class Tool:
        name, paths, flags = "t", ["path"], 0

    class Profile:
        name, network, hosts, block_private, files, mounts, denied, shell = (
            "p",
            0,
            [],
            True,
            0,
            [],
            [],
            0,
        )

    check(
        Tool,
        {"text": "http://example.com/ /etc/passwd rm -rf /", "path": None, "command": 5},
        Profile,
        None,
        str(tmp_path),
        [],
    )

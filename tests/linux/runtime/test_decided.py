"""What a file tool opens is what policy saw: a link that leads elsewhere by then is refused, at
level none and in the sandbox.
"""

import itertools
import json
import os
import signal

import pytest
from agents import UUID, Agent, linux, tool_call

from clawlite.core.base.errors import SandboxDenied
from clawlite.host.builder.build import build_beside
from clawlite.linux.files.file_scope import Scope
from clawlite.linux.files.workspace import DecidedPaths
from clawlite.linux.tools.file_tools import run
from clawlite.linux.tools.precheck import check
from clawlite.protocols.sandbox.profile import Profile

CANARY = "CANARY of the private folder"
RULES = [
    {
        "id": "private",
        "action": "deny",
        "scope": "all",
        "conditions": {"path_within": "/workspace/private"},
    },
    {
        "id": "asked",
        "action": "require-approval",
        "scope": "all",
        "conditions": {"path_within": "/workspace/asked"},
    },
    {"id": "all", "action": "allow", "scope": "all"},
]
CHANGED = "a link leads there now"


class Place:
    """An agent with four file tools, its workspace "ws" with public, asked and private in it,
    and a link "door".
    """

    def __init__(self, folder, level: str):
        self.folder, self.ws, self.numbers = folder, folder / "ws", itertools.count(1)
        for name in ("public", "asked", "private"):
            (self.ws / name).mkdir(parents=True)
            (self.ws / name / "key").write_text(CANARY if name == "private" else name)
        spec = {
            "identity": {"inline": {"name": "a", "personality": "x", "autonomy": "autonomous"}},
            "providers": [
                {
                    "inline": {
                        "name": "p",
                        "protocol": "custom",
                        "endpoint": "builtin:reflex",
                        "model": "m",
                        "auth": {"type": "none"},
                    }
                }
            ],
            "tools": [
                "claw://registry/clawlite/%s@1.0.0" % name
                for name in ("read-file", "write-file", "edit-file", "list-directory")
            ],
            "sandbox": {
                "inline": {
                    "name": "s",
                    "level": level,
                    "capabilities": {
                        "filesystem": {
                            "mode": "scoped",
                            "mount_paths": [{"path": str(self.ws), "permissions": "rw"}],
                        }
                    },
                }
            },
            "policies": [{"inline": {"name": "p", "rules": RULES}}],
        }
        (folder / "claw.json").write_text(
            json.dumps({"claw": "0.3.0", "kind": "Claw", "metadata": {"name": "a"}, "spec": spec})
        )
        (folder / "clawlite.toml").write_text('reflex = "r.toml"\n')
        (folder / "r.toml").write_text('[[rule]]\nwhen = "x"\nsay = "y"\n')
        self.agent = Agent(linux("serve", build_beside(str(folder)), "--stdio"), folder / "home")

    def lead(self, name: str, door: str = "door"):
        """Let the link *door* lead to *name*."""
        os.symlink(name, self.ws / "new")
        os.rename(self.ws / "new", self.ws / door)

    def send(self, tool: str, **arguments) -> int:
        number = next(self.numbers)
        self.agent.line(json.dumps(tool_call(tool, arguments, number)))
        return number

    def answer(self) -> str:
        said = self.agent.message()
        return (
            "%d %s" % (said["error"]["code"], said["error"]["message"])
            if "error" in said
            else said["result"]["content"][0]["text"]
        )

    def asked(self, tool: str, meanwhile, **arguments) -> str:
        """Call *tool*, do *meanwhile* while a person is asked, and let the person say yes."""
        number = self.send(tool, **arguments)
        assert self.agent.is_serving()  # answered behind the call, so policy has decided
        meanwhile()
        assert self.agent.call("claw.tool.approve", {"request_id": UUID % number}, id="yes")[
            "result"
        ] == {"acknowledged": True}
        return self.answer()


@pytest.fixture(params=["none", "process"])
def place(tmp_path, request):
    # the tools' user has to pass the folders above
    if request.param == "process" and os.geteuid() == 0:
        for folder in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
            folder.chmod(0o755)
    one = Place(tmp_path, request.param)
    if os.geteuid() == 0:
        for top, _, names in os.walk(one.ws):
            for path in [top] + [os.path.join(top, name) for name in names]:
                os.chown(path, 65534, 65534)
    with one.agent:
        one.agent.initialize()
        yield one


def test_a_link_that_leads_elsewhere_after_the_decision_is_refused(place):
    place.lead("asked")
    assert place.asked("read-file", lambda: None, path="door/key") == "asked"
    said = place.asked("read-file", lambda: place.lead("private"), path="door/key")
    assert said.startswith("-32010 ") and CHANGED in said and "/asked/key" in said
    place.lead("asked")
    # also to what another rule would allow
    said = place.asked("list-directory", lambda: place.lead("public"), path="door")
    assert said.startswith("-32010 ") and CHANGED in said
    place.send("read-file", path="door/key")
    assert place.answer() == "public"


def test_nothing_is_written_or_made_where_policy_has_not_looked(place):
    for tool, more in (
        ("write-file", {"content": "x"}),
        ("edit-file", {"old_text": "CANARY", "new_text": "x"}),
    ):
        place.lead("asked")
        assert place.asked(tool, lambda: place.lead("private"), path="door/key", **more).startswith(
            "-32010 "
        )
    place.lead("asked")
    assert place.asked(
        "write-file", lambda: place.lead("private"), path="door/a/b/c", content="x"
    ).startswith("-32010 ")
    assert (
        os.listdir(place.ws / "private") == ["key"]
        and (place.ws / "private/key").read_text() == CANARY
    )
    place.lead("asked")
    assert (
        place.asked("write-file", lambda: None, path="door/a/b/c", content="x")
        == "wrote 1 bytes to door/a/b/c"
    )
    assert (place.ws / "asked/a/b/c").read_text() == "x"


def test_a_folder_that_becomes_a_link_after_the_decision_is_refused(place):
    def swap():
        os.rename(place.ws / "asked", place.ws / "away")
        place.lead("private", "asked")

    assert place.asked("read-file", swap, path="asked/key").startswith("-32010 ")


def test_a_link_that_flips_all_the_time_never_leads_past_a_rule(place):
    place.lead("public")
    child = os.fork()
    if not child:
        try:
            for name in itertools.cycle(("private", "public")):
                place.lead(name)
        finally:
            os._exit(1)
    try:
        said = []
        while len(said) < 150 or (len(said) < 3000 and not {"public"} < set(said)):
            place.send("read-file", path="door/key")
            said.append(place.answer())
        assert os.waitpid(child, os.WNOHANG) == (0, 0), "the flips ended early"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert CANARY not in said and "public" in said
    assert {one[:6] for one in said if one != "public"} <= {"-32010", "-32011"} and len(
        set(said)
    ) > 1


def test_a_function_of_tools_py_is_refused_too_when_a_link_has_changed(tmp_path):
    class Tool:
        name, paths, flags = "t", ["path"], 1

    (tmp_path / "a").write_text("")
    (tmp_path / "b").write_text("")
    os.symlink("b", tmp_path / "door")
    profile = Profile(
        [
            "",
            1,
            [0, [], True],
            [2, [(str(tmp_path), True)], []],
            [0, False],
            [0, [], []],
            [None] * 6,
        ]
    )
    with pytest.raises(SandboxDenied) as e:
        check(
            Tool,
            {"path": "door"},
            profile,
            None,
            str(tmp_path),
            [],
            {"/workspace/door": "/workspace/a"},
        )
    assert e.value.data["reason"] == "link changed" and "try again" in e.value.hint
    check(
        Tool,
        {"path": "door"},
        profile,
        None,
        str(tmp_path),
        [],
        {"/workspace/door": "/workspace/b"},
    )
    before = os.listdir("/proc/self/fd")
    with pytest.raises(SandboxDenied):
        run("read-file", {"path": "door"}, Scope(profile, str(tmp_path), [], "/workspace/a"))
    assert os.listdir("/proc/self/fd") == before


def test_what_was_decided_last_holds_for_a_call_and_its_attempts():
    decided = DecidedPaths(running := {1: None})
    decided.note_path(1, "/a", "/private")  # a call that is denied: its handler does not begin
    decided.note_path(1, "/a", "/b")
    assert decided.paths_of(1) == {"/a": "/b"} == decided.paths_of(1) and decided.paths_of(2) == {}
    # of a world model that is asked between decision and handler
    decided.note_path(1, "/d", "/d")
    assert decided.paths_of(1)["/a"] == "/b"
    decided.note_path(1, "/d", "/d")
    assert decided.paths_of(1)["/a"] == "/b"
    for task in range(2, 200):
        decided.note_path(task, "/x", "/y")
    assert decided.paths_of(1) == {"/a": "/b", "/d": "/d"} and len(decided._seen) <= 64 + len(
        running
    )


def test_where_the_root_of_a_rule_leads_is_not_what_a_call_opens(tmp_path):
    class Tool:
        name = "t"

    from clawlite.core.turns.gates import _resolve

    for opens in (True, False):
        effect = _resolve(Tool, ["/workspace/door"], opens).send(None)
        assert effect[1:] == ("/workspace/door", opens)

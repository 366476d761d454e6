"""The tools of the registry in an image: what a build takes, what it refuses, and what a device
must have for them.
"""

import json

import pytest

from clawlite.core.formats.automaton import search
from clawlite.core.formats.schema import check
from clawlite.core.image import image as layout
from clawlite.core.image.image import Image
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.compiler import compiler
from clawlite.host.documents import registry
from clawlite.host.manifest import manifest
from clawlite.protocols.sandbox.profile import Profile

PROCESS = {
    "level": "process",
    "capabilities": {
        "filesystem": {
            "mode": "scoped",
            "mount_paths": [{"path": "/workspace", "permissions": "rw"}],
        },
        "shell": {"mode": "full"},
    },
}
NONE = {"level": "none"}


def build(folder, *names, sandbox=PROCESS, tools="", more=(), at_use=False):
    spec = {
        "identity": {"inline": {"name": "a", "personality": "You are."}},
        "providers": [
            {
                "inline": {
                    "name": "p",
                    "protocol": "openai-compatible",
                    "endpoint": "http://h/v1",
                    "model": "m",
                    "auth": {"type": "none"},
                }
            }
        ],
        "tools": ["claw://registry/clawlite/%s@1.0.0" % name for name in names] + list(more),
        "sandbox": {"inline": dict(sandbox, name="s")},
        "policies": [
            {"inline": {"name": "p", "rules": [{"id": "all", "action": "allow", "scope": "all"}]}}
        ],
    }
    (folder / "claw.yaml").write_text(
        json.dumps({"claw": "0.3.0", "kind": "Claw", "metadata": {"name": "a"}, "spec": spec})
    )
    if tools:
        (folder / "tools.py").write_text(tools)
    data = compiler.build(manifest.load(folder), at_use=at_use).data
    return Image(lambda at, size: data[at : at + size], len(data))


def problem(*args, **more) -> str:
    with pytest.raises(ManifestErrors) as caught:
        build(*args, **more)
    (told,) = [problem.text() for problem in caught.value.problems]
    return told


def shell(**rules) -> dict:
    return {"level": "process", "capabilities": {"shell": dict({"mode": "restricted"}, **rules)}}


@pytest.mark.parametrize(
    "name, ability, category",
    [
        ("read-file", "files", "filesystem"),
        ("memory-read", "files", "memory"),
        ("exec-shell", "shell", "shell"),
        ("spawn", "shell", "shell"),
        ("web-fetch", "web", "network"),
        ("pwm-write", "pins", "hardware"),
        ("sleep", "pins", "hardware"),
    ],
)
def test_a_tool_asks_its_device_for_what_it_works_with(tmp_path, name, ability, category):
    image = build(tmp_path, name)
    assert ability in image.requires and image.tool(name).category == category
    assert bool(image.tool(name).flags & layout.HAS_BOARD) == (ability == "pins")
    assert bool(image.tool(name).flags & layout.GENERATOR) == (name == "sleep")
    assert image.tool(name.replace("-", "_")).name == name


def test_message_needs_a_channel_that_carries_it(tmp_path):
    assert "no channel carries what message would send" in problem(tmp_path, "message")


@pytest.mark.parametrize("name", ["exec-shell", "spawn"])
def test_a_shell_needs_a_sandbox(tmp_path, name):
    assert f"{name} needs a sandbox of level process" in problem(tmp_path, name, sandbox=NONE)


def test_a_search_needs_an_endpoint(tmp_path):
    assert "nothing says where web-search searches" in problem(tmp_path, "web-search")
    (tmp_path / "clawlite.toml").write_text('[search]\nendpoint = "https://h/search?q={query}"\n')
    assert build(tmp_path, "web-search").tool("web-search")


def test_an_operators_agent_says_it_at_use(tmp_path):
    assert build(
        tmp_path, "message", "web-search", "exec-shell", sandbox=NONE, at_use=True
    ).names == ["message", "web-search", "exec-shell"]


def test_every_tool_has_a_schema_that_refuses_what_it_does_not_know(tmp_path):
    (tmp_path / "clawlite.toml").write_text(BUSES)
    image = build(tmp_path, *registry.names(), at_use=True)
    schemas = {tool.name: tool.spec.input_schema for tool in manifest.load(tmp_path).tools}
    for name in image.names:
        fits = {
            argument: name == "digital-write" or 1 if argument == "value" else GOOD[argument]
            for argument in schemas[name].get("required", [])
        }
        assert check(image.tool(name).schema, fits, image.automaton) is None
        assert "unknown" in check(image.tool(name).schema, dict(fits, unknown=1), image.automaton)


GOOD = dict.fromkeys(
    (
        "path",
        "content",
        "old_text",
        "new_text",
        "command",
        "query",
        "url",
        "pin",
        "channel",
        "chat_id",
        "bus",
        "task",
        "call",
        "text",
        "name",
    ),
    "x",
) | {"milliseconds": 1, "address": 8, "data": [0]}
BUSES = "".join(
    '[[buses]]\nname = "%s"\nkind = "%s"\n%s\n' % one
    for one in (
        ("a", "i2c", "bus = 1\naddresses = [8]"),
        ("b", "spi", "bus = 0"),
        ("c", "one-wire", 'devices = ["28-0316a279d1ff"]'),
    )
)


@pytest.mark.parametrize(
    "name, good, bad",
    [
        (
            "exec-shell",
            {"command": "ls", "timeout": 300},
            [
                {"command": "ls", "timeout": 300.5},
                {"command": "ls", "timeout": 0},
                {"command": "ls \0 -la"},
                {"command": ""},
                {"command": "x" * 131072},
                {},
            ],
        ),
        (
            "spawn",
            {"command": "ls", "args": ["-l"] * 1000, "timeout": 0.5},
            [
                {"command": "ls", "args": ["-l"] * 1001},
                {"command": "l\0s"},
                {"command": "ls", "args": ["\0"]},
                {"command": "ls", "args": "-l"},
            ],
        ),
        ("read-file", {"path": "x" * 4096}, [{"path": "x" * 4097}, {"path": ""}, {"path": 1}]),
        (
            "edit-file",
            {"path": "a", "old_text": "x", "new_text": ""},
            [{"path": "a", "old_text": "", "new_text": ""}, {"path": "a", "old_text": "x"}],
        ),
        (
            "memory-write",
            {"content": "x", "mode": "append"},
            [{"content": "x", "mode": "prepend"}, {"content": ""}],
        ),
        (
            "web-search",
            {"query": "x", "num_results": 20},
            [{"query": "x", "num_results": 0}, {"query": "x", "num_results": 21}],
        ),
        (
            "web-fetch",
            {"url": "x", "headers": {"a": "b"}},
            [{"url": "x", "method": "TRACE"}, {"url": "x", "headers": {"a": 1}}],
        ),
        (
            "pwm-write",
            {"pin": "p", "value": 65535},
            [{"pin": "p", "value": 65536}, {"pin": "p", "value": -1}],
        ),
        ("sleep", {"milliseconds": 60000}, [{"milliseconds": 60001}, {"milliseconds": -1}]),
    ],
)
def test_arguments_have_bounds(tmp_path, name, good, bad):
    image = build(tmp_path, name, at_use=True)
    assert check(image.tool(name).schema, good, image.automaton) is None
    for arguments in bad:
        assert check(image.tool(name).schema, arguments, image.automaton)


def files(**more) -> dict:
    return {"level": "process", "capabilities": {"filesystem": dict({"mode": "scoped"}, **more)}}


def test_paths_of_a_sandbox_are_absolute_in_the_image(tmp_path):
    mounts = [
        {"path": path, "permissions": "rw"}
        for path in ("/workspace/", "/workspace/data", "/srv//y", "/")
    ]
    image = build(
        tmp_path,
        "read-file",
        sandbox=files(mount_paths=mounts, denied_paths=["private", ".", "./a//b/", "/etc/shadow/"]),
    )
    profile = Profile(image.section(layout.SANDBOX))
    assert [path for path, _ in profile.mounts] == ["/workspace", "/workspace/data", "/srv/y", "/"]
    assert profile.denied == ["/workspace/private", "/workspace", "/workspace/a/b", "/etc/shadow"]


@pytest.mark.parametrize(
    "path, said",
    [
        ("~/.ssh", "no home is known"),
        ("", "a path from the root"),
        ("x" * 4097, "a path from the root"),
    ],
)
def test_a_path_that_means_nothing_is_refused(tmp_path, path, said):
    assert said in problem(tmp_path, "read-file", sandbox=files(denied_paths=[path]))
    assert said in problem(
        tmp_path, "read-file", sandbox=files(mount_paths=[{"path": path, "permissions": "ro"}])
    )


# -- shell patterns


def test_shell_patterns_are_compiled_into_the_image(tmp_path):
    image = build(
        tmp_path,
        "exec-shell",
        sandbox=shell(
            blocked_commands=["rm -rf /"], blocked_patterns=[r"eval\s+", r"x$", r"eval\s+"]
        ),
    )
    profile = Profile(image.section(layout.SANDBOX))
    assert profile.commands == ["rm -rf /"] and profile.patterns[0] == profile.patterns[2]
    assert search(image.automaton(profile.patterns[0]), b"eval x")
    # a shell ignores that newline, so the rule does too
    assert search(image.automaton(profile.patterns[1]), b"x\n")


@pytest.mark.parametrize(
    "pattern, said",
    [
        (r"(a)\1", "a back-reference has no automaton, at position 3"),
        (r"(?=a)", "look-ahead"),
        (r"a(?<!b)", "look-ahead or look-behind"),
        (r"(", "is no regular expression"),
        (r"a{5000}", "a repeat count is above 1000"),
    ],
)
def test_a_pattern_without_an_automaton_is_refused(tmp_path, pattern, said):
    told = problem(tmp_path, "exec-shell", sandbox=shell(blocked_patterns=["fine", pattern]))
    assert said in told and "claw.yaml" in told


@pytest.mark.parametrize("command", ["", " ", "*", " * * "])
def test_a_blocked_command_without_a_word_is_refused(tmp_path, command):
    assert "expected words of a command" in problem(
        tmp_path, "exec-shell", sandbox=shell(blocked_commands=[command])
    )


# -- what runs in one piece

PLAIN = 'def f() -> str:\n    """F."""\n    return "x"\n'
TOOL = {
    "inline": {
        "name": "f",
        "description": "F",
        "input_schema": {"type": "object"},
        "timeout_ms": 50,
    }
}


def test_what_runs_in_one_piece_can_be_ended_in_a_child_alone(tmp_path):
    assert "f in tools.py runs in one piece" in problem(
        tmp_path, sandbox=NONE, tools=PLAIN, more=[TOOL]
    )
    assert build(tmp_path, tools=PLAIN, more=[TOOL]).tool("f").timeout_ms == 50
    (tmp_path / "clawlite.toml").write_text("[budget]\ntimeout_per_tool_ms = 40\n")
    image = build(tmp_path, "read-file", "sleep", tools=PLAIN, more=[TOOL])
    assert [image.tool(name).timeout_ms for name in ("f", "read-file", "sleep")] == [40, 40, 0]

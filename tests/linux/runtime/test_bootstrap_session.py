"""``clawlite serve --stdio`` where there is no agent: INIT, and the manifest in claw.initialize
(CKP 0.2.0, 8 and 9.3.1).
"""

import copy
import json
import shutil
import signal

import pytest
from agents import INITIALIZE, Agent, linux, make_bench, tool_call

REQUEST, PARAMS, MANIFEST, MISSING = -32600, -32602, -32060, -32061
STATUS = b'{"jsonrpc":"2.0","id":7,"method":"claw.status"}\n'
SPEC = {
    "identity": {"inline": {"name": "guest", "personality": "x", "autonomy": "autonomous"}},
    "providers": [
        {
            "inline": {
                "protocol": "openai-compatible",
                "endpoint": "http://127.0.0.1:9/v1",
                "model": "m",
                "auth": {"type": "none"},
            }
        }
    ],
}
TOOLS = dict(
    SPEC,
    channels=[{"inline": {"type": "cli", "transport": "stdio", "auth": {"secret_ref": "nobody"}}}],
    tools=["claw://registry/clawlite/board-info@1.0.0"],
    sandbox={"inline": {"name": "none", "level": "none"}},
    policies=[
        {"inline": {"name": "all", "rules": [{"id": "all", "action": "allow", "scope": "all"}]}}
    ],
)


def params(spec: dict = SPEC, name: str = "guest-agent", **more) -> dict:
    return dict(
        INITIALIZE,
        manifest={
            "kind": "Claw",
            "metadata": {"name": name, "version": "1.2.3"},
            "spec": copy.deepcopy(spec),
            **more,
        },
    )


@pytest.fixture
def vacant(tmp_path):
    """Return a function that serves in an empty folder."""
    (tmp_path / "empty").mkdir()

    def start(**env):
        return Agent(linux("serve", "--stdio"), tmp_path / "home", cwd=tmp_path / "empty", env=env)

    return start


def test_8_init_until_a_manifest_comes(vacant, tmp_path):
    with vacant(PYTHONPROFILEIMPORTTIME=1) as agent:
        assert agent.call("claw.status")["error"]["code"] == REQUEST
        assert agent.call("claw.initialize", {})["error"]["code"] == PARAMS
        assert agent.call("claw.status")["result"] == {"state": "INIT", "uptime_ms": 0}
        agent.line(json.dumps(tool_call("quick")))
        assert agent.message()["error"]["code"] in (REQUEST, -32601)
        result = agent.call("claw.initialize", params())["result"]
        assert result == {
            "protocolVersion": "0.2.0",
            "agentInfo": {"name": "guest", "version": "1.2.3"},
            "conformanceLevel": "level-1",
            "capabilities": {},
        }
        assert agent.is_serving()
        # the compiler never was in here
        assert (
            "clawlite.core.agent.agent" in agent.errors() and "clawlite.host" not in agent.errors()
        )
        agent.end()
        assert agent.wait() == 0
    assert sorted(path.name for path in (tmp_path / "empty").iterdir()) == []
    assert (tmp_path / "home/state/guest-agent/log.jsonl").exists()


def test_9_3_1_registry_tools_of_an_inline_manifest_run(vacant):
    with vacant() as agent:
        result = agent.call("claw.initialize", params(TOOLS))["result"]
        assert result["conformanceLevel"] == "level-2" and result["capabilities"] == {"tools": {}}
        assert result["limits"] == {"calls": 4096, "seconds": 300}
        agent.line(json.dumps(tool_call("board-info", number=2)))
        assert agent.message()["result"]["isError"] is False


def test_9_3_1_the_same_manifest_again_is_the_same_agent_and_another_one_another(vacant):
    with vacant() as agent:
        for name in ("guest-agent", "guest-agent", "other"):
            assert (
                agent.call("claw.initialize", params(TOOLS, name))["result"]["agentInfo"]["name"]
                == "guest"
            )
            assert agent.call("claw.shutdown")["result"] == {"drained": True}
            assert agent.call("claw.status")["result"]["state"] == "STOPPED"
        assert agent.call("claw.initialize", params({"identity": "x"}))["error"]["code"] == MISSING
        assert agent.call("claw.status")["result"]["state"] == "STOPPED"
        assert agent.call(
            "claw.initialize", dict(INITIALIZE, manifest="claw://local/identity/guest@1.2.3")
        )["result"]
        agent.end()
        assert agent.wait() == 0 and agent.errors() == ""


def test_a_second_manifest_in_a_session_is_refused(vacant):
    with vacant() as agent:
        agent.call("claw.initialize", params())
        assert agent.call("claw.initialize", params(TOOLS))["error"]["code"] == REQUEST
        assert agent.is_serving()


def test_what_comes_with_it_is_answered_in_order(vacant):
    """Lines behind it, and a batch with it: each is answered once."""
    with vacant() as agent:
        initialize = json.dumps(
            {"jsonrpc": "2.0", "id": 1, "method": "claw.initialize", "params": params()}
        ).encode()
        agent.send(
            b"["
            + STATUS[:-1]
            + b","
            + initialize
            + b',{"jsonrpc":"2.0","id":8,"method":"claw.status"}]\n'
            + STATUS
            + STATUS[:-1]
        )
        agent.end()
        assert agent.wait() == 0
        batch, second, last = [json.loads(line) for line in agent.text().splitlines()]
        assert [answer["id"] for answer in batch] == [7, 1, 8]
        assert batch[0]["error"]["code"] == batch[2]["error"]["code"] == REQUEST, (
            "9.3.1: nothing is done before initialize is answered"
        )
        assert second["result"]["state"] == last["result"]["state"] == "READY"


@pytest.mark.parametrize(
    "spec, said",
    [
        (
            dict(SPEC, identity="./identity.yaml"),
            "spec.identity: a manifest in claw.initialize names no files",
        ),
        (dict(SPEC, identity="/etc/passwd"), "names no files"),
        (
            dict(SPEC, tools=["*.yaml"]),
            "spec.tools[0]: a manifest in claw.initialize names no files",
        ),
        ({}, "identity"),
        (dict(SPEC, provider=[]), "did you mean"),
        (dict(SPEC, tools=["claw://registry/clawlite/nothing@1.0.0"]), "nothing"),
        (dict(SPEC, tools=["claw://local/tool/x"]), "x"),
        (dict(SPEC, tools=["claw://local/tool/no name"]), "no name"),
        (dict(SPEC, tools=["claw://local/tool/x"], provider=[]), "did you mean"),
        (
            dict(SPEC, world_models=[{"inline": {"name": "w", "backend": {"type": "tool"}}}]),
            "world_models",
        ),
    ],
)
def test_9_3_1_a_manifest_that_cannot_be_built_is_refused_with_its_problems(vacant, spec, said):
    with vacant() as agent:
        error = agent.call("claw.initialize", params(spec))["error"]
        assert (
            error["code"] == (MISSING if said in ("nothing", "x") or "files" in said else MANIFEST)
            and said in error["message"]
            and error["data"]["problems"]
        ), error
        assert agent.call("claw.status")["result"]["state"] == "INIT"
        assert agent.call("claw.initialize", params())["result"]


@pytest.mark.parametrize(
    "manifest, said",
    [
        ("claw://local/identity/guest", "there is no agent here yet"),
        ("claw://registry/clawlite/guest@1.0.0", "there is no agent here yet"),
        ("claw://identity/guest", "canonical form"),
        ("guest", "a claw:// URI"),
        (5, "a Claw manifest or a claw:// URI"),
        ({"kind": "Tool"}, "kind"),
    ],
)
def test_7_a_uri_names_nobody_here(vacant, manifest, said):
    with vacant() as agent:
        error = agent.call("claw.initialize", dict(INITIALIZE, manifest=manifest))["error"]
        assert (
            error["code"] == (MISSING if "no agent here" in said else PARAMS)
            and said in error["message"]
        )


def test_without_the_compiler_it_says_so(vacant, tmp_path):
    (tmp_path / "missing").mkdir()
    (tmp_path / "missing/yaml.py").write_text("raise ImportError('no yaml here', name='yaml')\n")
    (tmp_path / "missing/msgspec.py").write_text(
        "raise ImportError('no msgspec here', name='msgspec')\n"
    )
    root = linux.__globals__["ROOT"]
    with vacant(PYTHONPATH="%s:%s" % (tmp_path / "missing", root)) as agent:
        error = agent.call("claw.initialize", params())["error"]
        assert (
            error["code"] == MANIFEST
            and "has no compiler" in error["message"]
            and "pip install" in error["data"]["hint"]
        )
        assert agent.call("claw.status")["result"]["state"] == "INIT"


def test_hostile_lines_in_init(vacant):
    with vacant() as agent:
        for line, code in (
            (b"{", -32700),
            (b"[]", REQUEST),
            (b"x" * 1100000, REQUEST),
            (b"null", REQUEST),
            (STATUS[:-1], REQUEST),
        ):
            agent.send(line + b"\n")
            assert agent.message()["error"]["code"] == code
        agent.send(
            b'{"jsonrpc":"2.0","method":"claw.initialized"}\n\n\r\n'
            b'{"jsonrpc":"2.0","method":"claw.heartbeat","params":{}}\n' + STATUS
        )
        assert agent.message()["id"] == 7


@pytest.mark.parametrize(
    "number, code", [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]
)
def test_a_signal_ends_it(vacant, number, code):
    with vacant() as agent:
        agent.call("claw.status")
        agent.signal(number)
        assert agent.wait() == code and agent.errors() == ""


def test_the_end_of_input_ends_it(vacant):
    with vacant() as agent:
        agent.end()
        assert agent.wait() == 0 and agent.text() == "" and agent.errors() == ""


def test_an_image_that_lies_there_is_the_agent(tmp_path):
    """Without its manifest too: a device with an image keeps to it, and the log says what was
    asked for.
    """
    (tmp_path / "bench").mkdir()
    (tmp_path / "device").mkdir()
    image = make_bench(tmp_path / "bench")
    for name in ("claw.cbor", "tools.py"):
        shutil.copy(image.parent / name, tmp_path / "device")
    with Agent(
        linux("serve", "--stdio"),
        tmp_path / "home",
        cwd=tmp_path / "device",
        env={"MARKS": tmp_path},
    ) as agent:
        assert agent.call("claw.initialize", params())["result"]["agentInfo"]["name"] == "bench"
        agent.end()
        assert agent.wait() == 0
    events = [
        json.loads(line)
        for line in (tmp_path / "home/state/bench/log.jsonl").read_text().splitlines()
    ]
    (opened,) = [event for event in events if event["event"] == "session.opened"]
    assert (opened["manifest"], opened["agent"], opened["client"], opened["protocol"]) == (
        "guest-agent",
        "bench",
        "test 1",
        "0.2.0",
    )


def test_a_manifest_that_is_named_and_missing_is_an_error(tmp_path):
    (tmp_path / "empty").mkdir()
    with Agent(
        linux("serve", "nothing.yaml", "--stdio"), tmp_path / "home", cwd=tmp_path / "empty"
    ) as agent:
        assert agent.wait() == 2

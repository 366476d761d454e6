"""The protocol to the letter: what an operator's line answers, clause by clause (CKP 0.2.0 and
its Runtime Profile).
"""

import json

import pytest
from agents import INITIALIZE, tool_call
from agents import MANIFEST as GOOD

REQUEST, PARAMS, MANIFEST, MISSING = -32600, -32602, -32060, -32061
STATUS = {"jsonrpc": "2.0", "id": 7, "method": "claw.status"}
OPEN = {"jsonrpc": "2.0", "id": 1, "method": "claw.initialize", "params": INITIALIZE}


def test_9_3_1_nothing_is_done_in_the_batch_of_an_initialize(bench, marks):
    with bench("serve", "--stdio") as agent:
        for batch in ([OPEN, STATUS, tool_call("careful", number=2)], [STATUS, OPEN]):
            agent.line(json.dumps(batch))
            answers = agent.message()
            assert len(answers) == len(batch)
            for answer in answers:
                if answer["id"] == 1:
                    assert "result" in answer
                else:
                    assert (
                        answer["error"]["code"] == REQUEST
                        and "claw.initialize alone" in answer["error"]["message"]
                    )
            assert agent.call("claw.shutdown")["result"]["drained"]
        agent.line(json.dumps([OPEN, {"jsonrpc": "2.0", "method": "claw.initialized"}]))
        assert [answer["id"] for answer in agent.message()] == [1], (
            "a notification is answered by nobody"
        )


@pytest.mark.parametrize("blank", [b"", b" ", b"\t \t", b"   \r", b"\x1e  "])
def test_9_2_a_blank_line_is_silent(bench, blank):
    with bench("serve", "--stdio") as agent:
        agent.initialize()
        agent.send(blank + b"\n" + json.dumps(STATUS).encode() + b"\n")
        assert agent.message()["id"] == 7


@pytest.mark.parametrize(
    "uri",
    [
        "claw://local/identity/nobody",
        "claw://local/tool/echo",
        "claw://registry/clawlite/guest@1.0.0",
        "claw://local/identity/%s@9.9.9",
    ],
)
def test_catalogue_a_uri_that_names_nobody_is_primitive_not_found(bench, uri):
    with bench("serve", "--stdio") as agent:
        name = agent.call("claw.initialize", INITIALIZE)["result"]["agentInfo"]["name"]
        agent.call("claw.shutdown")
        error = agent.call("claw.initialize", dict(INITIALIZE, manifest=uri.replace("%s", name)))[
            "error"
        ]
        assert error["code"] == MISSING, error


@pytest.mark.parametrize("identity", ["somebody", "Bench", "bench ", "claw://local/identity/bench"])
def test_9_3_2_a_call_of_another_identity_runs_nothing(bench, marks, identity):
    with bench("serve", "--stdio") as agent:
        agent.initialize()
        agent.line(json.dumps(tool_call("pump", {"ms": 0}, 3, identity)))
        error = agent.message()["error"]
        assert (
            error["code"] == PARAMS
            and "context.identity" in error["message"]
            and "bench" in error["data"]["hint"]
        )
        assert not (marks / "pump-on").exists()
        agent.line(json.dumps(tool_call("pump", {"ms": 0}, 3)))
        assert agent.message()["result"]["isError"] is False, "the id is free: nothing ran under it"


PROVIDER = {
    "inline": {
        "protocol": "openai-compatible",
        "endpoint": "http://127.0.0.1:9/v1",
        "model": "m",
        "auth": {"type": "none"},
    }
}
NAME = "1 to 63 letters, digits and hyphens, no hyphen first"
PROTOCOL = 'a protocol version, "0.2.x" or "0.3.x"'
REFERENCE = 'a file, a claw:// URI or {"inline": {...}}'
FILLED = "text that is not empty"
LEAST = {"identity": "./i.yaml", "providers": ["./p.yaml"]}


def claw(**more) -> dict:
    return {key: value for key, value in dict(GOOD, **more).items() if value is not ...}


def spec(**more) -> dict:
    return claw(spec={key: value for key, value in dict(LEAST, **more).items() if value is not ...})


def identity(**more) -> dict:
    fields = dict({"personality": "x"}, **more)
    return spec(identity={"inline": {k: v for k, v in fields.items() if v is not ...}})


def put(slot: str, **fields) -> dict:
    """Return a manifest with an inline primitive of *fields* under *slot*."""
    one = {"inline": {key: value for key, value in fields.items() if value is not ...}}
    return spec(**{slot: one if slot in ("memory", "sandbox", "swarm", "telemetry") else [one]})


CHANNEL = {"type": "cli", "transport": "stdio", "auth": {"secret_ref": "CONSOLE"}}
TOOL = {"description": "d", "input_schema": {}}
SKILL = {"description": "d", "tools_required": ["t"], "instruction": "i"}
RULE = {"id": "r", "action": "allow", "scope": "all"}
SWARM = {
    "topology": "pipeline",
    "agents": [{"identity_ref": "a", "role": "worker"}],
    "coordination": {"message_passing": "queue", "backend": "in-process", "concurrency": {}},
    "aggregation": {"strategy": "chain"},
}


def inline(**more) -> dict:
    fields = dict(PROVIDER["inline"], **more)
    one = {"inline": {key: value for key, value in fields.items() if value is not ...}}
    return spec(providers=["./p.yaml", one])


@pytest.mark.parametrize(
    "manifest, path, expected, found",
    [
        (claw(extra=1), "extra", "one of claw, kind, metadata, spec", '"extra"'),
        (claw(claw="1.0.0"), "claw", PROTOCOL, '"1.0.0"'),
        (claw(claw=0.3), "claw", PROTOCOL, "0.3"),
        (claw(metadata={"name": "a b"}), "metadata.name", NAME, '"a b"'),
        (claw(metadata={"name": "a" * 64}), "metadata.name", NAME, '"aaaaaaaaaaaaaaaaaa <... 66'),
        (
            claw(metadata={"name": "a", "version": "1"}),
            "metadata.version",
            'a version such as "1.0.0"',
            '"1"',
        ),
        (claw(claw="0.3.x"), "claw", PROTOCOL, '"0.3.x"'),
        (claw(claw="0.3.0-rc"), "claw", PROTOCOL, '"0.3.0-rc"'),
        (claw(metadata={"name": "-a"}), "metadata.name", NAME, '"-a"'),
        (claw(metadata={"name": "\u0661"}), "metadata.name", NAME, '"'),
        (
            claw(metadata={"name": "a", "version": "1.0.0-"}),
            "metadata.version",
            "a version",
            '"1.0.0-"',
        ),
        (
            claw(metadata={"name": "a", "labels": []}),
            "metadata.labels",
            "an object",
            "an empty list",
        ),
        (claw(metadata={"name": "a", "labels": {"b": True}}), "metadata.labels.b", "text", "true"),
        (claw(spec={}), "spec.identity", REFERENCE, "nothing"),
        (spec(identity=None), "spec.identity", REFERENCE, "null"),
        (spec(identity=5), "spec.identity", REFERENCE, "5"),
        (spec(identity=[LEAST]), "spec.identity", REFERENCE, "a list"),
        (spec(identity={"personality": "x"}), "spec.identity.inline", "an object", "nothing"),
        (spec(providers=...), "spec.providers", "a list of at least one entry", "nothing"),
        (spec(channels=None), "spec.channels", "a list", "null"),
        (spec(memory=None), "spec.memory", REFERENCE, "null"),
        (claw(metadata={"name": "a", "description": None}), "metadata.description", "text", "null"),
        (spec(providers=[]), "spec.providers", "a list of at least one entry", "an empty list"),
        (spec(providers=PROVIDER), "spec.providers", "a list", "an object"),
        (
            spec(providers=["./p.yaml", {"inline": "x"}]),
            "spec.providers[1].inline",
            "an object",
            '"x"',
        ),
        (spec(tools=["./t.yaml", ""]), "spec.tools[1]", REFERENCE, '""'),
        (spec(memory=[]), "spec.memory", REFERENCE, "an empty list"),
        (identity(personality=...), "spec.identity.inline.personality", FILLED, "nothing"),
        (identity(personality=""), "spec.identity.inline.personality", FILLED, '""'),
        (
            identity(autonomy="bold"),
            "spec.identity.inline.autonomy",
            "one of autonomous, observer",
            '"bold"',
        ),
        (identity(capabilities=["a", 1]), "spec.identity.inline.capabilities[1]", "text", "1"),
        (
            identity(context_files={"a": 1}),
            "spec.identity.inline.context_files.a",
            "text",
            "1",
        ),
        (
            inline(protocol="rpc"),
            "spec.providers[1].inline.protocol",
            "one of anthropic-native",
            '"rpc"',
        ),
        (
            inline(protocol=[]),
            "spec.providers[1].inline.protocol",
            "one of anthropic-native",
            "an empty list",
        ),
        (inline(endpoint=...), "spec.providers[1].inline.endpoint", "a URI such as", "nothing"),
        (inline(more=1), "spec.providers[1].inline.more", "one of name, metadata, prot", '"more"'),
        (
            inline(auth={"type": "bearer"}),
            "spec.providers[1].inline.auth.secret_ref",
            FILLED,
            "nothing",
        ),
        (inline(model=""), "spec.providers[1].inline.model", FILLED, '""'),
        (inline(auth=...), "spec.providers[1].inline.auth", "an object", "nothing"),
        (inline(auth={}), "spec.providers[1].inline.auth.type", "one of api-key-header", "nothing"),
        (
            inline(auth={"type": "x"}),
            "spec.providers[1].inline.auth.type",
            "one of api-key-header",
            '"x"',
        ),
        (inline(streaming=1), "spec.providers[1].inline.streaming", "true or false", "1"),
        (inline(fallback={}), "spec.providers[1].inline.fallback", "a list", "an empty object"),
        (inline(limits=[]), "spec.providers[1].inline.limits", "an object", "an empty list"),
        (spec(tools=[{}]), "spec.tools[0].inline", "an object", "nothing"),
        (put("tools"), "spec.tools[0].inline.description", FILLED, "nothing"),
        (put("tools", description="d"), "spec.tools[0].inline.input_schema", "an obj", "nothing"),
        (put("tools", mcp_source={}), "spec.tools[0].inline.mcp_source.uri", FILLED, "nothing"),
        (
            put("tools", **TOOL, composite=True),
            "spec.tools[0].inline.skill_ref",
            FILLED,
            "nothing",
        ),
        (put("tools", **TOOL, composite=1), "spec.tools[0].inline.composite", "true or false", "1"),
        (
            put("channels", **dict(CHANNEL, type="nope")),
            "spec.channels[0].inline.type",
            "one",
            '"n',
        ),
        (
            put("channels", type="cli"),
            "spec.channels[0].inline.transport",
            "one of poll",
            "nothing",
        ),
        (
            put("channels", **CHANNEL, access_control={"mode": "allowlist"}),
            "spec.channels[0].inline.access_control.allowed_ids",
            "a list",
            "nothing",
        ),
        (
            put("skills", **dict(SKILL, tools_required=[])),
            "spec.skills[0].inline.tools_required",
            "a list of at least one entry",
            "an empty list",
        ),
        (put("memory"), "spec.memory.inline.stores", "a list of at least one entry", "nothing"),
        (put("memory", stores=[]), "spec.memory.inline.stores", "a list of at", "an empty list"),
        (
            put("memory", stores=[{"name": "m", "type": "nope"}]),
            "spec.memory.inline.stores[0].type",
            "one of checkpoint, conversation, key-value, semantic, workspace",
            '"nope"',
        ),
        (put("sandbox"), "spec.sandbox.inline.level", "one of container, none", "nothing"),
        (put("sandbox", level="bogus"), "spec.sandbox.inline.level", "one of container", '"bogus"'),
        (
            put("sandbox", level="none", capabilities={"network": {"mode": "maybe"}}),
            "spec.sandbox.inline.capabilities.network.mode",
            "one of allow-all, allowlist, deny",
            '"maybe"',
        ),
        (put("policies", rules=[]), "spec.policies[0].inline.rules", "a list of at", "an empty"),
        (
            put("policies", rules=[RULE, dict(RULE, action="explode")]),
            "spec.policies[0].inline.rules[1].action",
            "one of allow, audit-only, deny, require-approval",
            '"explode"',
        ),
        (put("swarm"), "spec.swarm.inline.topology", "one of broadcast", "nothing"),
        (
            put("swarm", **dict(SWARM, aggregation=...)),
            "spec.swarm.inline.aggregation",
            "an object",
            "nothing",
        ),
        (put("telemetry", exporters=5), "spec.telemetry.inline.exporters", "a list of", "5"),
        (
            put("telemetry", exporters=[{"type": "file"}]),
            "spec.telemetry.inline.exporters[0].path",
            "text",
            "nothing",
        ),
        (put("world_models"), "spec.world_models[0].inline.paradigm", "one of expl", "nothing"),
        (
            spec(**{"tool\u202e\x1b": []}),
            "spec.tool\\u202e\\x1b",
            "one of identity, providers",
            '"tool',
        ),
    ],
)
def test_6_a_manifest_beside_an_image_is_checked(bench, manifest, path, expected, found):
    with bench("serve", "--stdio") as agent:
        error = agent.call("claw.initialize", dict(INITIALIZE, manifest=manifest))["error"]
        problem = error["data"]["problems"][0]
        assert error["code"] == MANIFEST and problem["path"] == path, error
        assert problem["expected"].startswith(expected) and problem["found"].startswith(found)
        said = "manifest.%s: expected %s, found %s" % (path, problem["expected"], problem["found"])
        assert error["message"] == said
        agent.initialize()


@pytest.mark.parametrize(
    "manifest",
    [
        claw(claw=...),
        claw(claw="0.2.0"),
        claw(
            metadata={
                "name": "a" * 63,
                "version": "1.0.0-rc.1",
                "labels": {"b": "c"},
                "annotations": {"d": 1},
                "e": 1,
            }
        ),
        spec(
            identity={"inline": {"personality": "x"}},
            providers=[PROVIDER],
            tools=[],
            channels=[],
            memory={"inline": {"stores": [{"name": "m", "type": "semantic"}]}},
            world_models=["./w.yaml"],
        ),
        put("tools", **TOOL),
        put("tools", name="bridge", mcp_source={"uri": "stdio:///srv/mcp"}),
        put("channels", **CHANNEL),
        put("skills", **SKILL),
        put("sandbox", level="process", runtime="native"),
        put("policies", rules=[dict(RULE, scope="skill")]),
        put("swarm", **SWARM),
        put("telemetry", exporters=[{"type": "console"}, {"type": "sqlite", "path": "t.db"}]),
        put("world_models", paradigm="implicit", backend={"type": "tool", "ref": "t"}),
        identity(name="a", locale="de", capabilities=["b"], context_files={}, autonomy="observer"),
        inline(name="a", protocol="custom", hints={}, fallback=[], limits={}, retry={}),
    ],
)
def test_6_what_the_manifest_beside_an_image_may_be(bench, manifest):
    with bench("serve", "--stdio") as agent:
        assert "result" in agent.call("claw.initialize", dict(INITIALIZE, manifest=manifest))
        bad = dict(INITIALIZE, manifest=spec(providers=[]))
        error = agent.call("claw.initialize", bad)["error"]
        assert error["code"] == REQUEST, "the state comes before the manifest"
        assert agent.call("claw.shutdown")["result"]["drained"]
        assert agent.call("claw.initialize", bad)["error"]["code"] == MANIFEST
        assert agent.call("claw.status")["result"]["state"] == "STOPPED"

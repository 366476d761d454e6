"""Every hint of the front end that names a field is followed, and then the agent builds.

A row has the hint as it stands in the source ("{}" for what is filled in), a mistake that earns it,
and for each way out that the hint offers the same project with that done.  The last test finds the
hints in the source, so one without a row is noticed.
"""

import ast
import json
import re
from pathlib import Path

import pytest

from clawlite.host.base.problems import ManifestErrors
from clawlite.host.builder.build import build_beside
from clawlite.host.builder.check import check

HOST = Path(__file__).resolve().parents[3] / "clawlite" / "host"
ROOMS = (
    "channels compiler fit hardware manifest mcp memory models policy providers sandbox skills "
    "swarm tools world_models"
).split()
NAMES_A_FIELD = re.compile(
    r"\b[a-z_]+: (?!/)|\b[a-z_]+ = |\[\[?[a-z]|\b(?:Swarm|Sandbox|Channel)\b|"
    r"\b(?:access_control|max_size_mb|trigger|retention\.)"
)
# hints that are made of the types of channels there are
COMPOSED = {
    "declare a Channel of type cli or telegram, or of type queue with a topic in [mqtt] replies"
}
# {hint: why no row follows it}
ELSEWHERE = {
    'name a provider with protocol "openai-compatible" or the local model ("builtin:local"), or '
    "remove embedding: the store is searched by words then": "tests/host/providers has the mistake",
    "take it out, make it invalid where it came from, and store a new "
    "one: clawlite secrets set NAME": "tests/linux/admin/test_secrets_commands.py",
    "the log and the audit name rules by their ids: give each its own": "names no field",
    "name the manifest, or make one with: clawlite new NAME": "tests/host/projects",
    "name claw.yaml or its folder: tools.py beside it is read by itself": "an argument, no field",
    "name the file that has kind: Claw": "an argument, no field",
    "write no path, user or password into it: [mqtt] has fields for those": (
        "needs a broker's URL: tests/host/channels/test_channels.py has those that are refused"
    ),
    "shorten or change it: MQTT takes no other topics": "names no field",
    "remove this one: its callers say who they are": "a whole Channel goes",
    "add annotations: { readOnlyHint: true } to it if it has none": (
        "tests/linux/tools/test_world_model.py builds with one"
    ),
    "add { provider_ref: {} } to the fallback of {}": (
        "tests/linux/tools/test_world_model.py builds with one"
    ),
    "reflex rules are [[rule]] tables": "all rows with reflex rules write such a table",
    "name it under [[credentials]], with the server's host": (
        "needs a server: tests/linux/mcp/test_remote.py builds with one"
    ),
    'remove trust, or use flow = "client_credentials"': (
        "needs a server: tests/linux/mcp/test_sign_in.py builds with one"
    ),
    "set the level of the Sandbox to process": (
        "needs a server: tests/linux/mcp/test_own_rules.py builds with one"
    ),
    "a driver: clawlite add {}; or put {}.py there; when the device has it installed: packages = "
    '["{}"] above the first section of clawlite.toml': (
        "needs an index: tests/host/drivers and tests/host/tools/test_imports.py do each"
    ),
    "rename this one, or: clawlite remove {}": "names no field",
    "name the people: the log has the id of whoever was refused (channel.refused)": (
        "needs two documents: tests/host/channels/test_channels.py has both"
    ),
    "add a Swarm": "tests/host/swarm/test_swarms.py builds such agents",
    'remove client_credential, or use flow = "device"': (
        "needs a server: tests/linux/mcp/test_sign_in.py builds with one"
    ),
    "give one of them a name: stdio:///PATH#NAME, https://HOST/PATH#NAME": (
        "needs two servers: tests/host/mcp/test_pinned.py has them"
    ),
    'name the one of this host: [tls] ca = ["FILE.pem"] in clawlite.toml; or let a gateway check '
    "it: [gateway]": "needs a certificate: tests/host/providers/test_trust.py checks with one",
    "or ask through a gateway: [gateway]": (
        "needs a certificate: tests/host/providers/test_trust.py checks with one"
    ),
    'name the certificate of the gateway, or its authority: [tls] ca = ["gateway.pem"]': (
        "needs a certificate: tests/device/test_device_lan.py builds with one"
    ),
}
REFLEX = 'reflex = "reflex.toml"\n'
LOOK = 'def look() -> str:\n    """Look."""\n    return "x"\n'
MODEL = {
    "name": "model",
    "protocol": "openai-compatible",
    "endpoint": "http://127.0.0.1:9/v1",
    "model": "m",
    "auth": {"type": "none"},
}
RULES = dict(MODEL, name="rules", protocol="custom", endpoint="builtin:reflex", model="r")
ALLOW = {"rules": [{"id": "all", "action": "allow", "scope": "all"}]}
TOOL = {"name": "look", "description": "Look.", "input_schema": {"type": "object"}}
PROCESS = {"level": "process"}


def registry(*names: str) -> dict:
    return {"tools": ["claw://registry/clawlite/%s@1.0.0" % name for name in names]}


def provider(**more) -> dict:
    return {"providers": [{"inline": dict(MODEL, **more)}]}


def channel(type: str, transport: str, **more) -> dict:
    said = {"name": "chat", "type": type, "transport": transport, "auth": {"secret_ref": "KEY"}}
    return {"channels": [{"inline": dict(said, **more)}]}


def queue(**more) -> dict:
    said = {"access_control": {"mode": "open"}, "trigger": {"queue_name": "agents/jobs"}}
    return channel("queue", "polling", **{**said, **more})


def cron(**more) -> dict:
    return channel("cron", "polling", **{"trigger": {"schedule": "0 7 * * *"}, **more})


def store(type: str = "semantic", **more) -> dict:
    backend = {"workspace": "filesystem"}.get(type, "sqlite")
    return {
        "memory": {
            "inline": {"stores": [{"name": "one", "type": type, "backend": backend, **more}]}
        }
    }


def tool(**more) -> dict:
    return {"tools": [{"inline": dict(TOOL, **more)}]}


def tools_of(*tools: dict) -> dict:
    return {"tools": [{"inline": one} for one in tools]}


def sandbox(**more) -> dict:
    return {"sandbox": {"inline": {**PROCESS, **more}}}


HERE = sandbox(level="none")


def scoped(path: str) -> dict:
    files = {"mode": "scoped", "mount_paths": [{"path": path, "permissions": "rw"}]}
    return sandbox(capabilities={"filesystem": files})


def merged(*parts: dict) -> dict:
    return {key: value for part in parts for key, value in part.items()}


SHELL = {"capabilities": {"shell": {"mode": "restricted"}}}
SEARCH = '[search]\nendpoint = "https://search.example.com/?q={query}"\n'
MQTT = '[mqtt]\naddress = "mqtt://127.0.0.1:1883"\n'
AFAR = '[mqtt]\naddress = "%s://broker.example.com:%d"\nuser = "me"\n%s'
PAIRING = {
    "access_control": {"mode": "pairing", "pairing": {"code_expiry_minutes": 5, "max_pending": 2}}
}
KEYED = '[[credentials]]\nname = "KEY"\n'
EMBEDDING = {"embedding": {"provider_ref": "model", "model": "e", "dimensions": 8}}
READS = {"trigger": {"queue_name": "agents/+/jobs"}}
DRIVES = 'def look(board) -> str:\n    """Look."""\n    board.write("pump", 1)\n    return "x"\n'
PIN = '[[pins]]\nname = "pump"\npin = 15\nkind = "%s"\n'
ASKS = dict(TOOL, name="asks", skill_ref="go")
ASK = LOOK.replace("look", "asks")
MOUNTED = {"capabilities": {"secrets": {"injection": "file-mount"}}}
ENVIRONMENT = {"capabilities": {"secrets": {"injection": "environment"}}}
BOUNDARY = {"capabilities": {"secrets": {"injection": "host-boundary"}}}
SKILL = {
    "skills": [
        {
            "inline": {
                "name": "go",
                "description": "G.",
                "tools_required": ["look"],
                "instruction": "Go.",
            }
        }
    ]
}
BUS = '[[buses]]\nname = "wire"\nkind = "i2c"\nbus = 1\naddresses = [64]\n'
OTHER = BUS.replace("wire", "other").replace("64", "%s")
DHT = '[[buses]]\nname = "air"\nkind = "dht"\npin = 15\n%s\n'
OAUTH = '[oauth2.model]\nendpoint = "https://login.example.com/token"\nclient_id = "garden"\n'
SHARED = "/srv/garden"
WORKSPACE = store("workspace", path=SHARED + "/notes", max_size_mb=1)

# hint, (spec, clawlite.toml) of the mistake, the same of each way out
ROWS = [
    (
        "add [oauth2.{}] with endpoint and client_id to clawlite.toml",
        (provider(auth={"type": "oauth2", "secret_ref": "KEY"}), ""),
        [(provider(auth={"type": "oauth2", "secret_ref": "KEY"}), OAUTH)],
    ),
    (
        "declare a Channel of type cli or telegram, or of type queue with a "
        "topic in [mqtt] replies",
        (registry("message"), ""),
        [
            (merged(registry("message"), channel("cli", "stdio")), ""),
            (
                merged(
                    registry("message"),
                    channel("telegram", "polling", access_control={"mode": "open"}),
                ),
                "",
            ),
            (
                merged(registry("message"), queue()),
                MQTT + 'replies = { chat = "agents/said" }\n',
            ),
        ],
    ),
    (
        "add [search] with endpoint to clawlite.toml",
        (registry("web-search"), ""),
        [(registry("web-search"), SEARCH)],
    ),
    (
        "declare a Sandbox of level process with capabilities.shell",
        (merged(registry("exec-shell"), sandbox(level="none")), ""),
        [(merged(registry("exec-shell"), sandbox(**SHELL)), "")],
    ),
    (
        "use level: process, or remove them",
        (merged(tool(), sandbox(level="none", **SHELL)), ""),
        [(merged(tool(), sandbox(**SHELL)), ""), (merged(tool(), sandbox(level="none")), "")],
    ),
    (
        "use level: process",
        (merged(tool(), sandbox(level="none", resource_limits={"memory_mb": 9})), ""),
        [(merged(tool(), sandbox(resource_limits={"memory_mb": 9})), "")],
    ),
    (
        "remove it, or write mode: {}",
        (channel("cli", "stdio", access_control={"mode": "open", "allowed_ids": ["a"]}), ""),
        [
            (channel("cli", "stdio", access_control={"mode": "open"}), ""),
            (
                channel("cli", "stdio", access_control={"mode": "allowlist", "allowed_ids": ["a"]}),
                "",
            ),
        ],
    ),
    ("add {} to the trigger", (queue(trigger={}), MQTT), [(queue(), MQTT)]),
    (
        "add access_control",
        (queue(access_control=None), MQTT),
        [(queue(), MQTT)],
    ),
    (
        "remove access_control",
        (cron(access_control={"mode": "allowlist", "allowed_ids": ["a"]}), ""),
        [(cron(), "")],
    ),
    ('add trigger: { schedule: "0 7 * * *" }', (cron(trigger=None), ""), [(cron(), "")]),
    (
        'add trigger: { queue_name: "agents/jobs" }',
        (queue(trigger=None), MQTT),
        [(queue(), MQTT)],
    ),
    (
        'add replies = { {} = "agents/said/+" } to [mqtt] in clawlite.toml',
        (queue(**PAIRING, **READS), MQTT),
        [(queue(**PAIRING, **READS), MQTT + 'replies = { chat = "agents/said/+" }\n')],
    ),
    (
        'write address = "mqtts://..."; or plain = true, where that line is your own',
        (queue(), AFAR % ("mqtt", 1883, "")),
        [(queue(), AFAR % ("mqtts", 8883, "")), (queue(), AFAR % ("mqtt", 1883, "plain = true\n"))],
    ),
    (
        "remove it, or use type: semantic",
        (store("key-value", search={"strategy": "fts-only"}), ""),
        [(store("key-value"), ""), (store(search={"strategy": "fts-only"}), "")],
    ),
    (
        "use type: checkpoint, or remove it",
        (store("key-value", checkpoint={"max_snapshots": 3}), ""),
        [(store("checkpoint", checkpoint={"max_snapshots": 3}), ""), (store("key-value"), "")],
    ),
    (
        "use max_size_mb, or remove it",
        (store("workspace", path="/srv/x", retention={"max_entries": 5}), ""),
        [
            (store("workspace", path="/srv/x", max_size_mb=5), ""),
            (store("workspace", path="/srv/x"), ""),
        ],
    ),
    (
        "use retention.max_entries",
        (store(max_size_mb=5), ""),
        [(store(retention={"max_entries": 5}), "")],
    ),
    (
        "use type: semantic, or remove it",
        (merged(provider(), store("key-value", **EMBEDDING)), ""),
        [(merged(provider(), store(**EMBEDDING)), ""), (store("key-value"), "")],
    ),
    (
        "remove [gateway] from clawlite.toml, or the embedding",
        (merged(provider(), store(**EMBEDDING)), "[gateway]\n"),
        [
            (merged(provider(), store(**EMBEDDING)), ""),
            (merged(provider(), store()), "[gateway]\n"),
        ],
    ),
    (
        "remove it: it lies in the agent's state folder",
        (store(path="/srv/x"), ""),
        [(store(), "")],
    ),
    (
        "remove it, or use backend: sqlite",
        (store("conversation", backend="filesystem", path="/srv/x", encryption=True), ""),
        [
            (store("conversation", backend="filesystem", path="/srv/x"), ""),
            (
                store("conversation", backend="sqlite", encryption=True),
                '[memory]\nencryption = "KEY"\n',
            ),
        ],
    ),
    (
        "mount /workspace in place of it: the first workspace that all share is the tools' own; or "
        "remove the limit",
        (merged(WORKSPACE, tool(), scoped(SHARED)), ""),
        [
            (merged(WORKSPACE, tool(), scoped("/workspace")), ""),
            (merged(store("workspace", path=SHARED + "/notes"), tool(), scoped(SHARED)), ""),
        ],
    ),
    (
        'name a secret in clawlite.toml: [memory] encryption = "NAME"',
        (store(encryption=True), ""),
        [(store(encryption=True), '[memory]\nencryption = "NAME"\n')],
    ),
    (
        'add tenant_id = "..." to clawlite.toml',
        (store("workspace", path="/srv/{tenant_id}"), ""),
        [(store("workspace", path="/srv/{tenant_id}"), 'tenant_id = "acme"\n')],
    ),
    (
        "add tools = [...] or hosts = [...]",
        (tool(), KEYED),
        [
            (tool(), KEYED + 'hosts = ["api.example.com"]\n'),
            (
                merged(tool(), sandbox(capabilities={"secrets": {"injection": "environment"}})),
                KEYED + 'tools = ["look"]\n',
            ),
        ],
    ),
    (
        "say injection: environment or file-mount under capabilities.secrets of the Sandbox, or "
        "name hosts",
        (merged(tool(), sandbox()), KEYED + 'tools = ["look"]\n'),
        [
            (
                merged(tool(), sandbox(capabilities={"secrets": {"injection": injection}})),
                KEYED + 'tools = ["look"]\n',
            )
            for injection in ("environment", "file-mount")
        ]
        + [(merged(tool(), sandbox()), KEYED + 'hosts = ["api.example.com"]\n')],
    ),
    (
        "to block every command: mode: deny",
        (
            merged(
                registry("exec-shell"),
                sandbox(capabilities={"shell": {"mode": "restricted", "blocked_patterns": [".*"]}}),
            ),
            "",
        ),
        [
            (
                merged(registry("exec-shell"), sandbox(capabilities={"shell": {"mode": "deny"}})),
                "",
            )
        ],
    ),
    (
        'name a file in clawlite.toml: {} = "{}.{}"',
        ({"providers": [{"inline": RULES}]}, None),
        [({"providers": [{"inline": RULES}]}, "")],
    ),
    (
        'where clawlite gateway --listen listens: address = "192.168.1.2:7420"',
        (provider(), '[gateway]\nwire = "tcp"\n'),
        [(provider(), '[gateway]\nwire = "tcp"\naddress = "192.168.1.2:7420"\n')],
    ),
    (
        'add [audit] and webhook = "https://..." to clawlite.toml',
        ({"policies": [{"inline": dict(ALLOW, audit={"destination": "webhook"})}]}, ""),
        [
            (
                {"policies": [{"inline": dict(ALLOW, audit={"destination": "webhook"})}]},
                '[audit]\nwebhook = "https://audit.example.com/in"\n',
            )
        ],
    ),
    (
        "declare a Sandbox of level process with injection: environment or file-mount under "
        "capabilities.secrets, or name hosts",
        (merged(tool(), sandbox(level="none")), KEYED + 'tools = ["look"]\n'),
        [
            (merged(tool(), sandbox(**MOUNTED)), KEYED + 'tools = ["look"]\n'),
            (merged(tool(), sandbox(**ENVIRONMENT)), KEYED + 'tools = ["look"]\n'),
            (merged(tool(), sandbox(level="none")), KEYED + 'hosts = ["api.example.com"]\n'),
        ],
    ),
    (
        "use level: process, or host-boundary",
        (merged(registry("sleep"), sandbox(level="none", **MOUNTED)), ""),
        [
            (merged(registry("sleep"), sandbox(**MOUNTED)), ""),
            (merged(registry("sleep"), sandbox(level="none", **BOUNDARY)), ""),
        ],
    ),
    (
        "tools here: {}",
        (merged(tool(), sandbox(**MOUNTED)), KEYED + 'tools = ["away"]\n'),
        [(merged(tool(), sandbox(**MOUNTED)), KEYED + 'tools = ["look"]\n')],
    ),
    (
        "declare it in clawlite.toml under [[pins]]",
        (tool(), "", DRIVES),
        [(merged(tool(), HERE), PIN % "output", DRIVES)],
    ),
    (
        'declare it in clawlite.toml under [[buses]] with kind = "{}"',
        (tool(), "", DRIVES.replace('write("pump", 1)', 'i2c("pump").scan()')),
        [
            (
                merged(tool(), HERE),
                '[[buses]]\nname = "pump"\nkind = "i2c"\naddresses = [9]\n',
                DRIVES.replace('write("pump", 1)', 'i2c("pump").scan()'),
            )
        ],
    ),
    (
        'give it kind = "pwm" and {} in clawlite.toml, under [[pins]]',
        (tool(), PIN % "pwm", DRIVES.replace('write("pump", 1)', 'tone("pump").play(440)')),
        [
            (
                merged(tool(), HERE),
                PIN % "pwm" + "frequency_hz = [100, 4000]\n",
                DRIVES.replace('write("pump", 1)', 'tone("pump").play(440)'),
            )
        ],
    ),
    (
        'kind = "output" or "pwm" in clawlite.toml can',
        (tool(), PIN % "input", DRIVES),
        [(merged(tool(), HERE), PIN % kind, DRIVES) for kind in ("output", "pwm")],
    ),
    (
        "use level: none for the Sandbox, or built-in tools for the pins",
        (merged(tool(), sandbox()), PIN % "output", DRIVES),
        [
            (merged(tool(), HERE), PIN % "output", DRIVES),
            (merged(registry("digital-write"), sandbox()), PIN % "output"),
        ],
    ),
    (
        'declare [[buses]] with kind = "{}" in clawlite.toml; kinds: {}',
        (registry("i2c-transfer"), ""),
        [(registry("i2c-transfer"), BUS)],
    ),
    (
        'simulated = [{ device = "NAME" }], or nothing',
        ({}, DHT % 'simulate = "00"'),
        [({}, DHT % 'simulated = [{ device = "dht22" }]'), ({}, DHT % "")],
    ),
    (
        "two devices at one address disturb each other: set another address at one of them, or "
        "remove it here",
        ({}, BUS + OTHER % "64, 65"),
        [({}, BUS + OTHER % "66, 65"), ({}, BUS + OTHER % "65")],
    ),
    (
        "add composite: true, or remove it",
        (merged(provider(), SKILL, tools_of(TOOL, ASKS)), "", LOOK + ASK),
        [
            (merged(provider(), SKILL, tools_of(TOOL, dict(ASKS, composite=True))), ""),
            (merged(provider(), SKILL, tools_of(TOOL, dict(ASKS, skill_ref=None))), "", LOOK + ASK),
        ],
    ),
    (
        'put it in quotes: "{}"',
        (tool(description=5), ""),
        [(tool(description="5"), "")],
    ),
    (
        "write it as a list item: - ...",
        ({"tools": registry("sleep")["tools"][0]}, ""),
        [(registry("sleep"), "")],
    ),
]

SHARES = '[[pins]]\nname = "a"\npin = 18\nkind = "pwm"\n' + (
    '[[pins]]\nname = "b"\npin = 13\nkind = "pwm"\n[[pins]]\nname = "c"\npin = 12\nkind = "%s"\n'
)
SIZED = {"backend": None, "max_size_mb": 64}

# the same of what a board cannot do: hint, board, mistake, ways
BOARD_ROWS = [
    (
        "declare sandbox: { inline: { level: none } } to run tools in the agent's own process",
        "pico",
        (tool(), ""),
        [(merged(tool(), sandbox(level="none")), "")],
    ),
    (
        "no channel is left: drive one of them as an output",
        "rpi-4",
        ({}, SHARES % "pwm"),
        [({}, SHARES % "output")],
    ),
    (
        "retention.max_entries in its place: a {} store is counted in entries",
        "pico",
        (store(**SIZED), ""),
        [(store(backend=None, retention={"max_entries": 5}), "")],
    ),
]


def build(folder: Path, spec: dict, settings, functions: str = LOOK, board: str = None) -> list:
    """Build an agent of *spec*; return the problems.

    settings  None for no reflex rules at all
    board     the agent is checked for it alone
    """
    whole = {
        "identity": {"inline": {"personality": "You keep a garden.", "autonomy": "autonomous"}},
        "providers": [{"inline": RULES}],
        "policies": [{"inline": ALLOW}],
        **spec,
    }
    document = {"claw": "0.3.0", "kind": "Claw", "metadata": {"name": "garden"}, "spec": whole}
    (folder / "claw.yaml").write_text(json.dumps(_without_none(document)))
    (folder / "reflex.toml").write_text('[[rule]]\nwhen = "hello"\nsay = "Hi."\n')
    reflex = REFLEX if any(one["inline"] == RULES for one in whole["providers"]) else ""
    (folder / "clawlite.toml").write_text("" if settings is None else reflex + settings)
    (folder / "tools.py").unlink(missing_ok=True)
    if any(isinstance(one, dict) for one in whole.get("tools", ())):
        (folder / "tools.py").write_text(functions)
    try:
        if board:
            check(str(folder), board)
        else:
            build_beside(str(folder))
    except ManifestErrors as e:
        return e.problems
    return []


def _without_none(value):
    if isinstance(value, dict):
        return {key: _without_none(one) for key, one in value.items() if one is not None}
    return [_without_none(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("hint, mistake, ways", ROWS, ids=[row[0][:50] for row in ROWS])
def test_each_way_out_that_a_hint_names_builds(tmp_path, hint, mistake, ways):
    (problem,) = build(tmp_path, *mistake)
    assert re.fullmatch(re.escape(hint).replace(r"\{\}", ".+"), problem.hint), problem.text()
    for way in ways:
        assert [found.text() for found in build(tmp_path, *way)] == [], hint


@pytest.mark.parametrize("hint, board, mistake, ways", BOARD_ROWS)
def test_each_way_out_that_a_hint_names_fits_the_board(tmp_path, hint, board, mistake, ways):
    found = build(tmp_path, *mistake, board=board)
    said = re.escape(hint).replace(r"\{\}", ".+")
    assert len(found) == 1 and re.fullmatch(said, found[0].hint), [one.text() for one in found]
    for way in ways:
        assert [one.text() for one in build(tmp_path, *way, board=board)] == [], hint


def _texts(node) -> list:
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.JoinedStr):
        parts = [one.value if isinstance(one, ast.Constant) else "{}" for one in node.values]
        return ["".join(parts)]
    if isinstance(node, ast.IfExp):
        return _texts(node.body) + _texts(node.orelse)
    if isinstance(node, ast.BoolOp):
        return [text for value in node.values for text in _texts(value)]
    return []


def _hints(call: ast.Call) -> list:
    """Return what *call* passes as a hint: by name, or in its place."""
    name = getattr(call.func, "id", None) or getattr(call.func, "attr", "")
    at = {"Refused": 1, "report": 4, "add": 5}.get(name)
    if name == "problem":  # of a manifest, whose first argument is a primitive; or about a channel
        at = 5 if isinstance(call.func, ast.Attribute) else 4
    found = [keyword.value for keyword in call.keywords if keyword.arg == "hint"]
    return found + (call.args[at : at + 1] if at is not None else [])


def test_each_hint_that_names_a_field_has_its_row():
    found = {
        text
        for room in ROOMS
        for file in sorted((HOST / room).glob("*.py"))
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call)
        for hint in _hints(node)
        for text in _texts(hint)
        if NAMES_A_FIELD.search(text)
    }
    known = [row[0] for row in ROWS + BOARD_ROWS]
    assert len(known) == len(set(known)) and len(found) >= 30
    assert found - set(known) - set(ELSEWHERE) == set(), "a hint that nothing follows"
    assert set(known) | set(ELSEWHERE) <= found | COMPOSED, "a row whose hint is gone"
    for said in ELSEWHERE.values():
        for name in re.findall(r"tests/\S+", said):
            assert (HOST.parents[1] / name).exists(), name

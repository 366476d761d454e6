"""What ``check`` calls valid works: what could never work is found before it is built."""

import pytest

from clawlite.host.base.problems import ManifestErrors
from clawlite.host.builder.build import build
from clawlite.host.builder.check import check
from clawlite.host.compiler import lint
from clawlite.host.manifest import manifest

CLAW = """claw: "0.3.0"
kind: Claw
metadata: { name: "m", version: "1.0.0" }
spec:
  identity: { inline: { name: "m", personality: "p", autonomy: "%s" } }
  providers:
    - inline:
        { name: r, protocol: custom, endpoint: "builtin:reflex", model: r, auth: { type: none } }
  channels:
    - inline: { name: c, type: cli, transport: stdio, auth: { secret_ref: C } }
  tools: [%s]
  sandbox: { inline: { name: s, level: %s } }
  policies:
    - inline: { name: p, rules: [{ id: a, action: allow, scope: all }] }
"""
TOOLS = """def soil(board) -> dict:
    "How wet it is."
    return {"percent": board.read("soil")}


def water(seconds: int) -> str:
    "Water."
    return "done"


def raw() -> dict:
    "Whatever comes."
    return made()
"""
PINS = """reflex = "reflex.toml"

[[pins]]
name = "soil"
pin = 26
kind = "adc"
simulate = { start = 14000 }
"""


def project(folder, rules, autonomy="autonomous", level="none", tools=""):
    folder.mkdir(exist_ok=True)
    (folder / "claw.yaml").write_text(CLAW % (autonomy, tools, level))
    (folder / "tools.py").write_text(TOOLS)
    (folder / "clawlite.toml").write_text(PINS)
    (folder / "reflex.toml").write_text(rules)
    return str(folder)


def problems(folder, rules, **more) -> list:
    try:
        check(project(folder, rules, **more))
    except ManifestErrors as e:
        return [problem.text().partition(": ")[2] for problem in e.problems]
    return []


DRY = """[[rule]]
when = "dry"
call = "soil"
  [[rule.then]]
  if = "%s"
  say = "{percent} %%"
"""


def test_a_tool_with_pins_in_a_process_of_its_own_is_refused(tmp_path):
    with pytest.raises(ManifestErrors) as e:
        build(project(tmp_path, DRY % "percent < 30", level="process"))
    assert len(e.value.problems) == 1
    assert "soil (tools.py:1) needs board, and at level process" in str(e.value)
    assert "use level: none for the Sandbox" in str(e.value)
    with pytest.raises(ManifestErrors):
        check(str(tmp_path))


def test_an_observer_beside_rules_that_allow_is_a_warning(tmp_path):
    found = check(project(tmp_path, DRY % "percent < 30", autonomy="observer"))["warnings"]
    said = [one["message"] for one in found if "observer" in one["message"]]
    assert len(said) == 1 and "rule a has no effect" in said[0]
    found = check(project(tmp_path, DRY % "percent < 30", autonomy="supervised"))["warnings"]
    assert not [one for one in found if "observer" in one["message"]]


def test_a_field_that_no_result_has_is_a_problem(tmp_path):
    assert problems(tmp_path, DRY % "percent < 30") == []
    assert problems(tmp_path, DRY % "percnt < 30") == [
        'rule[0].then[0].if: no result before this step has the field "percnt", and no pattern '
        'has that slot - did you mean "percent"?'
    ]
    said = (DRY % "percent < 30").replace("{percent}", "{prozent}")
    assert [one.partition(":")[0] for one in problems(tmp_path, said)] == ["rule[0].then[0].say"]


@pytest.mark.parametrize(
    "tool, field, is_known",
    [
        ("adc-read", "value", True),
        ("adc-read", "percent", False),
        ("raw", "anything", True),
        ("soil", "result", True),
        ("read-file", "text", False),
    ],
)
def test_fields_are_known_of_built_in_tools_and_of_functions(tmp_path, tool, field, is_known):
    rules = (DRY % f"{field} == 1").replace("percent", field).replace('"soil"', f'"{tool}"')
    arguments = {"adc-read": '{ pin = "soil" }', "read-file": '{ path = "x" }'}.get(tool)
    if arguments:
        rules = rules.replace("  [[rule.then]]", f"arguments = {arguments}\n  [[rule.then]]")
    tools = ", ".join(
        f'"claw://registry/clawlite/{name}@1.0.0"' for name in ("adc-read", "read-file")
    )
    assert (problems(tmp_path, rules, tools=tools) == []) == is_known


def test_a_later_step_knows_the_results_before_it(tmp_path):
    rules = DRY % "percent < 30" + '  call = "water"\n  arguments = { seconds = 3 }\n'
    rules += '    [[rule.then.then]]\n    say = "{result}, at {percent} %%"\n'
    assert problems(tmp_path, rules.replace("%%", "%")) == []


@pytest.mark.parametrize(
    "arguments, said",
    [
        ("{ seconds = 3 }", []),
        (
            '{ seconds = "3" }',
            ["arguments.seconds: the tool refuses it: at value: expected an integer"],
        ),
        ("{ secods = 3 }", ['arguments.secods: the tool has no such argument - did you mean "sec']),
        ("{}", ['arguments: the tool needs the argument "seconds" - add seconds = ...']),
        ('{ seconds = "{n}" }', []),
    ],
)
def test_constant_arguments_that_the_schema_refuses_are_problems(tmp_path, arguments, said):
    rules = f'[[rule]]\nwhen = "water {{n:int}}"\ncall = "water"\narguments = {arguments}\n'
    found = [one.removeprefix("rule[0].") for one in problems(tmp_path, rules)]
    assert [one[: len(part)] for one, part in zip(found, said)] == said
    assert len(found) == len(said)


REMOTE = """  tools:
    - inline:
        name: look
        description: Look.
        input_schema: { type: object }
        mcp_source: { uri: "https://mcp.example.com/v1#docs", tool_name: look }
"""


@pytest.mark.parametrize(
    "network, is_reached",
    [
        ("", False),
        ("capabilities: { network: { mode: deny } }", False),
        ("capabilities: { network: { mode: allowlist, allowed_hosts: [other.com] } }", False),
        ("capabilities: { network: { mode: allowlist, allowed_hosts: [mcp.example.com] } }", True),
        ("capabilities: { network: { mode: allow-all } }", True),
    ],
)
def test_a_server_at_a_url_that_the_sandbox_keeps_from_is_a_warning(tmp_path, network, is_reached):
    claw = CLAW % ("autonomous", "", "process") + REMOTE
    claw = claw.replace("  tools: []\n", "")
    claw = claw.replace("name: s, level: process", f"name: s, level: process, {network}")
    (tmp_path / "claw.yaml").write_text(claw)
    (tmp_path / "clawlite.toml").write_text('reflex = "r.toml"\n')
    (tmp_path / "r.toml").write_text('[[rule]]\nwhen = "x"\nsay = "y"\n')
    found = lint.find(manifest.load(str(tmp_path)))["warnings"]
    said = [one["message"] for one in found if "mcp.example.com" in one["message"]]
    assert bool(said) != is_reached
    if said:
        assert (
            said[0].startswith("the sandbox refuses every call of look") and "allowlist" in said[0]
        )

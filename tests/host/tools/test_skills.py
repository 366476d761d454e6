"""Skills of a manifest: what policy says of them, what a build refuses, and what an image has
(CKP 0.2.0, 5.5).
"""

import pytest
from host.policy.test_policies import built, refused, rule, tool, write

from clawlite.core.image import image as layout
from clawlite.core.image.skill import find
from clawlite.host.builder import inspection, tool_table
from clawlite.host.compiler import lint
from clawlite.host.manifest import manifest
from clawlite.host.skills import feature as skills

MODEL = [
    {
        "inline": {
            "name": "llm",
            "protocol": "openai-compatible",
            "endpoint": "http://localhost:1/v1",
            "model": "m",
            "auth": {"type": "none"},
        }
    }
]
BUILT_IN = ["claw://registry/clawlite/%s@1.0.0" % x for x in ("read-file", "write-file", "sleep")]
ALLOW = {"p": [rule("all", "allow", "all")]}


def skill(name="one-by-one", tools=("one",), **more):
    return {
        "inline": dict(
            {"name": name, "description": "d", "instruction": "i", "tools_required": list(tools)},
            **more,
        )
    }


def composite(name, ref, **more):
    return {
        "inline": dict(
            {
                "name": name,
                "description": "d",
                "input_schema": {"type": "object"},
                "composite": True,
                "skill_ref": ref,
            },
            **more,
        )
    }


@pytest.mark.parametrize(
    "scope, skill_rule, tool_rule",
    [("tool", None, 0), ("all", 0, 0), ("category", None, None), ("skill", 0, None)],
)
def test_rules_of_scope_skill_and_all_are_for_skills(tmp_path, scope, skill_rule, tool_rule):
    image = built(tmp_path, [tool("one")], {"p": [rule("r", "allow", scope)]}, skills=[skill()])
    assert (image.tool("skill__one-by-one").entry, image.tool("one").entry) == (
        skill_rule,
        tool_rule,
    )


def test_a_pattern_names_all_tools_that_fit_each_once(tmp_path):
    names = ["write-file", "*-file", "sl?ep"]
    image = built(tmp_path, BUILT_IN, ALLOW, skills=[skill(tools=names)])
    assert image.section(layout.SKILLS)[0][2] == ["write-file", "read-file", "sleep"]


def test_a_rule_names_a_skill_by_its_own_name_its_labels_and_as_what_only_reads(tmp_path):
    for match, entry in (
        ({"name": "one-*"}, 0),
        ({"name": "two"}, None),
        ({"annotations": {"readOnlyHint": True}}, 0),
        ({"labels": {"a": "b"}}, None),
    ):
        image = built(
            tmp_path, [tool("one")], {"p": [rule("r", "allow", "skill", match)]}, skills=[skill()]
        )
        assert image.tool("skill__one-by-one").entry == entry, match


def test_what_an_image_has(tmp_path):
    schema = {
        "type": "object",
        "properties": {"topic": {"type": "string"}, "depth": {"type": "integer", "default": 3}},
        "required": ["topic"],
    }
    image = built(
        tmp_path,
        [tool("one"), tool("two")],
        ALLOW,
        skills=[
            skill(
                "wide",
                ("one", "two", "one"),
                input_schema=schema,
                estimates={"avg_tokens": 5},
                permissions={"approval_required": True},
            ),
            skill("narrow", ("two",)),
        ],
    )
    wide, narrow = find(image, "wide"), find(image, "narrow")
    assert wide.names == ["one", "two", "skill__narrow"] and narrow.names == ["two"], (
        "no skill leads out of another"
    )
    assert (
        wide.field == "topic"
        and wide.defaults == [["depth", 3]]
        and wide.estimates == [5, None, None]
        and narrow.field == "input"
    )
    record = image.tool("skill__wide")
    assert (
        record.handler == [layout.SKILL, "wide"]
        and record.flags & layout.ASKS
        and not record.flags & layout.HAS_SIDE_EFFECTS
    )
    assert find(image, "nope") is None
    assert image.prose(wide.text).endswith("Input: ") and "\n\ni\n\n" in image.prose(wide.text)
    assert image.agent.level == 1 and "skill" not in str(image.requires)


@pytest.mark.parametrize(
    "schema, field",
    [
        ({}, None),
        ({"properties": {"a": {}}}, "a"),
        ({"properties": {"a": {"type": "integer"}}}, None),
        ({"properties": {"a": {}, "b": {}}}, None),
        ({"properties": {"a": {"type": ["null", "string"]}, "b": {}}, "required": ["a"]}, "a"),
        ({"required": ["a"]}, None),
        ({"properties": {"a": {}, "b": {}}, "required": ["a", "b"]}, None),
    ],
)
def test_which_argument_plain_text_becomes(schema, field):
    assert skills.field(schema) == field


@pytest.mark.parametrize(
    "permissions, tools, words",
    [
        ({"network": False}, ["net"], "permissions.network is false, and net does more"),
        ({"network": False}, ["far"], "permissions.network is false, and far does more"),
        (
            {"filesystem": "none"},
            ["reads"],
            'permissions.filesystem is "none", and reads does more',
        ),
        (
            {"filesystem": "read-only"},
            ["writes"],
            'permissions.filesystem is "read-only", and writes does more',
        ),
        (
            {"filesystem": "none"},
            ["round"],
            'permissions.filesystem is "none", and writes does more',
        ),
        ({"network": False, "filesystem": "read-only"}, ["reads", "plain"], None),
        ({"filesystem": "write-workspace"}, ["writes"], None),
        ({"network": True, "filesystem": "full"}, ["net", "writes", "round"], None),
    ],
)
def test_a_tool_that_exceeds_the_permissions_is_refused(tmp_path, permissions, tools, words):
    reads, handlers = (
        {"readOnlyHint": True},
        "".join(
            'def %s(path: str = "") -> str:\n    """D."""\n    return ""\n\n\n' % name
            for name in ("net", "far", "reads", "writes", "plain")
        ),
    )
    declared = [
        tool("net", "network"),
        tool("far", None, (), {"openWorldHint": True}),
        tool("reads", "filesystem", (), reads),
        tool("writes", "filesystem"),
        tool("plain"),
        composite("round", "inner"),
    ]
    folder = write(
        tmp_path,
        declared,
        ALLOW,
        skills=[skill("outer", tools, permissions=permissions), skill("inner", ("writes",))],
        providers=MODEL,
    )
    (folder / "clawlite.toml").write_text("")
    (folder / "tools.py").write_text(handlers)
    loaded = manifest.load(folder)
    skills.check(loaded, False)
    found = [problem.text() for problem in loaded.problems.found]
    assert [line for line in found if "permissions" in line] == found and (
        words in found[0] if words else found == []
    )


def test_what_could_not_be_is_refused(tmp_path):
    assert (
        "at most 57 characters"
        in refused(tmp_path, [tool("one")], ALLOW, skills=[skill("x" * 58)])[0]
    )
    built(tmp_path, [tool("one")], ALLOW, skills=[skill("x" * 57)])
    assert (
        "at most 32768 bytes"
        in refused(tmp_path, [tool("one")], ALLOW, skills=[skill(instruction="x" * 32769)])[0]
    )
    built(tmp_path, [tool("one")], ALLOW, skills=[skill(instruction="x" * 32768)])
    assert (
        "no provider here is a model"
        in refused(
            tmp_path, [tool("one"), composite("all", "one-by-one")], ALLOW, skills=[skill()]
        )[0]
    )
    assert (
        "only a composite tool runs a skill"
        in refused(
            tmp_path, [tool("one"), tool("two", skill_ref="one-by-one")], ALLOW, skills=[skill()]
        )[0]
    )
    assert (
        "comes back to its start"
        in refused(tmp_path, [composite("all", "s")], ALLOW, skills=[skill("s", ("all",))])[0]
    )


def test_findings_say_what_no_model_can_begin_and_what_a_skill_never_gets(tmp_path):
    policies = {
        "p": [
            rule("no", "deny", "tool", {"name": "two"}),
            rule("yes", "allow", "tool", {"name": "one"}),
            rule("dead", "allow", "skill", {"name": "nope"}),
        ]
    }
    told = lint.find(
        manifest.load(
            write(
                tmp_path,
                [tool("one"), tool("two"), tool("three")],
                policies,
                skills=[skill("s", ("one", "two"))],
            )
        )
    )
    said = [warning["message"] for warning in told["warnings"]]
    assert any(
        line.startswith("policy lets no model begin the skill s: a person can, with /s")
        for line in said
    )
    assert "the skill s needs two, which policy always denies" in said
    assert [one["id"] for one in told["dead"]] == ["dead"]


def test_skills_are_listed_with_their_estimates(tmp_path):
    folder = write(
        tmp_path,
        [tool("one")],
        ALLOW,
        skills=[skill("s", estimates={"avg_tokens": 5, "avg_tool_calls": 2})],
    )
    row = tool_table.rows(str(folder))[-1]
    assert (
        row["name"] == "skill__s"
        and row["handler"] == "skill: s"
        and row["skill"]
        == {
            "uses": ["one"],
            "asks": False,
            "estimates": {"tokens": 5, "seconds": None, "tool_calls": 2},
        }
    )
    assert "uses one; about 5 tokens, 2 tool calls" in tool_table.text(tool_table.rows(str(folder)))
    from clawlite.host.compiler import compiler

    found, shown = inspection.inspect(compiler.build(manifest.load(folder)).data)
    assert (
        found["skills"] == [dict({"name": "skill__s"}, **row["skill"])]
        and "uses one; about 5 tokens" in shown
    )

"""Policies, from the manifest to what a call gets (CKP 0.2.0, 5.4, 5.7, 5.8): compiled, opened
as a device does, and asked.
"""

import fnmatch
import json
import os

import pytest

from clawlite.core.agent.agent import Agent
from clawlite.core.agent.agent_setup import Setup
from clawlite.core.base import effect as E
from clawlite.core.base.errors import ClawError
from clawlite.core.image.image import Image
from clawlite.core.turns import tools as pipeline
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.compiler import compiler, lint
from clawlite.host.manifest import manifest
from clawlite.host.models import walk
from clawlite.host.policy import folding
from clawlite.host.policy.model import Rule

HANDLERS = "".join(
    f'def {name}(path: str = \'\') -> str:\n    """Do it."""\n    return \'ran\'\n\n\n'
    for name in ("one", "two", "three")
)


def tool(name, category=None, labels=(), hints=None, **more):
    labels = dict(labels, **{"category": category} if category else {})
    return {
        "inline": dict(
            {
                "name": name,
                "metadata": {"labels": labels},
                "description": "d",
                "annotations": hints or {},
                "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
            },
            **more,
        )
    }


def rule(id, action, scope="tool", match=None, **more):
    return dict(
        {"id": id, "action": action, "scope": scope}, **{"match": match} if match else {}, **more
    )


def write(folder, tools, policies, autonomy="autonomous", sandbox=None, **spec):
    """Write a project; *policies*: {name: rules} or {name: spec}."""
    spec = dict(
        {
            "identity": {"inline": {"personality": "You are.", "autonomy": autonomy}},
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
            "tools": list(tools),
            "sandbox": {"inline": sandbox or {"name": "box", "level": "none"}},
            "policies": [
                {
                    "inline": dict(
                        {"name": name}, **{"rules": given} if isinstance(given, list) else given
                    )
                }
                for name, given in policies.items()
            ],
        },
        **spec,
    )
    (folder / "claw.yaml").write_text(
        json.dumps(
            {"claw": "0.3.0", "kind": "Claw", "metadata": {"name": "a"}, "spec": spec}, indent=1
        )
    )
    (folder / "clawlite.toml").write_text('reflex = "reflex.toml"\n')
    (folder / "reflex.toml").write_text('[[rule]]\nwhen = "*"\nsay = "Yes."\n')
    (folder / "tools.py").write_text(HANDLERS)
    return folder


def built(folder, *args, **more):
    data = compiler.build(manifest.load(write(folder, *args, **more))).data
    return Image(lambda at, size: data[at : at + size], len(data), 100)


def notes(folder, *args, **more) -> str:
    """Return what the build of a manifest warns of, a line each."""
    loaded = manifest.load(write(folder, *args, **more))
    compiler.build(loaded)
    return "\n".join(message for _, message in loaded.notes)


def refused(folder, *args, **more):
    """Return the problems of a manifest, a line each."""
    with pytest.raises(ManifestErrors) as caught:
        built(folder, *args, **more)
    return [problem.text() for problem in caught.value.problems]


def call(image, name, path=None, override=None, used=(0, 0), links=None, admitted=True):
    """Return what a call comes to: "ran", "asked" or the id of the rule that denies; "deny" when
    none decided; -32602 ...; and its event.
    """
    work, value, event = (
        pipeline.call(
            Setup(image), name, {} if path is None else {"path": path}, "operator", override
        ),
        None,
        None,
    )
    try:
        while True:
            effect = work.send(value)
            value = None
            if effect[0] == E.APPROVE:
                return "asked", None
            if effect[0] == E.RUN:
                value = True, "ran"
            elif effect[0] == E.RESOLVE:
                value = True, (links or {}).get(effect[1], effect[1])
            elif effect[0] == E.STORE:
                value = True, admitted if effect[1] else used
            elif effect[0] == E.LOG:
                event = effect[1]
    except StopIteration:
        return "ran", event
    except ClawError as e:
        return e.data.get("rule_id") or "deny" if e.code == -32011 else e.code, event


ALLOW = rule("all", "allow", "all")
DENY = rule("none", "deny", "all", reason="never")


def of(image, *args, **more):
    return call(image, *args, **more)[0]


@pytest.mark.parametrize(
    "match, expected",
    [
        ({"name": "one"}, "r"),
        ({"name": "two"}, "ran"),
        ({"name": "o*"}, "r"),
        ({"name": "?ne"}, "r"),
        ({"name": "on"}, "ran"),
        ({"name": "*"}, "r"),
        ({"category": "net"}, "r"),
        ({"category": "ne"}, "ran"),
        ({"labels": {"zone": "out"}}, "r"),
        ({"labels": {"zone": "in"}}, "ran"),
        ({"labels": {"zone": "out", "other": "x"}}, "ran"),
        ({"annotations": {"readOnlyHint": True}}, "r"),
        ({"annotations": {"readOnlyHint": False}}, "ran"),
        ({"annotations": {"destructiveHint": True}}, "ran"),
        ({"category": "net", "name": "one", "annotations": {"readOnlyHint": True}}, "r"),
        ({"category": "net", "name": "two"}, "ran"),
        ({}, "r"),
    ],
)
def test_what_a_rule_matches(tmp_path, match, expected):
    """5.8 ``match``: name, category, labels and annotations; all that are given must fit."""
    image = built(
        tmp_path,
        [tool("one", "net", {"zone": "out"}, {"readOnlyHint": True})],
        {"p": [rule("r", "deny", match=match), ALLOW]},
    )
    assert of(image, "one") == expected


@pytest.mark.parametrize(
    "scope, one, two",
    [("tool", "r", "r"), ("all", "r", "r"), ("category", "r", "ran"), ("skill", "ran", "ran")],
)
def test_scopes(tmp_path, scope, one, two):
    """5.8 ``scope``: a rule about skills is accepted and matches no tool; one about categories,
    a tool that has one.
    """
    image = built(
        tmp_path, [tool("one", "net"), tool("two")], {"p": [rule("r", "deny", scope), ALLOW]}
    )
    assert (of(image, "one"), of(image, "two")) == (one, two)


def test_rules_are_evaluated_in_array_order_and_the_first_match_is_applied(tmp_path):
    """5.8 "Validation Rules", 2."""
    image = built(
        tmp_path,
        [tool("one")],
        {
            "p": [
                rule("a", "deny", match={"name": "two"}),
                rule("b", "deny", match={"name": "one"}),
                ALLOW,
            ]
        },
    )
    answer, event = call(image, "one")
    assert answer == "b" and event["trace"] == [[1, True]], (
        "what can never match this tool is not looked at, nor what follows"
    )


def test_without_a_matching_rule_a_call_is_denied(tmp_path):
    """5.8 "Validation Rules", 3: implicit default-deny."""
    assert (
        of(
            built(tmp_path, [tool("one")], {"p": [rule("a", "allow", match={"name": "two"})]}),
            "one",
        )
        == "deny"
    )


def test_without_a_policy_every_call_is_denied(tmp_path):
    assert of(built(tmp_path, [tool("one")], {}), "one") == "deny"


def test_several_policies_are_one_list_in_the_order_of_the_manifest(tmp_path):
    """5.8 "Validation Rules", 4."""
    for order, expected in ((("yes", "no"), "ran"), (("no", "yes"), "none")):
        both = {"yes": [ALLOW], "no": [DENY]}
        assert (
            of(built(tmp_path, [tool("one")], {name: both[name] for name in order}), "one")
            == expected
        )


def test_an_empty_list_of_rules_is_refused(tmp_path):
    """5.8 "Validation Rules", 1: rules has at least one entry."""
    assert any("rules" in line for line in refused(tmp_path, [tool("one")], {"p": []}))


def test_actions(tmp_path):
    """5.8 "Rule Actions": allow runs, deny does not, require-approval asks first, audit-only
    runs.
    """
    for action, expected in (
        ("allow", "ran"),
        ("deny", "r"),
        ("require-approval", "asked"),
        ("audit-only", "ran"),
    ):
        assert of(built(tmp_path, [tool("one")], {"p": [rule("r", action)]}), "one") == expected


@pytest.mark.parametrize(
    "whole, bound, expected",
    [
        (ALLOW, ALLOW, "ran"),
        (ALLOW, DENY, "none"),
        (DENY, ALLOW, "none"),
        (rule("ask", "require-approval"), ALLOW, "asked"),
        (ALLOW, rule("ask", "require-approval"), "asked"),
        (ALLOW, rule("other", "allow", match={"name": "two"}), "deny"),
    ],
)
def test_the_stricter_of_policy_ref_and_the_whole_list_wins(tmp_path, whole, bound, expected):
    """5.4 ``policy_ref``, 9.3.2 ``context.policy``, 10.3: they narrow, never widen."""
    for ref in ("own", "claw://local/policy/own"):
        image = built(
            tmp_path, [tool("one", policy_ref=ref), tool("two")], {"whole": [whole], "own": [bound]}
        )
        assert of(image, "one") == expected
    image = built(tmp_path, [tool("one")], {"whole": [whole], "own": [bound]})
    assert of(image, "one", override="own") == expected
    assert of(image, "one", override="nobody") == -32602


def test_policy_ref_and_the_requests_policy_both_narrow(tmp_path):
    image = built(
        tmp_path,
        [tool("one", policy_ref="own")],
        {"whole": [ALLOW], "own": [rule("ask", "require-approval")], "no": [DENY]},
    )
    assert (
        of(image, "one"),
        of(image, "one", override="whole"),
        of(image, "one", override="no"),
    ) == ("asked", "asked", "none")


def test_a_link_does_not_slip_past_a_rule_about_a_path(tmp_path):
    """5.8 ``path_within``: the links of a path that a stricter rule passed over are resolved."""
    rules = [rule("etc", "deny", conditions={"path_within": "/etc"}), ALLOW]
    image = built(tmp_path, [tool("one")], {"p": rules})
    assert of(image, "one", "/tmp/x") == "ran" and of(image, "one", "/etc/passwd") == "etc"
    assert of(image, "one", "/tmp/link", links={"/tmp/link": "/etc/passwd"}) == "etc"
    assert of(image, "one", "\0") == "etc" and of(image, "one") == "ran"


@pytest.mark.parametrize(
    "what, said",
    [
        ({"conditions": {"time_of_day": "night"}}, "time_of_day"),
        ({"match": {"tool": "one"}}, "tool"),
        ({"match": {"annotations": {"readOnlyHint": "true"}}}, "true or false"),
        ({"scope": "tools"}, "scope"),
        ({"action": "ask"}, "action"),
        ({"rate_limit": {"calls_per_minute": 3}}, "calls_per_minute"),
        ({"rate_limit": {"tokens_per_day": -1}}, "tokens_per_day"),
        ({"rate_limit": {"cost_per_day_usd": "ten"}}, "cost_per_day_usd"),
    ],
)
def test_what_a_rule_may_not_say_is_refused_by_field(tmp_path, what, said):
    """5.8: a condition that nobody can evaluate must not be dropped."""
    lines = refused(tmp_path, [tool("one")], {"p": [dict(rule("r", "deny"), **what)]})
    assert any(said in line and "claw.yaml:" in line and "rules[0]" in line for line in lines), (
        lines
    )


# -- limits


def test_the_texts_spending_policy(tmp_path):
    """5.8, Appendix A: a denial with a rate_limit denies only what exceeds it; either limit is
    enough.
    """
    image = built(
        tmp_path,
        [tool("one")],
        {
            "p": [
                rule(
                    "spending-limit",
                    "deny",
                    rate_limit={"cost_per_day_usd": 25.0, "tokens_per_day": 1000000},
                ),
                ALLOW,
            ]
        },
    )
    assert image.agent.rates == 3 and image.agent.counts
    for used, expected in (
        ((999999, 24999999999), "ran"),
        ((1000000, 0), "spending-limit"),
        ((0, 25 * 10**9), "spending-limit"),
        (None, "spending-limit"),
    ):
        assert of(image, "one", used=used) == expected, used


def test_a_permission_with_a_rate_limit_ends_with_the_day(tmp_path):
    """5.8 ``rate_limit``: then the next rule decides."""
    image = built(
        tmp_path,
        [tool("one")],
        {
            "p": [
                rule("some", "allow", rate_limit={"tokens_per_day": 10}),
                rule("ask", "require-approval"),
            ]
        },
    )
    assert (
        of(image, "one", used=(9, 0)) == "ran"
        and of(image, "one", used=(10, 0)) == "asked"
        and image.agent.rates == 1
    )


def test_an_empty_rate_limit_says_nothing(tmp_path):
    image = built(tmp_path, [tool("one")], {"p": [rule("r", "deny", rate_limit={}), ALLOW]})
    assert of(image, "one") == "r" and not image.agent.counts and image.tool("one").entry == 0


def test_calls_per_minute_are_those_of_the_strictest_policy(tmp_path):
    """5.8 ``rate_limits``: of all policies the least; what exceeds it is refused with -32011."""
    image = built(
        tmp_path,
        [tool("one")],
        {
            "p": {"rules": [ALLOW], "rate_limits": {"tool_calls_per_minute": 30}},
            "q": {"rules": [ALLOW], "rate_limits": {"tool_calls_per_minute": 2}},
        },
    )
    assert image.agent.calls_per_minute == 2 and image.agent.counts and image.agent.rates == 0
    answer, event = call(image, "one", admitted=False)
    assert (
        answer == "deny"
        and event["code"] == -32011
        and event["limit"] == "tool_calls_per_minute"
        and event["action"] == "allow"
    )


def test_a_call_that_policy_denies_is_not_counted(tmp_path):
    image = built(
        tmp_path,
        [tool("one")],
        {"p": {"rules": [DENY], "rate_limits": {"tool_calls_per_minute": 2}}},
    )
    assert of(image, "one", admitted=False) == "none"


def test_without_limits_nothing_is_asked_for(tmp_path):
    image = built(
        tmp_path, [tool("one")], {"p": {"rules": [ALLOW], "rate_limits": {"tokens_per_hour": 5}}}
    )
    assert not image.agent.counts and image.agent.tokens_per_hour == 5


def test_money_in_a_rule_needs_every_price(tmp_path):
    remote = [
        {
            "inline": {
                "name": "far",
                "protocol": "openai-compatible",
                "endpoint": "http://far/v1",
                "model": "m",
                "auth": {"type": "none"},
            }
        }
    ]
    said = notes(
        tmp_path,
        [tool("one")],
        {"p": [rule("r", "deny", rate_limit={"cost_per_day_usd": 1}), ALLOW]},
        providers=remote,
    )
    assert 'cost_per_day_usd does not count "m": nobody knows what it costs' in said


# -- tools


def test_sandbox_ref_names_the_sandbox_of_the_manifest(tmp_path):
    """5.4 ``sandbox_ref``: a manifest has one Sandbox, so that is what it names, or nothing
    does.
    """
    for ref in ("box", "claw://local/sandbox/box", "claw://sandbox/box"):
        assert of(built(tmp_path, [tool("one", sandbox_ref=ref)], {"p": [ALLOW]}), "one") == "ran"
    for ref in ("other", "claw://local/policy/p"):
        (line,) = refused(tmp_path, [tool("one", sandbox_ref=ref)], {"p": [ALLOW]})
        assert "sandbox_ref" in line and "claw.yaml:" in line


def test_retry_is_for_tools_that_may_run_twice(tmp_path):
    """5.4 ``retry``."""
    for hints in ({"idempotentHint": True}, {"readOnlyHint": True}):
        image = built(
            tmp_path,
            [tool("one", hints=hints, retry={"max_attempts": 5, "backoff": "linear"})],
            {"p": [ALLOW]},
        )
        assert image.tool("one").retry == [5, 1]
    for hints in ({}, {"idempotentHint": False}, {"destructiveHint": False}):
        said = [tool("one", hints=hints, retry={"max_attempts": 2})], {"p": [ALLOW]}
        assert built(tmp_path, *said).tool("one").retry is None
        assert "one is never tried again" in notes(tmp_path, *said)


def test_what_retry_means_when_it_says_little(tmp_path):
    idempotent = {"idempotentHint": True}
    for retry, expected in (
        ({}, [3, 0]),
        ({"max_attempts": 1}, None),
        ({"backoff": "constant"}, [3, 2]),
        ({"max_attempts": 2}, [2, 0]),
    ):
        assert (
            built(tmp_path, [tool("one", hints=idempotent, retry=retry)], {"p": [ALLOW]})
            .tool("one")
            .retry
            == expected
        )
    assert refused(
        tmp_path, [tool("one", hints=idempotent, retry={"max_attempts": 0})], {"p": [ALLOW]}
    )


# -- what is most likely not meant


def found(folder, *args, **more):
    write(folder, *args, **more)
    (folder / "tools.py").unlink()  # its functions would be tools too
    return lint.find(manifest.load(folder))


def test_rules_that_never_decide(tmp_path):
    rules = [
        rule("no-such", "deny", match={"name": "three"}),
        rule("skills", "deny", "skill"),
        ALLOW,
        rule("late", "deny", match={"name": "one"}),
    ]
    told = found(tmp_path, [tool("one")], {"p": rules})
    assert [one["id"] for one in told["dead"]] == ["no-such", "skills"] and [
        one["id"] for one in told["shadowed"]
    ] == ["late"]
    text = (tmp_path / "claw.yaml").read_text().splitlines()
    for one in told["dead"] + told["shadowed"]:
        assert '"id": "%s"' % one["id"] in "".join(text[one["line"] - 1 : one["line"] + 1]) and one[
            "file"
        ].endswith("claw.yaml")


def test_a_policy_of_more_than_a_mebibyte_takes_time_that_grows_with_its_rules(
    tmp_path, monkeypatch
):
    """No rule is compared with the others, and a name is no pattern to be compiled."""
    monkeypatch.setattr(folding.FlatRule, "__eq__", None)
    monkeypatch.setattr(fnmatch, "fnmatchcase", None)
    rules = [rule("name-%d" % n, "deny", match={"name": "tool-%d" % n}) for n in range(12000)]
    (tmp_path / "tools.py").write_text(HANDLERS)
    write(tmp_path, [tool("one")], {"p": [*rules, ALLOW, rule("late", "deny")]})
    assert os.path.getsize(tmp_path / "claw.yaml") > 1 << 20
    (tmp_path / "tools.py").unlink()
    told = lint.find(manifest.load(tmp_path))
    assert [one["id"] for one in told["dead"]] == ["name-%d" % n for n in range(12000)]
    assert [one["id"] for one in told["shadowed"]] == ["late"]


def test_a_rule_that_denies_what_is_left_may_have_nothing_to_do_yet(tmp_path):
    named = rule("named", "allow", match={"name": "one"})
    assert found(tmp_path, [tool("one")], {"p": [named, DENY]})["shadowed"] == []
    told = found(tmp_path, [tool("one")], {"p": [ALLOW, DENY]})["shadowed"]
    assert [one["id"] for one in told] == [DENY["id"]]


def test_a_limited_rule_does_not_shadow(tmp_path):
    told = found(
        tmp_path,
        [tool("one")],
        {"p": [rule("some", "allow", rate_limit={"tokens_per_day": 1}), DENY]},
    )
    assert told["dead"] == told["shadowed"] == []


@pytest.mark.parametrize(
    "rules, said",
    [
        (
            [rule("named", "allow", match={"name": "one"}), DENY],
            "no rule mentions two: rule none, which is for every tool, denies it",
        ),
        ([ALLOW], "no rule mentions one and two: rule all, which is for every tool, allows them"),
        (
            [
                rule("named", "allow", match={"labels": {"zone": "out"}}),
                rule("ask", "require-approval", match={}),
            ],
            "no rule mentions two: rule ask, which is for every tool, asks first for it",
        ),
        (
            [rule("named", "allow", "category")],
            "no rule mentions two, and none is for every tool: it is always denied",
        ),
        ([rule("a", "allow", match={"name": "*"})], None),
    ],
)
def test_tools_that_no_rule_mentions(tmp_path, rules, said):
    told = found(tmp_path, [tool("one", "net", {"zone": "out"}), tool("two")], {"p": rules})[
        "warnings"
    ]
    assert [warning["message"] for warning in told] == ([said] if said else [])
    assert all(warning["line"] > 0 and warning["file"].endswith("claw.yaml") for warning in told)


def test_a_tool_without_a_path_that_a_path_would_allow(tmp_path):
    plain = tool("one", "fs")
    plain["inline"]["input_schema"] = {"type": "object"}
    (told,) = found(
        tmp_path,
        [plain],
        {"p": [rule("fs", "allow", "category", conditions={"path_within": "/workspace"})]},
    )["warnings"]
    assert told["message"] == "no rule can allow one: it is always denied"


@pytest.mark.parametrize(
    "what, warned",
    [
        ({"match": {"annotations": {"readOnlyHint": True}}}, True),
        ({"match": {"name": "far"}}, False),
        ({"match": {"annotations": {"readOnlyHint": True}, "name": "one"}}, False),
        ({"action": "deny", "match": {"annotations": {"destructiveHint": True}}}, False),
    ],
)
def test_a_permission_on_the_word_of_a_stranger(tmp_path, what, warned):
    """5.4: annotations are untrusted; ``check`` says it of tools that this version does not
    build yet, too.
    """
    far = {"inline": {"name": "far", "mcp_source": {"uri": "stdio:///usr/bin/far"}}}
    told = [
        warning["message"]
        for warning in found(tmp_path, [far], {"p": [dict(rule("r", "allow"), **what), DENY]})[
            "warnings"
        ]
    ]
    assert (
        "rule r would allow far on the word of an MCP server: what a stranger says of its "
        "tools is no ground for a permission" in told
    ) == warned


def test_an_approval_that_nobody_gives_in_time_is_a_denial(tmp_path):
    """5.8 "Validation Rules", 5: default_if_timeout deny, -32012."""
    for default, expected in (("deny", -32012), ("allow", None)):
        asks = rule(
            "ask",
            "require-approval",
            approval={"timeout_seconds": 5, "default_if_timeout": default},
        )
        image = built(tmp_path, [tool("one")], {"p": [asks]})
        agent, ended = Agent(Setup(image), 0), []
        agent.begin(
            pipeline.call(Setup(image), "one", {}, "operator"),
            lambda value, error, now: ended.append(error.code if error else None),
            0,
        )
        agent.tick(4999)
        assert not ended and len(agent.waiting) == 1
        agent.tick(5000)
        for effect in [effect for effect in agent.effects if effect[0] == E.RUN]:
            assert default == "allow"
            agent.complete(effect[1], (True, "ran"), 5000)
        assert ended == [expected]


def test_a_rule_as_it_was_written_is_not_copied_and_never_changed():
    plain = {"id": "a", "action": "allow", "scope": "tool", "match": {"name": "b"}}
    floating = dict(plain, rate_limit={"tokens_per_day": 5.0})
    told = []
    assert walk._walk(plain, walk._info(Rule), (), told.append) is plain
    assert walk.convert(floating, Rule, told.append).rate_limit.tokens_per_day == 5
    assert type(floating["rate_limit"]["tokens_per_day"]) is float and not told

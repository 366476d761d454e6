"""Policy decisions (CKP 0.2.0, 5.8): first match wins, no match is a denial, paths by whole
components.
"""

from clawlite.core.policy.policy import (
    ALLOW,
    APPROVE,
    AUDIT,
    DECISION_ACTION,
    DECISION_RESTS,
    DECISION_RULE,
    DECISION_TRACE,
    DENY,
    applies,
    decide,
    holds,
    is_within,
    normalise,
    paths_of,
    roots_of,
    strictest,
)


class Rules:
    """An image as ``decide`` sees it: rule n is [id, action, reason, timeout_s, allow, root,
    policy, rate].
    """

    def __init__(self, rules, rates=()):
        self.asked = []
        self.rules = [
            ["r%d" % i, action, "", 0, 0, root, "p", rates[i] if rates else None]
            for i, (action, root) in enumerate(rules)
        ]

    def rule(self, number):
        self.asked.append(number)
        return self.rules[number]


def test_no_rule_is_deny():
    """5.8 "Validation Rules", 3: when no rule matches, the call is denied."""
    decision = decide(Rules([]), None, [])
    assert decision == (DENY, None, [], False)


def test_a_constant_entry_is_its_rule():
    decision = decide(Rules([(DENY, None), (ALLOW, None)]), 1, [])
    assert decision[DECISION_RULE][0] == "r1"
    assert decision == (ALLOW, decision[DECISION_RULE], [[1, True]], False)


def test_first_match_wins_and_later_rules_are_not_looked_at():
    """5.8 "Validation Rules", 2: in array order, the first match is applied, later ones are not
    evaluated.
    """
    rules = Rules([(ALLOW, "/a"), (DENY, "/a"), (ALLOW, None)])
    assert decide(rules, [0, 1, 2], ["/a/x"])[DECISION_RULE][0] == "r0"
    assert rules.asked == [0]


def test_what_no_condition_admits_is_denied():
    decision = decide(Rules([(ALLOW, "/a"), (APPROVE, "/b")]), [0, 1], ["/c"])
    assert decision == (DENY, None, [[0, False], [1, False]], False)


def test_a_permission_that_rests_on_a_path_says_so():
    rules = Rules([(ALLOW, "/a"), (ALLOW, None)])
    assert decide(rules, [0, 1], ["/a/x"])[DECISION_RESTS]
    assert not decide(rules, [0, 1], ["/b"])[DECISION_RESTS]


def test_a_permission_rests_on_a_stricter_rule_that_a_path_kept_from_matching():
    """A link into /etc must not slip past a rule that denies it, or asks first there."""
    for strict in (DENY, APPROVE, AUDIT):
        decision = decide(Rules([(strict, "/etc"), (ALLOW, None)]), [0, 1], ["/tmp/link"])
        assert decision[DECISION_ACTION] == ALLOW and decision[DECISION_RESTS]
    assert not decide(Rules([(ALLOW, "/a"), (APPROVE, None)]), [0, 1], ["/b"])[DECISION_RESTS]


def test_a_root_that_is_a_link_means_where_it_leads():
    """A rule about /var/run, a link to /run, holds for both names; a root is only taken for
    another by ``roots``.
    """
    rules = Rules([(DENY, "/var/run"), (ALLOW, None)])
    assert roots_of(rules, [[0, 1], 1, None, [0]]) == ["/var/run"]
    assert (
        decide(rules, [0, 1], ["/run/x"])[DECISION_ACTION] == ALLOW
        and decide(rules, [0, 1], ["/run/x"])[DECISION_RESTS]
    )
    assert decide(rules, [0, 1], ["/run/x"], None, {"/var/run": "/run"})[DECISION_ACTION] == DENY
    assert decide(rules, [0, 1], ["/runner"], None, {"/var/run": "/run"})[DECISION_ACTION] == ALLOW


def test_a_rate_limit_on_a_denial_denies_only_what_exceeds_it():
    """5.8 ``rate_limit``: the rule of the text's own spending policy lets calls pass until the
    day is spent.
    """
    rules = Rules([(DENY, None), (ALLOW, None)], [[1000, 25], None])
    for used, expected in (
        ((0, 0), ALLOW),
        ((999, 24), ALLOW),
        ((1000, 0), DENY),
        ((0, 25), DENY),
        ((1001, 26), DENY),
        (None, DENY),
    ):
        decision = decide(rules, [0, 1], [], used)
        assert decision[DECISION_ACTION] == expected, used
        assert decision[DECISION_TRACE] == (
            [[0, True]] if expected == DENY else [[0, False], [1, True]]
        )


def test_a_rate_limit_on_a_permission_holds_until_the_day_is_spent():
    """5.8 ``rate_limit``: then the next rule decides."""
    for action in (APPROVE, AUDIT, ALLOW):
        rules = Rules([(action, None), (DENY, None)], [[1000, None], None])
        for used, number in (((999, 10**12), 0), ((1000, 0), 1), ((1001, 0), 1), (None, 1)):
            assert decide(rules, [0, 1], [], used)[DECISION_RULE][0] == "r%d" % number, used


def test_a_rate_limit_and_a_path_must_both_hold():
    rules = Rules([(DENY, "/a"), (ALLOW, None)], [[10, None], None])
    assert decide(rules, [0, 1], ["/a/x"], (10, 0))[DECISION_ACTION] == DENY
    assert decide(rules, [0, 1], ["/a/x"], (9, 0))[DECISION_ACTION] == ALLOW
    assert decide(rules, [0, 1], ["/b"], (10, 0))[DECISION_ACTION] == ALLOW
    assert not decide(rules, [0, 1], ["/b"], (9, 0))[DECISION_RESTS], (
        "wherever the path leads, the day is not spent"
    )


def test_a_limit_of_nothing_is_always_reached():
    assert applies([0, None], (0, 0), DENY) and not applies([0, None], (0, 0), ALLOW)
    assert not applies([None, None], (10, 10), DENY)


def test_a_permission_needs_every_path_inside():
    assert holds("/a", ["/a/x", "/a"], ALLOW)
    assert not holds("/a", ["/a/x", "/b"], ALLOW)
    assert not holds("/a", ["/a/x", None], ALLOW)
    assert not holds("/a", [], ALLOW)


def test_a_denial_needs_one_path_inside_or_without_meaning():
    assert holds("/etc", ["/a", "/etc/passwd"], DENY)
    assert holds("/etc", [None], DENY)
    assert not holds("/etc", ["/a"], DENY)
    assert not holds("/etc", [], DENY)


def test_the_strictest_of_several_decisions_wins():
    rules = Rules([(ALLOW, None), (AUDIT, None), (APPROVE, None), (DENY, None)])
    for strict in range(4):
        for other in range(strict):
            pair = [decide(rules, other, []), decide(rules, strict, [])]
            assert strictest(pair)[DECISION_RULE][0] == "r%d" % strict
            assert strictest([pair[1], pair[0]])[DECISION_RULE][0] == "r%d" % strict


def test_within_goes_by_components():
    assert (
        is_within("/workspace", "/workspace")
        and is_within("/workspace/a", "/workspace")
        and is_within("/x", "/")
    )
    assert not is_within("/workspace2/a", "/workspace") and not is_within("/works", "/workspace")


def test_paths_are_normalised():
    for path, expected in (
        ("/workspace/a", "/workspace/a"),
        ("a", "/workspace/a"),
        ("./a//b/", "/workspace/a/b"),
        ("/workspace/../etc", "/etc"),
        ("../../../etc", "/etc"),
        ("//etc/x", "/etc/x"),
        ("/..", "/"),
        ("/a/./b/../c", "/a/c"),
        ("/a/...", "/a/..."),
        ("/ä/ü", "/ä/ü"),
        ("/", "/"),
    ):
        assert normalise(path) == expected, path


def test_each_path_is_what_its_parts_say():
    parts = ("", ".", "..", "a", ".b", "b.")
    for number in range(6**4):
        chosen = [parts[number // 6**at % 6] for at in range(4)]
        kept = []
        for part in chosen:
            if part == "..":
                kept = kept[:-1]
            elif part not in ("", "."):
                kept.append(part)
        assert normalise("/" + "/".join(chosen)) == "/" + "/".join(kept), chosen


def test_what_is_no_path_has_no_meaning():
    for value in ("", "/a\0b", 5, None, True, ["/a"], {}, "/" + "a" * 4096):
        assert normalise(value) is None
    assert normalise("/" + "a" * 4095) == "/" + "a" * 4095


def test_paths_of_a_call():
    arguments = {"path": "a", "files": ["/x", 5], "text": "/etc", "none": None}
    assert paths_of(["files", "none", "path", "absent"], arguments) == ["/x", None, "/workspace/a"]
    assert paths_of([], arguments) == []

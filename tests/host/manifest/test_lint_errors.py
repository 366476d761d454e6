"""Mistakes that a newcomer makes in claw.yaml: each is one problem with its line, what was expected
and what to do, or a warning.

One whole manifest, in which a piece of text is replaced.
"""

import pytest
from whole_manifest import MANIFEST, checked, line_of

from clawlite.host.base.problems import ManifestErrors
from clawlite.host.bench import agent
from clawlite.host.builder import check
from clawlite.host.compiler import lint
from clawlite.host.manifest import manifest


def test_the_manifest_itself_is_right(tmp_path):
    found = checked(tmp_path, "garden", "garden")
    messages = [warning["message"] for warning in found["warnings"]]
    assert sum("no rule mentions" in message for message in messages) == 1
    assert [
        warning["line"] for warning in found["warnings"] if "profile L" in warning["message"]
    ] == [line_of("denied_paths")]
    assert len(found["warnings"]) == 2


@pytest.mark.parametrize(
    "old, new, words",
    [
        (
            '"/var/data", permissions: ro',
            '"/", permissions: rw',
            "write wherever the agent's user may",
        ),
        ("mode: scoped", "mode: full", "write wherever the agent's user may"),
        ('"api.example.com"', '"*.com"', "every name below a top-level domain"),
        ('"api.example.com"', '"*.CO.uk"', "every name below a top-level domain"),
        (
            'mode: allowlist, allowed_hosts: ["api.example.com"]',
            "mode: allow-all",
            "tools may reach every host",
        ),
        ("shell: { mode: restricted", "shell: { mode: full", "exec-shell may run every command"),
        (
            "      resource_limits: { timeout_ms: 30000, memory_mb: 256 }\n",
            "",
            "no resource_limits: each call has 1024 MB of memory",
        ),
    ],
)
def test_what_allows_more_than_may_be_wanted_is_a_warning(tmp_path, old, new, words):
    assert not any(
        words in warning["message"] for warning in checked(tmp_path, "garden", "garden")["warnings"]
    )
    (warning,) = [
        warning
        for warning in checked(tmp_path, old, new)["warnings"]
        if words in warning["message"]
    ]
    assert warning["file"].endswith("claw.yaml")


@pytest.mark.parametrize(
    "old, new, words",
    [
        ('"/var/data", permissions: ro', '"/", permissions: ro', "write wherever"),
        ('"api.example.com"', '"*.example.com"', "top-level domain"),
        ('"api.example.com"', '"*.shop.co.uk"', "top-level domain"),
        ("{ timeout_ms: 30000, memory_mb: 256 }", "{ max_processes: 5 }", "no resource_limits"),
        ('denied_paths: ["/workspace/private"]', 'denied_paths: ["/var/data/x"]', "profile L"),
    ],
)
def test_what_is_narrow_is_no_warning(tmp_path, old, new, words):
    assert not any(
        words in warning["message"] for warning in checked(tmp_path, old, new)["warnings"]
    )


@pytest.mark.parametrize(
    "old, new, line, said",
    [
        (
            "mode: scoped",
            "mode: full",
            "denied_paths",
            '"/workspace/private" lies in "/": make nothing',
        ),
        (
            '"/var/data", permissions: ro',
            '"/workspace/data", permissions: ro',
            '"/var/data"',
            '"/workspace/data", mounted to be read, lies in "/workspace": are refused',
        ),
    ],
)
def test_what_landlock_cannot_take_away_below_a_writable_folder_is_a_warning(
    tmp_path, old, new, line, said
):
    """A right that is given to a folder holds for all below it."""
    said, _, costs = said.rpartition(": ")
    warnings = [
        warning for warning in checked(tmp_path, old, new)["warnings"] if said in warning["message"]
    ]
    assert [warning["line"] for warning in warnings] == [line_of(line)], warnings
    assert "profile L" in warnings[0]["message"] and costs in warnings[0]["message"]


def test_relaxed_limits_are_not_among_the_defaults(tmp_path):
    checked(tmp_path, "      resource_limits: { timeout_ms: 30000, memory_mb: 256 }\n", "")
    (tmp_path / "clawlite.toml").write_text(
        'reflex = "reflex.toml"\n[sandbox]\nrelaxed = ["memory_mb"]\n'
    )
    (told,) = [
        warning["message"]
        for warning in check.check(str(tmp_path))["warnings"]
        if "no resource_limits" in warning["message"]
    ]
    assert "of memory" not in told and "256 processes" in told


@pytest.mark.parametrize(
    "old, new, words",
    [
        (
            '"api.example.com"',
            '"https://api.example.com"',
            ["no host matches it", 'write "api.example.com"'],
        ),
        ('"api.example.com"', '"api.example.com:443"', ['write "api.example.com"']),
        (
            '"/var/data", permissions: ro',
            '"/var/data"',
            ['the field "permissions" is missing - give it "ro" or "rw"'],
        ),
        ('"api.example.com"', '"api.example.com/v1"', ['write "api.example.com"']),
        ('"api.example.com"', '" api.example.com"', ['write "api.example.com"']),
        ('"api.example.com"', '"api example com"', ["one name for each entry"]),
        ('"api.example.com"', '"*"', ["mode: allow-all"]),
        ('"api.example.com"', '""', ["one name"]),
        ('"api.example.com"', '"192.168.*.*"', ["there are no ranges"]),
        ('"api.example.com"', '"10.0.0.0/8"', ["there are no ranges"]),
        ('"api.example.com"', '"[203.0.113.7]"', ["no host matches it", 'write "203.0.113.7"']),
        ('"api.example.com"', '"api.*.com"', ["*.example.com"]),
        ('"api.example.com"', '"https://example.com:8080/a b"', ['write "example.com"']),
        (
            '"/var/data"',
            '"var/data"',
            ["expected a path from the root", 'write "/var/data", or "/workspace/var/data"'],
        ),
        ('"/var/data"', '"/workspace/"', ["mounted already (line 31)"]),
        ('"/var/data"', '"/var/../etc"', ["without ..", '"/etc"']),
        ('"/var/data"', '"~/data"', ["no home is known"]),
        ('["\\\\beval"]', '[""]', ["matches every command", "mode: deny"]),
        ('["\\\\beval"]', '[".*"]', ["matches every command"]),
        ('["\\\\beval"]', '["(?=x)"]', ["position 0", "without that"]),
        ('["rm"]', '[""]', ["mode: deny"]),
        ("id: rest", "id: look", ['a rule "look" already (line 39)']),
        ("memory_mb: 256", "memory_mb: 268435456", ["tebibyte", "256 is as many bytes"]),
        ("memory_mb: 256", 'memory_mb: "256MB"', ["write 256: the number alone"]),
        ("timeout_ms: 30000", "timeout_ms: 30s", ["write 30000: the number alone"]),
        ("timeout_ms: 30000", "timeout_ms: 2 min", ["write 120000"]),
        ("timeout_ms: 30000", 'timeout_ms: "30000"', ["remove the quotes"]),
        ("timeout_ms: 30000", "timeout_ms: 30/s", ["write the number alone"]),
        ("timeout_ms: 30000", "timeout_ms: 1500us", ["write the number alone"]),
        ("secret_ref: CONSOLE", 'secret_ref: "${CONSOLE}"', ['write "CONSOLE"']),
        ("level: process", "level: docker", ['did you mean "container"?']),
        ("protocol: custom", "protocol: openai", ['did you mean "openai-compatible"?']),
        ("autonomy: autonomous", "autonomy: auto", ['did you mean "autonomous"?']),
        ("permissions: ro", "permissions: read", ['did you mean "ro"?']),
        ("type: cli", "type: terminal", ['did you mean "cli"?']),
        ("action: allow, scope: all", "action: block, scope: all", ['did you mean "deny"?']),
        ("read-file@1.0.0", "read-file", ['write "claw://registry/clawlite/read-file@1.0.0"']),
        (
            "read-file@1.0.0",
            "read-file@latest",
            ['write "claw://registry/clawlite/read-file@1.0.0"'],
        ),
        ('"builtin:reflex"', '"reflex"', ['did you mean "builtin:reflex"?']),
        (
            '"builtin:reflex"',
            '"api.example.com/v1"',
            ['did you mean "https://api.example.com/v1"?'],
        ),
        ("timeout_ms: 30000", "timeout: 30", ['did you mean "timeout_ms"?']),
        ("mount_paths:", "mounts:", ['did you mean "mount_paths"?']),
        ("mode: restricted", "mode: whitelist", ['"deny", "full" or "restricted"']),
    ],
)
def test_one_problem_with_its_line_and_what_to_do(tmp_path, old, new, words):
    with pytest.raises(ManifestErrors) as caught:
        checked(tmp_path, old, new)
    (problem,) = caught.value.problems
    assert problem.line == line_of(old) and problem.hint or "expected" in problem.text(), (
        problem.text()
    )
    for word in words:
        assert word in problem.text(), problem.text()


def test_a_secret_in_a_manifest_is_refused_and_not_shown(tmp_path):
    secret = "sk" + "-proj-" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6"
    with pytest.raises(ManifestErrors, match="this is a secret itself") as caught:
        checked(tmp_path, "CONSOLE", secret)
    assert secret not in str(caught.value) and "clawlite secrets set" in str(caught.value)


@pytest.mark.parametrize("mode", ["environment", "file-mount"])
def test_an_injection_that_level_none_does_not_have(tmp_path, mode):
    text = MANIFEST[MANIFEST.index("      level: process") : MANIFEST.index("  policies:")]
    with pytest.raises(ManifestErrors) as caught:
        checked(
            tmp_path,
            text,
            "      level: none\n      capabilities: { secrets: { injection: %s } }\n" % mode,
        )
    assert [
        problem.text()
        for problem in caught.value.problems
        if "nobody is given a secret" in problem.message and "use level: process" in problem.hint
    ]


@pytest.mark.parametrize(
    "old, new, said",
    [
        (
            "mode: allowlist",
            "mode: deny",
            "allowed_hosts say nothing with mode deny: mode: allowlist keeps to them",
        ),
        (
            'allowed_hosts: ["api.example.com"]',
            "allowed_hosts: []",
            "mode allowlist without allowed_hosts lets tools reach no host",
        ),
        (
            '["\\\\beval"]',
            '["eval\\\\s+"]',
            '"eval\\s+" matches inside of longer words too, once '
            'their quotation marks are gone: "\\beval\\s+" begins at '
            "a word",
        ),
        (
            "mode: restricted",
            "mode: full",
            "what is blocked says nothing with mode full: mode: restricted keeps to it",
        ),
        (
            "mode: scoped",
            "mode: full",
            "mount_paths say nothing with mode full: mode: scoped keeps to them",
        ),
        (
            '"/workspace/private"',
            '"/srv/private"',
            'denied_paths: "/srv/private" lies outside every '
            "mount, where nothing can be reached anyway",
        ),
        (
            "match: { name: look }",
            "match: { name: lok }",
            'rule look: there is no tool "lok" here, so it never matches: did you mean "look"?',
        ),
        (
            "match: { name: look }",
            "match: { name: elsewhere }",
            'rule look: there is no tool "elsewhere" here, so it never matches',
        ),
        (
            "match: { name: look }",
            "match: { name: look }, approval: { timeout_seconds: 5 }",
            "approval says nothing with action allow: action: require-approval asks first",
        ),
        (
            "match: { name: look }",
            'match: { name: look }, conditions: { path_within: "/workspace" }',
            "rule "
            "look "
            "has "
            "path_within, "
            "and "
            "no "
            "argument "
            "of "
            "look "
            "holds "
            "a "
            "path: "
            "it "
            "never "
            "matches "
            "there",
        ),
    ],
)
def test_what_says_nothing_is_a_warning(tmp_path, old, new, said):
    found = checked(tmp_path, old, new)["warnings"]
    at = line_of("mount_paths") + 1 if "mount_paths" in said else line_of(old)
    assert [warning["line"] for warning in found if warning["message"] == said] == [at], found


@pytest.mark.parametrize(
    "absent, more",
    [(100, None), (101, "1 more rule names a tool"), (1103, "1,003 more rules name tools")],
)
def test_rules_that_name_no_tool_are_told_one_by_one_up_to_a_bound(tmp_path, absent, more):
    folder = agent.write(str(tmp_path))
    rules = [
        "      - { id: r%d, action: deny, scope: tool, match: { name: no-%d } }\n" % (n, n)
        for n in range(absent)
    ]
    path = tmp_path / "policy.yaml"
    head = path.read_text().partition("  rules:\n")[0] + "  rules:\n"
    path.write_text(head + "".join(rules))
    said = [
        one
        for one in lint.find(manifest.load(folder))["warnings"]
        if "there is no tool" in one["message"] or "more rule" in one["message"]
    ]
    assert [one["line"] for one in said] == [
        head.count("\n") + 1 + n for n in range(100 + bool(more))
    ]
    if more:
        assert said[-1]["message"] == more + " that there is not here, from this line on"


@pytest.mark.parametrize(
    "new",
    [
        "match: { name: 'lo*' }",
        "match: { name: read_file }",
        "match: { name: far__tool }",
        "match: { name: service.tool }",
    ],
)
def test_names_that_may_be_meant_are_not_warned_of(tmp_path, new):
    assert not [
        w
        for w in checked(tmp_path, "match: { name: look }", new)["warnings"]
        if "there is no tool" in w["message"]
    ]


@pytest.mark.parametrize(
    "old, new, line",
    [
        ('garden."', "garden.", 9),
        ('description: "Look."', 'description: "Look.', 21),
        ('"/workspace/private"', "'/workspace/private\"", 33),
    ],
)
def test_a_quotation_mark_that_is_not_closed_is_told_by_its_line(tmp_path, old, new, line):
    with pytest.raises(ManifestErrors) as caught:
        checked(tmp_path, old, new)
    assert (
        "close the quotation mark that begins on line %d" % line in str(caught.value)
        or caught.value.problems[0].line == line
    )


@pytest.mark.parametrize(
    "reflex, said",
    [
        ('[[rule]]\nwhen = "hello\nsay = "Hi."\n', "reflex.toml:2: not TOML: "),
        ('[[rule]]\nwhen = "a"\nwhen = "b"\n', "reflex.toml:3: not TOML: this name is here twice"),
        (
            '[[rule]]\nwhen = "hello"\ncall = "lok"\n',
            'rule[0].call: unknown tool "lok" - did you mean "look"?',
        ),
        ('[[rule]]\nwhen = "so {a:itn}"\nsay = "Hi."\n', 'found "{a:itn}"'),
        (
            '[[rule]]\nwhen = "so {bed:int}"\nsay = "Bed {bde}."\n',
            'rule[0].say: no pattern of this rule has the slot {bde} - did you mean "bed"?',
        ),
        (
            '[[rule]]\nwhen = "so"\ncall = "look"\narguments = {where = "x"}\nsay = "{result}"\n',
            "the slot {result} - slots here: none; what a call answers is known in its "
            "[[rule.then]]",
        ),
        (
            '[[rule]]\nwhen = "so {bed:int}"\ncall = "look"\narguments = { where = "{b}" }\n',
            "rule[0].arguments.where: no pattern of this rule has the slot {b}",
        ),
    ],
)
def test_a_mistake_in_a_file_that_clawlite_alone_reads_is_no_valid_manifest(tmp_path, reflex, said):
    checked(tmp_path, "garden", "garden")
    (tmp_path / "reflex.toml").write_text(reflex)
    with pytest.raises(ManifestErrors) as found:
        check.check(str(tmp_path))
    assert said in str(found.value) and len(found.value.problems) == 1, found.value


def test_a_mistake_in_clawlite_toml_that_only_a_build_sees(tmp_path):
    checked(tmp_path, "garden", "garden")
    (tmp_path / "clawlite.toml").write_text(
        'reflex = "reflex.toml"\n[memory]\npower_safe = ["fcats"]\n'
    )
    with pytest.raises(
        ManifestErrors, match='clawlite.toml:3: memory.power_safe.0.: there is no store "fcats"'
    ):
        check.check(str(tmp_path))

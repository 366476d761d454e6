"""No hint leads into another refusal: what a hint says is done, and nothing is refused."""

import re

import pytest
from host.manifest.test_lint_errors import test_one_problem_with_its_line_and_what_to_do as mistakes
from whole_manifest import checked

from clawlite.host.base.problems import LATER, ManifestErrors
from clawlite.host.builder import check
from clawlite.host.builder.build import build_beside

OFFER = re.compile(r'(?:write|did you mean) "?([^\s",]+)')
CASES = [(old, new) for old, new, _ in mistakes.pytestmark[0].args[1]]
POLICY = (
    'claw: "0.3.0"\nkind: Policy\nmetadata: { name: one }\n'
    "spec: { rules: [{ id: one, action: deny, scope: tool, match: { name: look } }] }\n"
)


def _followed(mistake: str, offer: str) -> list:
    """Return *mistake* (a value, or "key: value, ...") as it reads once *offer* is in its place."""
    if mistake.startswith('"'):
        return ['"%s"' % offer]
    if ": " not in mistake:  # a key alone, or a reference that is not quoted
        return [offer + mistake[-1] if mistake.endswith(":") else offer.rpartition("/")[2]]
    value = re.compile(r"(?<=: )(\"[^\"]*\"|[^,}]+)")
    return [value.sub(lambda _: offer, mistake, count=1), re.sub(r"\A\w+", offer, mistake)]


def _refusals(folder, old: str, new: str) -> list:
    try:
        checked(folder, old, new)
    except ManifestErrors as e:  # what is valid and not built here is no mistake in a value
        return [
            problem
            for problem in e.problems
            if LATER not in problem.message and "built-in provider" not in problem.expected
        ]
    return []


def test_each_value_that_a_hint_offers_is_taken(tmp_path):
    """Every mistake of test_lint_errors whose hint offers a value or a key."""
    followed, refused = 0, []
    for old, new in CASES:
        problem = _refusals(tmp_path, old, new)[0]
        offer = OFFER.search(problem.text())
        if not offer or offer[1] == "the":
            continue
        followed += 1
        texts = _followed(new, offer[1].rstrip(":?"))
        outcomes = [_refusals(tmp_path, old, mended) for mended in texts]
        if all(outcomes):
            said = [found[0].text() for found in outcomes]
            refused.append((new, problem.hint, said))
    assert followed >= 20 and not refused, refused


@pytest.mark.parametrize(
    "uri", ["mcp://server/tool", "http://example.com/mcp", "server", "https://example.com/mcp"]
)
def test_a_tool_of_an_mcp_server_is_mended_by_what_its_hint_says(tmp_path, uri):
    look = '        description: "Look."\n'
    with pytest.raises(ManifestErrors) as caught:
        checked(tmp_path, look, look + '        mcp_source: { uri: "%s" }\n' % uri)
        build_beside(str(tmp_path))
    (problem,) = caught.value.problems
    assert "remove mcp_source" in problem.hint
    checked(tmp_path, "garden", "garden")  # both are done: tools.py has the function
    build_beside(str(tmp_path))


@pytest.mark.parametrize(
    "settings, rules, said",
    [
        ('[channel.x]\npath = "/x"\n', "", "telegram, mqtt"),
        ("", '[[rule]]\nmatch = "hi"\nsay = "x"\nwhen = "x"\n', "known here: when, say, call"),
    ],
)
def test_an_unknown_field_is_told_which_are_known(tmp_path, settings, rules, said):
    """A section of clawlite.toml has more than 20 siblings, and a reflex rule is no model."""
    checked(tmp_path, "garden", "garden")
    (tmp_path / "clawlite.toml").write_text('reflex = "reflex.toml"\n' + settings)
    if rules:
        (tmp_path / "reflex.toml").write_text(rules)
    with pytest.raises(ManifestErrors) as caught:
        build_beside(str(tmp_path))
    (problem,) = caught.value.problems
    assert problem.message == "unknown field" and said in problem.hint, problem.text()


def test_files_outside_of_the_folder_are_named_as_the_hint_says(tmp_path):
    garden, other = tmp_path / "garden", tmp_path / "other"
    garden.mkdir()
    other.mkdir()
    (other / "one.yaml").write_text(POLICY)
    old = "  policies:\n"
    with pytest.raises(ManifestErrors) as caught:
        checked(garden, old, old + "    - ../other/*.yaml\n")
    (problem,) = caught.value.problems
    assert "one by one" in problem.hint and "--allow-folder" in problem.hint
    with pytest.raises(ManifestErrors):
        checked(garden, old, old + "    - ../other/one.yaml\n")
    assert check.check(str(garden), allowed=[str(other)])["rules"] == 3


def test_a_link_out_of_the_folder_is_named_as_the_hint_says(tmp_path):
    garden, other = tmp_path / "garden", tmp_path / "other"
    (garden / "more").mkdir(parents=True)
    other.mkdir()
    (other / "one.yaml").write_text(POLICY)
    (garden / "more" / "one.yaml").symlink_to(other / "one.yaml")
    with pytest.raises(ManifestErrors) as caught:
        checked(garden, "  policies:\n", "  policies:\n    - ./more/*.yaml\n")
    (problem,) = caught.value.problems
    folder = re.search("name that file itself, and .*--allow-folder (\\S+)", problem.hint)[1]
    with pytest.raises(ManifestErrors):
        checked(garden, "  policies:\n", "  policies:\n    - ./more/one.yaml\n")
    assert check.check(str(garden), allowed=[folder])["rules"] == 3

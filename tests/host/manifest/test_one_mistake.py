"""One mistake is one problem: each key of a project, misspelt alone."""

import re
import shutil

import pytest

from clawlite.host.base.problems import ManifestErrors
from clawlite.host.builder import check
from clawlite.host.projects import new

FILES = (
    "claw.yaml",
    "policy.yaml",
    "tools/water.yaml",
    "tools/read-soil.yaml",
    "clawlite.toml",
    "reflex.toml",
)
KEY = re.compile(r'(?m)(?<![\w"])([a-z][a-z_]{2,})(?=:(?:\s|$)| = )')


@pytest.fixture(scope="module")
def greenhouse(tmp_path_factory):
    folder = tmp_path_factory.mktemp("one") / "greenhouse"
    new.new(str(folder))
    return folder


@pytest.mark.parametrize("name", FILES)
def test_a_misspelt_key_is_one_problem(greenhouse, tmp_path, name):
    shutil.copytree(greenhouse, tmp_path / "g")
    text = (greenhouse / name).read_text()
    count, more = 0, []
    for found in KEY.finditer(text):
        line = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        if "#" in line:
            continue
        key = found[1]
        (tmp_path / "g" / name).write_text(
            text[: found.start()] + key[:-2] + key[-1] + key[-2] + text[found.end() :]
        )
        try:
            check.check(str(tmp_path / "g"))
        except ManifestErrors as e:
            count += 1
            if len(e.problems) > 1:
                more.append((key, [problem.text() for problem in e.problems]))
    assert count and more == []


@pytest.mark.parametrize(
    "old, new, hint",
    [
        ('trigger: { schedule: "0 7 * * *" }', 'schedule: "0 7 * * *"', "trigger.schedule"),
        (', auth: { secret_ref: "NONE" }', ', secret_ref: "NONE"', "auth.secret_ref"),
        (', auth: { secret_ref: "NONE" }', ', auth: {}, secret_ref: "NONE"', "auth.secret_ref"),
        ("processing: { max_message_length: 9 }", "max_message_length: 9", "processing.max_mess"),
    ],
)
def test_a_field_one_level_too_high_is_one_problem_and_its_place_is_named(
    greenhouse, tmp_path, old, new, hint
):
    shutil.copytree(greenhouse, tmp_path / "g")
    line = (
        '    - inline: { name: "clock", type: "cron", transport: "polling", '
        'trigger: { schedule: "0 7 * * *" }, processing: { max_message_length: 9 }'
        ', auth: { secret_ref: "NONE" } }\n'
    )
    text = (greenhouse / "claw.yaml").read_text()
    at = text.index("  channels:\n") + len("  channels:\n")
    assert old in line
    (tmp_path / "g/claw.yaml").write_text(text[:at] + line.replace(old, new) + text[at:])
    with pytest.raises(ManifestErrors) as caught:
        check.check(str(tmp_path / "g"))
    (problem,) = caught.value.problems
    assert "unknown field - did you mean" in problem.text() and hint in problem.text()


def test_what_the_kind_of_a_provider_needs_is_missing_once(greenhouse, tmp_path):
    shutil.copytree(greenhouse, tmp_path / "g")
    text = (greenhouse / "claw.yaml").read_text()
    old = 'auth: { type: "none" }'
    new = 'auth: { type: "bearer" }\n        secret_ref: "KEY"'
    assert old in text
    (tmp_path / "g/claw.yaml").write_text(text.replace(old, new, 1))
    with pytest.raises(ManifestErrors) as caught:
        check.check(str(tmp_path / "g"))
    (problem,) = caught.value.problems
    assert 'did you mean "auth.secret_ref"?' in problem.text()

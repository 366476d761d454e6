"""One mistake is one problem: single mistakes in documents of all eleven kinds, made by program."""

import copy
import json
import shutil
from pathlib import Path

import pytest

from clawlite.host.base import yaml_text
from clawlite.host.base.kinds import KINDS
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.builder import check

TESTS = Path(__file__).parents[2]
EVERY = TESTS / "host/fuzzed"  # every kind, inline
FILES = TESTS / "ckp/fixture"  # and a file for each kind
SHORT = 11  # each so manieth mistake, where not all are made


def problems(folder) -> list:
    try:
        check.check(str(folder))
    except ManifestErrors as e:
        return [problem.text() for problem in e.problems]
    return []


def places(value, at: tuple = ()):
    """Yield the path of all that stands below *value*."""
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield (*at, key)
            yield from places(value[key], (*at, key))


def mistakes(data: dict):
    """Yield (what, path, *data* with that one mistake)."""
    for path in places(data):
        for what in ("misspelt", "missing", "a list", "a number"):
            wrong = copy.deepcopy(data)
            parent, key = wrong, path[-1]
            for part in path[:-1]:
                parent = parent[part]
            if what == "a list":
                parent[key] = {"zz": 1} if isinstance(parent[key], list) else [[7]]
            elif what == "a number":
                parent[key] = 7.5
            elif isinstance(key, int) or path == ("spec", "channels"):
                continue  # clawlite.toml names two of them
            elif what == "missing":
                del parent[key]
            else:
                other = key[:-2] + key[-1] + key[-2] if key[-2:-1] != key[-1] else key + "q"
                members = [(other if name == key else name, of) for name, of in parent.items()]
                parent.clear()
                parent.update(members)
            yield what, path, wrong


def documents(folder) -> list:
    """Return [(path below *folder*, plain data)] of its documents."""
    found = []
    for file in sorted(folder.rglob("*.yaml")):
        name = str(file.relative_to(folder))
        data = yaml_text.read(file.read_bytes(), name).data
        if isinstance(data, dict) and "kind" in data:
            found.append((name, data))
    return found


def played(origin, tmp_path, stride: int):
    """Make each *stride*-th mistake in the project *origin*; return (how many were problems, those
    that were several)."""
    folder = tmp_path / "project"
    shutil.copytree(origin, folder)
    assert problems(folder) == []
    count, more, number = 0, [], 0
    for name, data in documents(origin):
        text = (folder / name).read_text()
        for what, path, wrong in mistakes(data):
            number += 1
            if number % stride == 0:
                (folder / name).write_text(json.dumps(wrong))
                found = problems(folder)
                count += bool(found)
                if len(found) > 1:
                    more.append((name, what, path, found))
        (folder / name).write_text(text)
    return count, more


@pytest.mark.parametrize("origin", [EVERY, FILES], ids=["inline", "files"])
@pytest.mark.parametrize("stride", [SHORT, pytest.param(1, marks=pytest.mark.soak)])
def test_a_single_mistake_is_one_problem(tmp_path, origin, stride):
    count, more = played(origin, tmp_path, stride)
    assert count > 500 / stride and more == []


def test_the_slots_of_the_root_are_one_problem_each(tmp_path):
    """Others refer to what would stand there."""
    shutil.copytree(EVERY, tmp_path / "project")
    data = dict(documents(EVERY))["claw.yaml"]
    for what, path, wrong in mistakes(data):
        if len(path) == 2 and path[0] == "spec":
            (tmp_path / "project/claw.yaml").write_text(json.dumps(wrong))
            found = problems(tmp_path / "project")
            assert len(found) <= 1, (what, path, found)


def test_a_missing_document_is_one_problem(tmp_path):
    folder, missing = tmp_path / "project", 0
    shutil.copytree(FILES, folder)
    for name, _ in documents(FILES):
        if name != "claw.yaml":
            (folder / name).rename(folder / "away")
            found = problems(folder)
            missing += len(found)
            assert len(found) <= 1, (name, found)
            (folder / "away").rename(folder / name)
    assert missing >= 6


@pytest.mark.parametrize("kind", KINDS)
def test_a_part_of_a_manifest_alone_is_one_problem(tmp_path, kind):
    data = {"claw": "0.3.0", "kind": kind, "metadata": {"name": "x"}, "spec": {"zz": 1, "yy": 2}}
    (tmp_path / "part.yaml").write_text(json.dumps(data))
    (found,) = problems(tmp_path / "part.yaml")
    assert f'kind: expected "Claw", found "{kind}" - a manifest begins with the root' in found
    slot = KINDS[kind][0]
    assert f'{slot}: "./part.yaml"' in found or f'{slot}: ["./part.yaml"]' in found, found


def test_another_word_for_the_one_field_that_is_missing_is_one_problem(tmp_path):
    shutil.copytree(EVERY, tmp_path / "project")
    wrong = dict(documents(EVERY))["claw.yaml"]
    auth = wrong["spec"]["providers"][0]["inline"]["auth"]
    auth["kind_of_proof"] = auth.pop("type")
    (tmp_path / "project/claw.yaml").write_text(json.dumps(wrong))
    (found,) = problems(tmp_path / "project")
    assert 'auth.kind_of_proof: unknown field - did you mean "type"?' in found

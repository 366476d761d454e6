"""What is installed from elsewhere: lower bounds and locks without known advisories, hashes for
everything, actions by commit.
"""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "requirements"
LOCKS = sorted(FOLDER.glob("*.txt"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]
FIXED = {
    name: max(map(Version, rows.values()))
    for name, rows in tomllib.loads((FOLDER / "advisories.toml").read_text()).items()
}
# which lock holds what is asked for where
ASKED = {
    "test.txt": [*EXTRAS["host"], *EXTRAS["accel"], *EXTRAS["test"]],
    "run.txt": [*EXTRAS["host"], "setuptools>=78.1.1"],
    "sim.txt": EXTRAS["sim"],
    **{
        path.with_suffix(".txt").name: [
            line for line in path.read_text().splitlines() if line and not line.startswith("#")
        ]
        for path in FOLDER.glob("*.in")
    },
}
EVERY = [need for needs in (*EXTRAS.values(), *ASKED.values()) for need in needs]


def _lowest(need: Requirement) -> Version:
    bounds = [one.version for one in need.specifier if one.operator in (">=", "==", "~=", ">")]
    assert bounds, "%s: expected a lower bound" % need
    return max(map(Version, bounds))


def _locked(lock: Path) -> dict:
    """Return {name: [(version, hashes)]} of a lock; a package may have a version for each of
    several Pythons.
    """
    found: dict = {}
    for entry in re.split(r"\n(?=\S)", lock.read_text().strip()):
        first, *rest = entry.split(" \\\n")
        need = Requirement(first)
        hashes = [line.strip().removeprefix("--hash=") for line in rest]
        found.setdefault(canonicalize_name(need.name), []).append((_lowest(need), hashes))
    return found


def _findings(needs: list) -> list:
    """Return which of *needs* let a version with an advisory in."""
    asked = [Requirement(need) for need in needs]
    return [
        str(one)
        for one in asked
        if FIXED.get(canonicalize_name(one.name), Version("0")) > _lowest(one)
    ]


def test_lower_bounds_exclude_versions_with_advisories():
    assert _findings([*EVERY, *PROJECT["build-system"]["requires"]]) == []
    assert _findings(["aiohttp>=3.9", "Flask>=2"]) == ["aiohttp>=3.9", "Flask>=2"]


def test_each_lock_has_its_source():
    assert sorted(ASKED) == [lock.name for lock in LOCKS]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_has_hashes_and_no_version_with_an_advisory(lock):
    for name, entries in _locked(lock).items():
        for version, hashes in entries:
            assert hashes and all(re.fullmatch("sha256:[0-9a-f]{64}", one) for one in hashes), name
            assert version >= FIXED.get(name, Version("0")), (name, version)
    # each machine goes to the index that it is set up for
    assert not re.search(r"https?:|--(extra-)?index-url|--find-links", lock.read_text())


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_has_what_is_asked_for(lock):
    locked = _locked(lock)
    for need in map(Requirement, ASKED[lock.name]):
        entries = locked.get(canonicalize_name(need.name), [])
        assert entries and all(need.specifier.contains(version, True) for version, _ in entries), (
            "%s: not in requirements/%s - make lock" % (need, lock.name)
        )


def test_actions_are_named_by_their_commits():
    said = (ROOT / ".ci/wheels.yml").read_text()
    actions = re.findall(r"uses: *(\S+)(.*)", said)
    assert len(actions) > 5
    for action, comment in actions:
        assert re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v[0-9.]+", comment), (action, comment)
    assert not re.search(r"pipx run|pip install (?!.*--require-hashes)", said)

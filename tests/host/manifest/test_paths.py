"""Paths of a manifest that mean no file: each is one problem with its line, what was expected,
what was found and what to do.
"""

import json

import pytest
from whole_manifest import MANIFEST, checked, line_of

from clawlite.host.base.paths import MOST, mistake
from clawlite.host.base.problems import ManifestErrors

BAD = [
    ("", ["a path from the root, or below /workspace"]),
    ("/etc\0/x", ["a path from the root"]),
    ("x" * 5000, ["it has 5000 characters"]),
    ("/" + "x" * 256, ["255 for each name"]),
    ("/ä" * 1500, ["at most 4095 bytes"]),
    ("~/.ssh", ["no home is known"]),
    ("~root", ["no home is known"]),
    ("../etc", ["a path without ..", 'write "/etc", if that is meant']),
    ("/srv/../etc", ['write "/etc"']),
    ("..", ['write "/"']),
    ("a/../..", ['write "/"']),
    ("$HOME/.ssh", ["without variables", "[sandbox] writable"]),
    ("/home/${USER}/x", ["without variables"]),
    ("/home/*/.ssh", ["without * and ?", '"/home" means all below it']),
    ("*.pem", ['"/workspace" means all below it']),
    ("/*", ["name each folder"]),
    ("keys/k?y", ['"keys" means all below it']),
    ("/etc/shadow\n", ["without control characters", 'write "/etc/shadow"']),
    (" /etc", ['write "/etc"']),
    ("/etc\t", ["white space at its ends"]),
    ("/a\x1b[2J", ["control characters"]),
    (" ", ["white space"]),
]
GOOD = [
    "/",
    ".",
    "/etc//shadow",
    "/etc/shadow/",
    "./private",
    "private",
    "/srv/[id]/a{b}",
    "/srv/a b",
    "/srv/..a/b..",
    "/$5",
    "/" + "x" * 255,
    "/ä" * 1365,
    "C:\\keys",
    "a~",
]


@pytest.mark.parametrize("path, said", BAD, ids=[str(index) for index in range(len(BAD))])
@pytest.mark.parametrize("place", ['"/workspace/private"', '"/var/data"'])
def test_it_is_refused_by_line(tmp_path, path, said, place):
    with pytest.raises(ManifestErrors) as caught:
        checked(tmp_path, place, json.dumps(path))
    (problem,) = caught.value.problems
    assert (
        problem.line == line_of(place)
        and ("denied_paths[0]" if "private" in place else "mount_paths[1].path") in problem.text()
    )
    assert (
        problem.text().count("expected") == 1
        and "found" in problem.text()
        and "\n" not in problem.text()
        and "\x1b" not in problem.text()
    )
    for words in said:
        assert words in problem.text(), problem.text()


@pytest.mark.parametrize(
    "path", [one for one, _ in BAD], ids=[str(index) for index in range(len(BAD))]
)
def test_a_rule_within_it_is_refused(tmp_path, path):
    """Without a meaning it was no condition at all: "allow what is within nothing" allowed
    everything.
    """
    with pytest.raises(ManifestErrors) as caught:
        checked(
            tmp_path,
            "match: { name: look } }",
            "match: { name: look }, conditions: { path_within: %s } }" % json.dumps(path),
        )
    assert [
        problem.line for problem in caught.value.problems if "path_within" in problem.text()
    ] == [line_of("match: { name: look }")]


@pytest.mark.parametrize("path", GOOD, ids=[str(index) for index in range(len(GOOD))])
def test_what_means_a_file_is_built(tmp_path, path):
    assert mistake(path) is None
    checked(tmp_path, '"/workspace/private"', json.dumps(path))


def test_half_a_character_is_no_path(tmp_path):
    assert "lone surrogate" in mistake("/a\ud800")[1]
    with pytest.raises(ManifestErrors):
        checked(tmp_path, '"/workspace/private"', '"/a\\uD800"')


def test_a_file_that_is_no_utf_8_is_refused(tmp_path):
    (tmp_path / "claw.yaml").write_bytes(
        MANIFEST.encode().replace(b"/workspace/private", b"/workspace/\xff")
    )
    from clawlite.host.builder import check

    with pytest.raises(ManifestErrors, match="UTF-8"):
        check.check(str(tmp_path))


@pytest.mark.parametrize("over", [0, 1])
def test_how_many(tmp_path, over):
    paths = json.dumps(["/workspace/%d" % number for number in range(MOST + over)])
    if not over:
        checked(tmp_path, '["/workspace/private"]', paths)
        return
    with pytest.raises(
        ManifestErrors,
        match="denied_paths: expected at most 256 paths, found 257 - name the folder",
    ):
        checked(tmp_path, '["/workspace/private"]', paths)


def test_a_mount_in_what_is_denied_is_a_warning(tmp_path):
    found = checked(tmp_path, '"/workspace/private"', '"/var"')["warnings"]
    assert [
        (one["line"], one["message"]) for one in found if "which is denied" in one["message"]
    ] == [
        (
            line_of('"/var/data"'),
            'mount_paths: "/var/data" lies in "/var", which is denied: no tool sees it',
        )
    ]

"""The file tools inside: in N and in L, as an ordinary user and as root, what is reached is what
the profile says.
"""

import os

import pytest

CANARY = "canary"


class Tools:
    """The file tools in the child of a Host's sandbox."""

    def __init__(self, place, mounts, denied):
        self.place, self.mounts, self.denied = place, mounts, denied

    def __call__(self, name: str, **arguments):
        """Return the text, or the class of the error."""
        asked = {
            "name": name,
            "arguments": arguments,
            "files": [2, self.mounts, self.denied + ["/workspace/private"]],
            "hidden": [str(self.place.folder / "state")],
        }
        good, value = self.place.run(
            ["builtin", "clawlite.linux.tools.file_tools", "run_inside", asked],
            mounts=self.mounts,
            denied=self.denied,
        )
        self.said = None if good else value[2]
        return value["text"] if good else value[0]


@pytest.fixture(params=["virtual", "real"])
def tools(place, request):
    folder = place.folder
    mounts = [
        ["/workspace" if request.param == "virtual" else str(folder / "ws"), True],
        [str(folder / "ro"), False],
    ]
    return Tools(place, mounts, [str(folder / "ws" / "private")])


def test_they_do_their_work_below_and_beside_a_denied_path(tools):
    assert (
        tools("read-file", path="hello")
        == tools("read-file", path="/workspace/hello")
        == "hello-benign"
    ), tools.said
    assert (
        tools("write-file", path="new/deep/file", content="x") == "wrote 1 bytes to new/deep/file"
    )
    assert (
        tools("edit-file", path="new/deep/file", old_text="x", new_text="yz")
        == "replaced 1 bytes with 2 in new/deep/file"
    )
    assert tools("read-file", path="new/deep/file") == "yz" and "new/" in tools(
        "list-directory", path="."
    ).split("\n")
    assert tools("read-file", path=str(tools.place.folder / "ro/config")) == "ro-config"
    assert tools("read-file", path="nope") == "ClawError"
    assert os.stat(tools.place.folder / "ws/new/deep/file").st_size == 2


@pytest.mark.parametrize(
    "path",
    [
        "private/key",
        "private",
        "/workspace/private/key",
        "../out/secret",
        "{folder}/out/secret",
        "{folder}/state",
        "/etc/passwd",
        "/proc/self/environ",
        "out-link/secret",
        "key-link",
        "absolute",
    ],
)
def test_nothing_else_is_reached(tools, path):
    folder = tools.place.folder
    for link, target in (
        ("out-link", folder / "out"),
        ("key-link", "private/key"),
        ("absolute", folder / "out/secret"),
    ):
        if not os.path.islink(folder / "ws" / link):
            os.symlink(target, folder / "ws" / link)
    path = path.format(folder=folder)
    for name, more in (
        ("read-file", {}),
        ("list-directory", {}),
        ("write-file", {"content": "x"}),
        ("edit-file", {"old_text": "c", "new_text": "x"}),
    ):
        assert tools(name, path=path, **more) == "SandboxDenied", name
    assert (folder / "out/secret").read_text() == "canary-out" and (
        folder / "ws/private/key"
    ).read_text() == "canary-key"


def test_a_read_only_mount_is_read_only(tools):
    assert (
        tools("write-file", path=str(tools.place.folder / "ro/new"), content="x") == "SandboxDenied"
    )
    assert not os.path.exists(tools.place.folder / "ro/new")

"""A workspace around the agent's own state (a mounted home), and one in it: what is hidden stays
so.
"""

import contextlib
import os

import pytest
from sandbox_places import host
from sandboxes import NOBODY

from clawlite.protocols.sandbox import profile as P

PLACES = ["N-user", "N-root", "L-user", "L-root"]


@contextlib.contextmanager
def secretive(place: str, workspace: str):
    """A Host with a secret in its state, and its workspace in the folder of that name."""
    profile, _, user = place.partition("-")
    with host(profile, user == "root", workspace=workspace) as one:
        (one.folder / "state" / "secrets").mkdir()
        (one.folder / "state" / "secrets" / "key").write_text("canary-state")
        yield one


@pytest.fixture(scope="module", params=PLACES)
def wide(request):
    """A Host whose workspace is its whole folder, the state in it."""
    with secretive(request.param, "") as one:
        yield one


def test_a_command_does_not_see_the_state(wide):
    mounts = [[str(wide.folder), True]]
    assert wide.shell("cat %s/ws/hello" % wide.folder, mounts=mounts)["output"] == "hello-benign"
    said = wide.shell(
        "cd %s; cat state/secrets/key; cat < state/secrets/key; ls state; echo x > "
        "state/new; mv state other && cat other/secrets/key" % wide.folder,
        mounts=mounts,
    )
    assert (
        "canary" not in said["output"]
        and not (wide.folder / "state" / "new").exists()
        and (wide.folder / "state").exists()
    )


@pytest.mark.parametrize(
    "path", ["{folder}/state/secrets/key", "state/secrets/key", "ws/../state/secrets/key"]
)
def test_a_file_tool_does_not_see_the_state(wide, path):
    mounts = [[str(wide.folder), True]]
    for name, more in (("read-file", {}), ("write-file", {"content": "x"}), ("list-directory", {})):
        asked = {
            "name": name,
            "arguments": dict(more, path=path.format(folder=wide.folder)),
            "files": [2, mounts, []],
            "hidden": [str(wide.folder / "state")],
        }
        good, value = wide.run(
            ["builtin", "clawlite.linux.tools.file_tools", "run_inside", asked], mounts=mounts
        )
        assert not good and value[0] == "SandboxDenied", value


@pytest.fixture(scope="module", params=PLACES)
def inner(request):
    """A Host whose workspace lies in its state, as an agent's own does."""
    with secretive(request.param, "state/workspace") as one:
        (one.folder / "state" / "workspace").mkdir()
        (one.folder / "state" / "workspace" / "hello").write_text("hello-benign")
        (one.folder / "state" / "workspace").chmod(0o777)
        yield one


@pytest.mark.parametrize("files", [1, 2, 3])
def test_a_workspace_in_the_state_shows_no_more_of_it(inner, files):
    state = inner.folder / "state"
    said = inner.shell(
        "cat hello; cat ../secrets/key; cat {0}/secrets/key; ls {0}; ls ..; echo x "
        "> {0}/new".format(state),
        files=files,
        mounts=[],
    )
    assert (
        "hello-benign" in said["output"]
        and "canary" not in said["output"]
        and "secrets\n" not in said["output"]
    )
    assert not (state / "new").exists()


# -- root's home is closed to the user of the tools


def _closed(place):
    """Make the workspace of *place* below a folder that only root may enter, like its home."""
    ws = place.folder / "closed/ws"
    ws.mkdir(parents=True)
    ws.parent.chmod(0o700)
    for path in (ws.parent, ws):
        os.chown(path, 0, 0)
    ws.chmod(0o700)
    os.chown(ws, NOBODY, NOBODY)
    return ws


@pytest.mark.parametrize("files", [P.FULL, P.READ_ONLY])
def test_tools_work_in_a_workspace_below_a_folder_that_is_closed_to_them(files):
    with host("N", True, workspace="closed/ws") as place:
        ws = _closed(place)
        shown = {"files": files, "mounts": [], "injection": 2}
        said = place.shell("pwd; echo $HOME $WORKSPACE; ls %s" % ws, **shown)
        assert said["output"].split("\n")[:2] == ["/workspace", "/workspace /workspace"]
        assert "Permission denied" in said["output"], "nothing else in there is opened to tools"
        source = "import os\ndef f():\n    return [os.getcwd(), os.environ['HOME']]\n"
        good, value = place.run(["function", "tools.py", source, "f", {}], **shown)
        assert good and value == ["/workspace", "/workspace"], value
        if files == P.FULL:
            assert place.run(["file", "write-file", {"path": "a", "content": "x"}], **shown)[0]
            assert (ws / "a").read_text() == "x"
            assert place.shell("cat a; echo y > b; cat /workspace/b", **shown)["output"] == "xy\n"
        good, value = place.run(["file", "list-directory", {"path": "/workspace"}], **shown)
        assert good, value


def test_where_tools_cannot_get_into_the_workspace_the_folder_is_named():
    with host("L", True, workspace="closed/ws") as place:
        ws = _closed(place)
        good, value = place.run(["command", ["true"]], files=P.FULL, mounts=[])
        assert not good
        assert value[2] == "%s: Permission denied: uid 65534 of the tools may not enter %s" % (
            ws,
            ws.parent,
        )
        assert value[3].startswith("run the agent as another user than root")
        assert value[0] == "SandboxDenied" and value[4]["ran"] is False
        source = "def f():\n    return 1\n"
        good, value = place.run(["function", "tools.py", source, "f", {}], files=P.FULL, mounts=[])
        assert not good and value[1] == -32010 and value[4] == {"ran": False}


def test_mode_full_shows_the_devices_that_are_mounted(place):
    """CKP 5.7, filesystem.mount_paths: in mode full ``/dev`` stays small, but for them."""
    see = "test -c /dev/tty && echo there || echo no"
    mounted = place.shell(see, files=P.FULL, mounts=[["/dev/tty", True]])
    assert mounted["output"] == "there\n", mounted
    if place.profile == "N":
        assert place.shell(see, files=P.FULL, mounts=[])["output"] == "no\n"

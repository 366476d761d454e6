"""The agent's own workspace is made before anything else of its state."""

import os
import stat

import pytest

from clawlite.linux.sandbox.spawn import _own_folder


@pytest.mark.parametrize("umask", [0o022, 0o000])
def test_the_state_above_a_new_workspace_is_closed_to_others(tmp_path, umask):
    workspace = tmp_path / "agent" / "workspace"
    before = os.umask(umask)
    try:
        _own_folder(str(workspace), None)
    finally:
        os.umask(before)
    for folder in (workspace, workspace.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700, folder

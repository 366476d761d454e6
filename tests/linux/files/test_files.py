"""Names and words of files that several parts of an agent share."""

import os

import pytest

from clawlite.core.base.errors import ClawError
from clawlite.linux.files.files import aside, state_folder, state_root, swarm_folder
from clawlite.linux.files.rollback_marks import agent_folder


def test_the_first_damaged_file_is_never_lost(tmp_path):
    path = str(tmp_path / "meters.json")
    names = []
    for _ in range(10):
        names.append(aside(path))
        with open(names[-1], "w"):
            pass
    assert names[:3] == [path + ".damaged", path + ".damaged.2", path + ".damaged.3"]
    assert names[7:] == [path + ".damaged.8"] * 3


@pytest.mark.parametrize("name", ["../x", "/x", "..", ".gateway", "a/b", "", "a\0b"])
def test_a_name_of_an_image_leads_to_no_other_folder(name):
    """An image may come from anybody, and the state of its agent lies below its name."""
    for folder in (state_folder, swarm_folder):
        with pytest.raises(ClawError, match="would lead to another folder") as found:
            folder(name)
        assert "\0" not in found.value.message and found.value.hint
    assert state_folder("a-b1") == os.path.join(state_root(), "a-b1")


@pytest.mark.parametrize("name", ["swarms", "Swarms"])
def test_an_agent_called_swarms_has_a_folder_of_its_own(name):
    """On macOS both of these names are one."""
    own = state_folder(name)
    assert own == os.path.join(state_root(), name + ".agent")
    assert os.path.dirname(swarm_folder("team")) == os.path.join(state_root(), "swarms")
    assert agent_folder(own + "/meters.json") == own
    assert agent_folder(swarm_folder("team") + "/stopped") == swarm_folder("team")

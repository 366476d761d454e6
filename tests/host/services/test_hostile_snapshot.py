"""A ``.claw-tools.json`` that somebody else wrote, where ``clawlite discover`` replaces it."""

import os

import pytest

from clawlite.core.base.errors import ClawError
from clawlite.host.builder import discover


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"\xff\xfe",
        b'{"tools": 5}',
        b'{"tools": [5]}',
        b'{"tools": [{"name": ["a"]}]}',
        b"[" * 100000,
        b'{"tools": [{"name": "a", "inputSchema": ' + b'{"x":' * 5000 + b"0" + b"}" * 5000 + b"}]}",
    ],
)
def test_what_is_no_list_of_tools_is_one_sentence(tmp_path, data):
    """One that is nested 5,000 deep was a traceback."""
    path = tmp_path / ".claw-tools.json"
    path.write_bytes(data)
    with pytest.raises(ClawError, match="expected what an MCP server answers") as e:
        discover._read(str(path))
    assert e.value.hint == "remove it, and discover makes it anew"


def test_what_is_no_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    for name in ("fifo", "link", "folder"):
        with pytest.raises(ClawError, match="expected what an MCP server answers"):
            discover._read(str(tmp_path / name))
    assert discover._read(str(tmp_path / "none")) == {}

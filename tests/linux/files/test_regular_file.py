"""What others may have put in the place of a file is opened without waiting, and ends in one
sentence.
"""

import os
import socket

import pytest
from agents import clawlite

from clawlite.host.base import regular_file as of_host
from clawlite.linux.files import regular_file as of_linux

KINDS = ("fifo", "device", "folder", "socket", "zeros")


def place(path, kind: str):
    """Put *kind* at *path*."""
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(path))
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        with open(path, "wb") as file:
            file.truncate(10 << 30)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("room", [of_host, of_linux])
def test_what_is_no_file_is_refused_at_once(tmp_path, room, kind):
    place(tmp_path / "x", kind)
    with pytest.raises(OSError) as caught:
        open(tmp_path / "x", "rb", opener=room.open_regular)
    assert caught.value.strerror


@pytest.mark.parametrize("room", [of_host, of_linux])
def test_a_file_of_the_size_that_is_allowed_is_read(tmp_path, room, monkeypatch):
    monkeypatch.setattr(room, "MOST", 10)
    for size in (0, 9, 10):
        (tmp_path / "x").write_bytes(b"x" * size)
        with open(tmp_path / "x", "rb", opener=room.open_regular) as file:
            assert len(file.read()) == size
    (tmp_path / "x").write_bytes(b"x" * 11)
    with pytest.raises(OSError, match="too large"):
        open(tmp_path / "x", "rb", opener=room.open_regular)


@pytest.mark.parametrize("name", ["claw.yaml", "clawlite.toml", "reflex.toml", "tools.py"])
@pytest.mark.parametrize("kind", [*KINDS, "[ deep", "dots"])
def test_a_project_with_an_odd_file_ends_in_a_sentence(tmp_path, name, kind):
    assert clawlite("new", "p", "--offline", cwd=tmp_path).returncode == 0
    path = tmp_path / "p" / name
    path.unlink(missing_ok=True)
    if kind in KINDS:
        place(path, kind)
    else:
        deep = (
            "a = " + "[" * 5000 + "]" * 5000 if kind == "[ deep" else ".".join("a" * 5000) + "= 1"
        )
        path.write_text(deep + "\n")
    for verb in ("check", "build"):
        done = clawlite(verb, cwd=tmp_path / "p")
        assert done.returncode in (1, 2), done.stdout
        assert "Traceback" not in done.stderr and "is a bug" not in done.stderr
        assert name in done.stderr and len(done.stderr) < 2000


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["audit.jsonl", "audit.head", "log.jsonl"])
def test_odd_state_of_an_agent_ends_in_a_sentence(tmp_path, name, kind):
    assert clawlite("new", "p", "--offline", cwd=tmp_path).returncode == 0
    policy = tmp_path / "p/policy.yaml"
    text = policy.read_text()
    policy.write_text(text.replace("rules:", "audit: { destination: file }\n  rules:", 1))
    assert clawlite("build", cwd=tmp_path / "p").returncode == 0
    state = tmp_path / "state"
    (state / "p").mkdir(parents=True, mode=0o700)
    place(state / "p" / name, kind)
    for words in (("ask", "hello"), ("audit",), ("audit", "verify"), ("trace",)):
        done = clawlite(*words, cwd=tmp_path / "p", CLAWLITE_STATE=state)
        assert "Traceback" not in done.stderr and "is a bug" not in done.stderr, words
        assert done.returncode in (0, 1, 2), (words, done.stderr)


def test_the_folder_of_a_gateway_is_closed_from_the_first_command_on(tmp_path):
    state = tmp_path / "state"
    for _ in range(2):
        done = clawlite("gateway", "token", "board-1", cwd=tmp_path, CLAWLITE_STATE=state)
        assert done.returncode == 0, done.stderr
        for path in (state / ".gateway", state / ".gateway/tokens"):
            assert path.stat().st_mode & 0o777 == 0o700, path
        (state / ".gateway").chmod(0o755)  # as an older version left it

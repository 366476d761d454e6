"""A folder that somebody else prepared: nothing outside of it is written, removed or read."""

import errno
import os
import stat

import pytest
from agents import clawlite

from clawlite.core.base.errors import ClawError
from clawlite.host.base import without_links
from clawlite.host.base.without_links import IS_LINK, Below, open_named, replace_named
from clawlite.host.flash.folder import Folder


@pytest.fixture(params=[True, False])
def both(request, monkeypatch):
    """With the calls of POSIX, and without them, as on Windows."""
    monkeypatch.setattr(without_links, "_HAS_AT", request.param)
    if not request.param:
        real = os.open
        refuse = lambda *a, dir_fd=None, **more: real(*a, **more) if dir_fd is None else 1 / 0
        monkeypatch.setattr(os, "open", refuse)


@pytest.fixture
def places(tmp_path):
    """A folder, and another one that nothing may touch."""
    (tmp_path / "card").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other/f").write_text("VICTIM")
    return tmp_path / "card", tmp_path / "other"


def is_link_error(function, *arguments) -> bool:
    with pytest.raises(OSError) as e:
        function(*arguments)
    return e.value.errno == errno.ELOOP and e.value.strerror == IS_LINK


def test_a_link_to_a_file_is_not_followed(both, places):
    card, other = places
    below = Below(str(card))
    for target in (other / "f", other / "new", "../other/f", "f"):
        (card / "f").unlink(missing_ok=True)
        (card / "f").symlink_to(target)
        for verb in (below.open, below.read, below.create):
            assert is_link_error(verb, "/f"), verb
        assert is_link_error(below.write, "f", b"x")
        assert not below.is_file("f")
    assert os.listdir(other) == ["f"] and (other / "f").read_text() == "VICTIM"


def test_a_link_to_a_folder_is_not_followed(both, places):
    card, other = places
    below = Below(str(card))
    (card / "lib").symlink_to(other)
    (card / "a").mkdir()
    (card / "a/b").symlink_to(other)
    for top in ("lib", "a/b"):
        assert is_link_error(below.read, top + "/f")
        assert is_link_error(below.create, top + "/f")
        assert is_link_error(below.remove, top + "/f")
        assert is_link_error(below.mkdir, top + "/new")
        assert is_link_error(below.rename, top + "/f", "mine")
        assert is_link_error(below.make_folders, top + "/new")
        assert is_link_error(below.names, top)
        assert is_link_error(below.is_folder, top)
        assert is_link_error(below.sync, top)
    (card / "mine").write_text("x")
    assert is_link_error(below.rename, "mine", "lib/f")
    assert is_link_error(below.check_tree)
    assert (other / "f").read_text() == "VICTIM" and os.listdir(other) == ["f"]


def test_another_name_of_a_file_keeps_what_it_has(both, places):
    card, other = places
    os.link(other / "f", card / "f")
    Below(str(card)).write("f", b"mine")
    assert (other / "f").read_text() == "VICTIM" and (card / "f").read_text() == "mine"


def test_a_draft_that_is_a_link_is_not_followed(both, places):
    card, other = places
    (card / "claw.cbor.new").symlink_to(other / "f")
    assert is_link_error(replace_named, str(card / "claw.cbor"), b"x")
    assert (card / "claw.cbor.new").is_symlink()
    (card / "claw.cbor.new").unlink()
    (card / "claw.cbor").symlink_to(other / "f")
    replace_named(str(card / "claw.cbor"), b"x")  # the link itself is replaced
    assert not (card / "claw.cbor").is_symlink() and (card / "claw.cbor").read_text() == "x"
    assert (other / "f").read_text() == "VICTIM" and os.listdir(card) == ["claw.cbor"]


def test_what_is_no_file_is_refused_at_once(both, places):
    card, _ = places
    os.mkfifo(card / "fifo")
    (card / "folder").mkdir()
    below = Below(str(card))
    for name in ("fifo", "folder"):
        for verb in (below.open, below.create):
            with pytest.raises(OSError):
                verb(name)
    assert stat.S_ISFIFO(os.stat(card / "fifo").st_mode)


@pytest.mark.parametrize("path", ["../other/f", "a/../../other/f", "/../other/f"])
def test_no_path_leads_out(both, places, path):
    with pytest.raises(OSError, match="leads out"):
        Below(str(places[0])).read(path)


def test_what_it_is_for_works(both, places):
    card, _ = places
    below = Below(str(card))
    below.make_folders("a/b")
    below.make_folders("a/b")
    below.write("/a/b/f", b"one")
    below.replace("a/b/f", b"two")
    below.rename("a/b/f", "/a/g")
    below.sync("/a")
    below.check_tree()
    assert below.names("a") == ["b", "g"] and below.read("a/g", 2) == b"tw"
    assert below.names("") == ["a"]
    assert below.is_folder("/") and below.is_folder("a/b") and not below.is_folder("a/g")
    assert not below.is_file("no/such") and not below.is_folder("no")
    below.remove("a/g")
    with pytest.raises(FileNotFoundError) as e:
        below.read("a/g")
    assert e.value.filename == str(card / "a/g")


def test_a_root_that_is_a_link_is_a_persons_word(both, places):
    card, other = places
    os.rmdir(card)
    card.symlink_to(other)
    Below(str(card)).write("mine", b"x")
    assert (other / "mine").read_text() == "x"


def test_a_named_file_that_is_a_link(places):
    card, other = places
    (card / "log").symlink_to(other / "f")
    opened = lambda: open(card / "log", "a", opener=open_named)
    assert is_link_error(opened)
    (card / "log").unlink()
    with opened() as file:
        file.write("x")
    assert (card / "log").read_text() == "x" and (other / "f").read_text() == "VICTIM"


@pytest.mark.parametrize(
    "name",
    ["claw-a.cbor.new", "claw-a", "claw-b", "lib", "claw", "claw-a.cbor", "main.py", "boot.py"],
)
@pytest.mark.parametrize("is_folder", [False, True])
def test_flash_writes_through_no_link(places, tmp_path, name, is_folder):
    card, other = places
    done = clawlite("new", "blink", "--template", "blink", "--board", "pico", cwd=tmp_path)
    assert done.returncode == 0, done
    (card / name).symlink_to(other if is_folder else other / "f")
    done = clawlite("flash", "blink", "--dir", str(card), "--yes", cwd=tmp_path)
    assert (other / "f").read_text() == "VICTIM" and os.listdir(other) == ["f"]
    assert "Traceback" not in done.stderr
    if done.returncode:
        assert IS_LINK in done.stderr and str(card / name) in done.stderr


def test_steps_of_a_flash_go_through_no_link(places):
    """The link comes between the plan and its steps."""
    card, other = places
    (card / "lib").symlink_to(other)
    (card / "claw-a.cbor").write_text("x")
    folder = Folder(str(card))
    for step in (
        ("write", "/lib/f", b"x"),
        ("remove", "/lib/f"),
        ("mkdir", "/lib/new"),
        ("rename", "/claw-a.cbor", "/lib/f"),
    ):
        with pytest.raises(ClawError, match=IS_LINK):
            folder.do(step, lambda size: None)
    assert (other / "f").read_text() == "VICTIM" and os.listdir(other) == ["f"]


@pytest.mark.parametrize(
    "words, name",
    [
        (["build", "blink", "-o", "card/claw.cbor"], "claw.cbor.new"),
        (["sim", "--fs", "card", "--board", "pico"], "claw-a"),
        (["boards", "new", "mine", "--from", "pico"], "boards"),
        (["console", "--port", "nowhere", "--log", "card/log"], "log"),
    ],
)
def test_commands_write_through_no_link(places, tmp_path, words, name):
    card, other = places
    assert clawlite("new", "blink", "--template", "blink", cwd=tmp_path).returncode == 0
    where = tmp_path if name == "boards" else card
    (where / name).symlink_to(other if "." not in name and name != "log" else other / "f")
    done = clawlite(*words, cwd=tmp_path)
    assert done.returncode != 0 and "Traceback" not in done.stderr
    assert (other / "f").read_text() == "VICTIM" and os.listdir(other) == ["f"]
    assert IS_LINK in done.stderr or words[0] == "console", done.stderr


def test_a_recording_goes_through_no_link(places, tmp_path):
    card, other = places
    (card / "turns").symlink_to(other / "f")
    assert clawlite("new", "blink", "--template", "blink", cwd=tmp_path).returncode == 0
    done = clawlite("ask", "hi", "blink", "--record", str(card / "turns"), cwd=tmp_path)
    assert done.returncode == 2 and "is a link" in done.stderr
    assert (other / "f").read_text() == "VICTIM"

"""A closed home folder is open to other users during a run of the tests, and only there."""

import os
import stat
import subprocess
import sys

import opened
import pytest
from other_user import NOBODY

PLAY = """
import os, sys
sys.path.insert(0, sys.argv[1])
import opened
from pathlib import Path
os.chdir(sys.argv[2])
said = opened.open_for_others([Path(sys.argv[2])])
if said:
    sys.exit(said)
Path("made").write_text("x")
child = os.fork()
if not child:
    os.setgroups([])
    os.setresgid(%d, %d, %d)
    os.setresuid(%d, %d, %d)
    print(*sorted(os.listdir(os.path.dirname(sys.argv[2]))), Path("link/inner").read_text())
    sys.stdout.flush()
    os._exit(0)
os._exit(os.waitpid(child, 0)[1])
""" % ((NOBODY,) * 6)
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs programs as other users")


@pytest.fixture
def home(tmp_path):
    """A closed folder in a closed one, with a folder, a file and a link in it."""
    home = tmp_path / "home"
    (home / "checkout").mkdir(parents=True)
    (home / "checkout/inner").write_text("read")
    (home / "checkout/link").symlink_to(home / "other")
    (home / "other").symlink_to("checkout")
    (home / "file").write_text("f")
    home.chmod(0o700)
    return home


def _play(home, *front):
    words = [*front, sys.executable, "-c", PLAY, opened.__file__.rpartition("/")[0]]
    return subprocess.run([*words, home / "checkout"], capture_output=True, text=True)


@as_root
def test_others_enter_what_is_closed_and_nothing_changes(home):
    said = _play(home)
    assert said.stdout.split() == ["checkout", "file", "other", "read"], said.stderr
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert (home / "checkout/made").read_text() == "x"
    assert str(home) not in open("/proc/self/mountinfo").read()


@as_root
def test_who_may_not_mount_is_told_so_in_a_sentence(home):
    said = _play(home, "setpriv", "--bounding-set", "-sys_admin")
    assert said.returncode == 1 and said.stdout == ""
    assert ": expected a folder that other users may enter" in said.stderr
    assert "mode 700" in said.stderr and "clone into another folder" in said.stderr


def test_the_uppermost_closed_folder_comes_first(home):
    inner = home / "checkout"
    inner.chmod(0o750)
    found = opened.closed([inner, home])
    assert found[-2:] == [home, inner] and len(set(found)) == len(found)
    inner.chmod(0o711)
    assert opened.closed([inner])[-1] == home


def test_an_open_checkout_stays_as_it_is():
    assert opened.open_for_others([]) == ""

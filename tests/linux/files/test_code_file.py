"""One file of code: taken while it is true, written anew when it is not, and no way in for others
(docs/adr/0002-optional-cython.md).
"""

import json
import os
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest
from agents import ROOT, environment, make_bench

from clawlite.host.bench.agent import opening

# What one process sees: where the code came from, and what it says of an error in it.
PROBE = """
import json, os, sys, traceback
if sys.argv[3] == "root":
    os.geteuid = lambda: 0
elif not os.geteuid():
    os.geteuid = lambda: 1000  # what root has written is taken by all
sys.path[:0] = [sys.argv[1]]
from clawlite.linux.files import code_file
code_file.use()
from clawlite.core.base import clock
from clawlite.linux.files import quota
said = [type(m.__spec__.loader).__name__ for m in (clock, quota, sys.modules["clawlite.core.base"])]
try:
    clock.iso8601(None)
except Exception:
    trace = traceback.format_exc()
tools, digest = b"def one():\\n    return 1\\n", sys.argv[2].encode()
space = {}
exec(code_file.load_code(tools, "/nowhere/tools.py", digest), space)
new = sorted(code_file._state["finder"].new_tools)
code_file.rewrite()
print(json.dumps([said, clock.__file__, clock.__cached__, trace, space["one"]() == 1, new]))
"""
FROM_FILE, ORDINARY = ["Loader", "Loader", "NamespaceLoader"], ["SourceFileLoader"] * 2


@pytest.fixture
def package(tmp_path) -> Path:
    """A copy of what a device has, that this user alone may write."""
    top = tmp_path / "lib"
    for name in ("core", "protocols", "scan", "linux"):
        shutil.copytree(
            ROOT / "clawlite" / name,
            top / "clawlite" / name,
            ignore=shutil.ignore_patterns("__pycache__", "*.so"),
        )
    for path in (ROOT / "clawlite").glob("*.py"):
        shutil.copy(path, top / "clawlite")
    for folder in [top, *(path for path in top.rglob("*") if path.is_dir())]:
        folder.chmod(0o755)
    return top / "clawlite"


def probe(package: Path, digest: str = "d", *options: str, user: str = "") -> list:
    command = [sys.executable, "-I", "-S", *options, "-c", PROBE, str(package.parent), digest, user]
    # no umask of a test's machine that lets a group write
    done = subprocess.run(command, capture_output=True, text=True, umask=0o022)
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


def code_file(package: Path) -> Path:
    return package / "__pycache__" / ("agent.%s.code" % sys.implementation.cache_tag)


def edit(package: Path, name: str = "core/base/clock.py") -> None:
    path = package / name
    path.write_text("# a line more\n" + path.read_text())


def test_the_second_process_takes_what_the_first_has_kept(package):
    first, second = probe(package), probe(package)
    assert first[0][:2] == ORDINARY and first[5] == ["/nowhere/tools.py"]
    assert second[0] == FROM_FILE and second[5] == []
    source = str(package / "core/base/clock.py")
    assert second[1] == source and second[2] == str(code_file(package))
    assert second[3] == first[3] and 'clock.py", line ' in second[3], "file and line as ever"
    assert code_file(package).stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="the files of another user are not taken as root's")
def test_what_root_keeps_is_for_all_and_has_no_tools_py(package):
    for _ in range(2):
        assert probe(package, user="root")[5] == []
        assert code_file(package).stat().st_mode & 0o777 == 0o644
        assert b"tools.py" not in code_file(package).read_bytes()
    assert probe(package)[0] == FROM_FILE


def test_a_changed_source_is_compiled(package):
    probe(package)
    edit(package)
    assert probe(package)[0] == ["SourceFileLoader", "Loader", "NamespaceLoader"]
    assert probe(package)[0] == FROM_FILE, "the file was written anew"


def test_another_tools_py_is_compiled(package):
    probe(package)
    assert probe(package, "e")[5] == ["/nowhere/tools.py"]
    assert probe(package, "e")[5] == []


def test_an_extension_beside_a_source_comes_first(package):
    probe(package)
    extension = package / ("linux/files/quota" + EXTENSION_SUFFIXES[0])
    extension.write_bytes(b"no library")
    command = [sys.executable, "-I", "-S", "-c", PROBE, str(package.parent), "d", ""]
    done = subprocess.run(command, capture_output=True, text=True)
    assert "quota" in done.stderr and "ImportError" in done.stderr, "Python tried to load it"
    extension.unlink()
    # a process that was told to take sources writes none that has an extension
    (package / ("core/base/clock" + EXTENSION_SUFFIXES[0])).write_bytes(b"no library")
    world = {"CLAWLITE_NO_EXT": "1", "PATH": os.environ["PATH"]}
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, env=world, umask=0o022)
    assert json.loads(done.stdout)[0] == ["SourceFileLoader", "Loader", "NamespaceLoader"]


@pytest.mark.parametrize("at", [0, 5, 40, -100], ids=["length", "checksum", "index", "code"])
def test_damage_is_not_taken_and_mended(package, at):
    probe(package)
    data = bytearray(code_file(package).read_bytes())
    data[at] ^= 0x55
    code_file(package).write_bytes(data)
    found = probe(package)
    assert found[4] and (found[0] != FROM_FILE or found[5]), "a part of it was not taken"
    assert probe(package)[0] == FROM_FILE and not probe(package)[5]


def test_cut_short(package):
    probe(package)
    whole = code_file(package).read_bytes()
    for length in (0, 3, 8, 100, len(whole) - 1):
        code_file(package).write_bytes(whole[:length])
        assert probe(package)[4]
        assert probe(package)[0] == FROM_FILE


def test_what_others_could_have_written_is_not_taken(package):
    probe(package)
    file = code_file(package)
    for path, mode in ((file, 0o664), (file, 0o646), (file.parent, 0o775), (file.parent, 0o757)):
        before = path.stat().st_mode & 0o777
        path.chmod(mode)
        assert probe(package)[0][:2] == ORDINARY, (path, oct(mode))
        if path == file:  # it was replaced
            assert file.stat().st_mode & 0o777 == 0o600
        path.chmod(before)
    link = file.rename(file.with_name("elsewhere"))
    file.symlink_to(link)
    assert probe(package)[0][:2] == ORDINARY


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_what_another_user_owns_is_not_taken(package):
    probe(package)
    for path in (code_file(package), code_file(package).parent):
        os.chown(path, 12345, 12345)
        assert probe(package)[0][:2] == ORDINARY
        assert path != code_file(package).parent or code_file(package).stat().st_uid == 0
    assert probe(package)[0][:2] == ORDINARY, "nothing is written for others' folders"


def test_where_nothing_can_be_written_imports_are_the_ordinary_ones(package):
    shutil.rmtree(package / "__pycache__", ignore_errors=True)
    (package / "__pycache__").write_text("in the way")
    assert probe(package)[0][:2] == probe(package)[0][:2] == ORDINARY
    (package / "__pycache__").unlink()
    assert probe(package, "d", "-B")[0][:2] == probe(package, "d", "-B")[0][:2] == ORDINARY


def test_another_way_of_compiling_has_a_file_of_its_own(package):
    probe(package)
    assert probe(package, "d", "-O")[0][:2] == ORDINARY
    assert probe(package, "d", "-O")[0] == probe(package)[0] == FROM_FILE


def test_a_moved_package_is_not_believed_to_lie_where_it_lay(package):
    probe(package)
    moved = package.parent.rename(package.parent.with_name("moved")) / "clawlite"
    assert probe(moved)[0][:2] == ORDINARY
    found = probe(moved)
    assert found[0] == FROM_FILE and str(moved / "core/base/clock.py") in found[3]


def test_an_agent_keeps_and_takes_it(package, tmp_path):
    (tmp_path / "bench").mkdir()
    image = make_bench(tmp_path / "bench")
    command = [sys.executable, "-I", "-S", package / "__main__.py", "serve", image, "--stdio"]
    times = []
    for _ in range(3):
        done = subprocess.run(
            command,
            env=environment(tmp_path / "home"),
            input=opening(),
            capture_output=True,
            umask=0o022,
        )
        assert not done.returncode and b'"READY"' in done.stdout, done.stderr
        times.append(code_file(package).stat().st_mtime_ns)
    assert times[0] == times[1] == times[2], "it is written when something is missing, no more"
    assert len(list((package / "__pycache__").glob("agent.*"))) == 1, "nothing half written is left"

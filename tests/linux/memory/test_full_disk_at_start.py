"""A disk that is full when the memory is opened: what is stored can be read, nothing is lost, and
nothing is acknowledged that is not kept.
"""

import contextlib
import os
import resource
import subprocess
import uuid

import pytest
from memory_world import World, store
from small_disk import fill, small_disk

from clawlite.core.base.errors import StoreError
from clawlite.core.image.memories import GLOBAL

KINDS = {
    "synced": {"lasting": True},
    "plain": {},
    "wear-saving": {"lasting": True, "saves_wear": True},
    "file": {"lasting": True, "path": "", "scope": GLOBAL},
}


def put(world, one, text, **fields):
    """Store *text*; no two requests have one id, whichever process sends them."""
    return world.put(one, text, id=str(uuid.uuid4()), **fields)


@contextlib.contextmanager
def no_room(folder):
    """No file of this process can grow or be written, for an ordinary user, too."""
    was = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, was[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, was)


@contextlib.contextmanager
def full_tmpfs(folder):
    ballast = folder.parent / "ballast"
    fill(ballast, 0)
    try:
        yield
    finally:
        ballast.unlink()


@pytest.fixture(params=["limit", "tmpfs"])
def disk(request, tmp_path):
    """(folder of a memory, context manager in which its disk is full)"""
    if request.param == "limit":
        yield tmp_path / "m", no_room
        return
    folder = tmp_path / "disk"
    folder.mkdir()
    with small_disk(folder):
        yield folder / "m", full_tmpfs


def live(folder, one, names, killed: bool):
    child = os.fork()
    if not child:
        code = 1
        try:
            world = World(folder)
            for name in names:
                put(world, one, name, key=name)
            if not killed:
                world.stores.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("killed", [False, True], ids=["ended", "killed"])
@pytest.mark.parametrize("fields", KINDS.values(), ids=KINDS)
def test_what_is_stored_can_be_read(disk, fields, killed):
    folder, full = disk
    one = store(**fields)
    live(folder, one, ["a", "b", "c"], killed)
    kept = ["a", "b", "c"]
    with full(folder):
        world = World(folder)
        for _ in range(2):
            assert world.all(one) == kept
            assert [entry["content"] for entry in world.found(one, "key", "b")] == ["b"]
            try:
                put(world, one, "x" * 9000)
                kept.append("x" * 9000)
            except StoreError as e:
                assert "full" in e.message and "room" in e.hint, e.message
        world.stores.close()
        assert World(folder).all(one) == kept
    world = World(folder)
    put(world, one, "d")
    assert world.all(one) == [*kept, "d"]
    world.stores.close()


def test_two_processes_read_on_a_full_disk(disk):
    """Neither keeps the other out for longer than a request takes."""
    folder, full = disk
    live(folder, store(), ["a"], False)
    with full(folder):
        worlds = [World(folder), World(folder)]
        for _ in range(3):
            for world in worlds:
                assert world.all(store()) == ["a"]
        for world in worlds:
            world.stores.close()


def test_the_same_process_stores_again_once_there_is_room(disk):
    folder, full = disk
    live(folder, store(), ["a"], False)
    world = World(folder)
    with full(folder):
        assert world.all(store()) == ["a"]
        with pytest.raises(StoreError):
            put(world, store(), "x" * 9000)
    put(world, store(), "b")
    assert world.all(store()) == ["a", "b"]
    world.stores.close()


@pytest.mark.parametrize("killed", [False, True], ids=["ended", "killed"])
@pytest.mark.parametrize("fields", KINDS.values(), ids=KINDS)
def test_a_file_system_that_is_read_only_can_be_read(tmp_path, fields, killed):
    """Linux makes it so when a card begins to fail."""
    one, folder = store(**fields), tmp_path / "disk"
    folder.mkdir()
    with small_disk(folder):
        live(folder / "m", one, ["a", "b", "c"], killed)
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        world = World(folder / "m")
        for _ in range(2):
            assert world.all(one) == ["a", "b", "c"]
            with pytest.raises(StoreError, match="cannot be written|Read-only") as error:
                put(world, one, "d")
            assert "writable" in error.value.hint
        subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)
        put(world, one, "d")
        assert world.all(one) == ["a", "b", "c", "d"]
        world.stores.close()

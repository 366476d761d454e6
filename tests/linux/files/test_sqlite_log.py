"""A killed process leaves the log of a SQLite database; damage in it is told, in each store."""

import shutil

import pytest
from disk_stores import AuditSQLite, Remembered, SwarmTasks

from clawlite.core.base.errors import ClawError


@pytest.mark.parametrize("kind", [AuditSQLite, Remembered, SwarmTasks])
def test_a_damaged_log_is_told_and_kept(kind, tmp_path, capfd):
    one = kind(str(tmp_path / "a"))
    for name in "abcd":
        assert one.put(name)
    shutil.copytree(
        tmp_path / "a", tmp_path / "killed", ignore=shutil.ignore_patterns("*-shm", "*.fifo")
    )
    one.close()
    capfd.readouterr()
    (log,) = (tmp_path / "killed").rglob("*-wal")
    whole = log.read_bytes()
    lost = 0
    for number, at in enumerate((None, 32 + 24 + 100, len(whole) // 2, len(whole) - 100)):
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "killed", folder)
        (log,) = folder.rglob("*-wal")
        damaged = bytearray(whole)
        if at is not None:
            damaged[at] ^= 4
            log.write_bytes(damaged)
        one = None
        try:
            one = kind(str(folder))
            assert one.put("e")  # an audit is opened by its first record
            found = [name for name in one.found() if name in "abcd"]
        except ClawError:  # that is told, too
            found = ["abcd"]
        finally:
            if one:
                one.close()
        told = capfd.readouterr().err
        assert ("its log is damaged" in told) == (found != list("abcd")), (at, found, told)
        if at is None:
            assert found == list("abcd")
        elif found != list("abcd"):
            lost += 1
            assert log.with_name(log.name + ".damaged").read_bytes() == damaged
    assert lost

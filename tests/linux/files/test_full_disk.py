"""Each store over a file system that is really full: a small tmpfs, of which more and more is free.

Three items are stored while it is full: each is acknowledged, or refused with the cause.
Then the store is opened again, there is room, and it goes on: what was acknowledged is there in its
order, nothing is there in part.
"""

import subprocess

import disk_stores as stores
import pytest
from small_disk import fill, small_disk

from clawlite.core.base.errors import ClawError

CAUSES = ("no space left", "disk is full")


@pytest.fixture
def disk(tmp_path):
    """A tmpfs of 512 KB; skips where it cannot be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    with small_disk(folder):
        yield folder


def attempt(act) -> tuple:
    """Return (whether *act* has acknowledged, what it said of why not)."""
    try:
        return act(), ""
    except (OSError, ClawError) as e:
        return False, str(e)


def said(text: str) -> bool:
    return any(cause in text.lower() for cause in CAUSES)


# the signatures of a webhook are too short to fill a page
LONG = [kind for kind in stores.STORES if kind is not stores.Signatures]


@pytest.mark.parametrize("kind", LONG, ids=lambda kind: kind.__name__)
def test_a_store_on_a_full_disk_refuses_keeps_and_goes_on(kind, disk, monkeypatch, capfd):
    monkeypatch.setattr(stores, "MUCH", "x" * 3000)
    refused = 0
    for pages in range(24):
        state, ballast = disk / ("state%d" % pages), disk / "ballast"
        state.mkdir()
        monkeypatch.setenv("CLAWLITE_STATE", str(state))
        kept = []
        one = kind(str(state))
        assert one.put("0") is True, "there is room"
        kept.append("0")
        fill(ballast, pages)
        told = []
        capfd.readouterr()
        for name in "abc":
            done, why = attempt(lambda name=name: one.put(name))
            if done:
                kept.append(name)
            else:
                told.append(why)
        refused += len(told)
        told.append(capfd.readouterr().err)
        assert len(told) == 1 or said("".join(told)), "%d pages: %r" % (pages, told)
        one.close()
        one = kind(str(state))
        ballast.unlink()
        for name in "de":
            found = one.found()
            assert [each for each in found if each in kept] == kept[-getattr(kind, "keeps", 9) :]
            assert set(found) <= {*"abc", *kept}, (found, kept)
            assert one.put(name) is True, "there is room again"
            kept.append(name)
            one.close()
            one = kind(str(state))
        one.close()
        subprocess.run(["rm", "-r", str(state)], check=True)
    assert refused >= 3, "it was never full"

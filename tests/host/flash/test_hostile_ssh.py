"""``flash --ssh`` against a machine that answers anything, and a far end whose folders lead
away.
"""

import io
import json
import os
import sys
from pathlib import Path

import pytest

from clawlite.core.base.errors import ClawError
from clawlite.host.flash import ssh, ssh_remote

FACTS = {"python": [3, 11], "model": None, "machine": "x", "home": "/", "root": False}
LOOK = {"current": None, "strangers": [], "files": {"a": {}, "b": {}}, "free": 1}


@pytest.fixture
def far(tmp_path, monkeypatch):
    """Return function(*replies) -> ``ssh.Remote``: an ``ssh`` that says these, one each request."""

    def make(*replies):
        said = tmp_path / "said"
        said.write_bytes(b"".join(replies))
        fake = tmp_path / "ssh"
        fake.write_text(
            f"#!{sys.executable}\nimport sys\n"
            f"sys.stdout.buffer.write({ssh_remote.GREETING!r} + open({str(said)!r}, 'rb').read())\n"
            "sys.stdout.flush()\nsys.stdin.buffer.read()\n"
        )
        fake.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        return ssh.Remote("pi")

    return make


def line(value) -> bytes:
    return json.dumps({"ok": value}).encode() + b"\n"


@pytest.mark.parametrize(
    "reply",
    [
        b"\n",
        b"null\n",
        b"[]\n",
        b"5\n",
        b"{}\n",
        b"\xff\xfe\n",
        b"[" * 100000 + b"\n",
        b'{"error": 5}\n',
        b'{"ok": null}\n',
        b"x" * (ssh._MOST_REPLY + 5),
        *[line(FACTS | {"python": wrong}) for wrong in (None, [], [3], ["3", "11"], [True, 1], 3)],
        *[line(FACTS | {"model": wrong}) for wrong in (5, [], {})],
    ],
)
def test_what_is_no_answer_is_one_sentence(far, reply):
    with pytest.raises(ClawError, match="answers what clawlite does not understand"), far(reply):
        pass


@pytest.mark.parametrize(
    "verb, wrong",
    [
        *[("look", LOOK | {"current": wrong}) for wrong in ("../x", 5, ["a"])],
        *[("look", LOOK | {"strangers": wrong}) for wrong in (None, [5], "x")],
        *[("look", LOOK | {"files": w}) for w in (None, {}, {"a": [], "b": {}}, {"a": {"x": 1}})],
        *[("look", LOOK | {"free": wrong}) for wrong in (None, "9", 1.5, True)],
        *[("digests", wrong) for wrong in (None, [], {"a": 5})],
        *[("start", wrong) for wrong in (None, [], [0], ["0", ""], [0, None], [0, "", ""])],
        *[("restart", wrong) for wrong in ([1], [5, 6], "xy", {"a": 1})],
    ],
)
def test_an_answer_of_another_form_is_one_sentence(far, verb, wrong):
    with far(line(FACTS), line(wrong)) as there:
        with pytest.raises(ClawError, match="answers what clawlite does not understand"):
            there._ask(verb, "x")


def test_an_error_of_the_other_machine_drives_no_terminal(far):
    error = json.dumps({"error": "no\x1b[2J\nroom" + "x" * 5000, "errno": {"a": 1}}).encode()
    with far(line(FACTS), error + b"\n") as there:
        with pytest.raises(ClawError) as e:
            there._ask("look", "x")
    assert "\x1b" not in e.value.message and len(e.value.message) < 1200


@pytest.mark.parametrize("place", ["a", "a/clawlite", "a/clawlite/core"])
def test_a_slot_that_leads_away_is_not_written(tmp_path, place):
    home, other = tmp_path / "home", tmp_path / "other"
    other.mkdir()
    (other / "f.py").write_text("VICTIM")
    link = home / place
    link.parent.mkdir(parents=True)
    link.symlink_to(other)
    path = f"{place}/f.py"
    there = ssh_remote.Remote(io.BytesIO(b"data"), None)
    there._base = str(home)
    for attempt in (
        lambda: there.write(path, 4),
        lambda: there.remove(path),
        lambda: there.copy(path, "b/f.py"),
        lambda: there.digests([path]),
    ):
        with pytest.raises(OSError, match="is a link, and nothing is written through one"):
            attempt()
    assert (other / "f.py").read_text() == "VICTIM" and os.listdir(other) == ["f.py"]
    (home / "b").mkdir(exist_ok=True)
    (home / "b/g").symlink_to(other / "f.py")
    there = ssh_remote.Remote(io.BytesIO(b"data"), None)
    there._base = str(home)
    there.write("b/g", 4)  # the link itself is replaced
    assert (home / "b/g").read_text() == "data" and not Path(home / "b/g").is_symlink()
    assert (other / "f.py").read_text() == "VICTIM"


@pytest.fixture
def silent(tmp_path, monkeypatch):
    """Return function(program) -> ``ssh.Remote``: an ``ssh`` that runs this Python and then waits
    for ever; no wait for it takes more than a moment.
    """

    def make(program: str):
        fake = tmp_path / "ssh"
        fake.write_text(
            f"#!{sys.executable}\nimport signal, sys\n{program}\n"
            "sys.stdout.flush()\nwhile True: signal.pause()\n"
        )
        fake.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        for name in ("_GREET_S", "_GREET_PERSON_S", "_ANSWER_S"):
            monkeypatch.setattr(ssh, name, 0.5)
        monkeypatch.setattr(ssh, "_LONG_S", {})
        return ssh.Remote("pi")

    return make


_SAY = "sys.stdout.buffer.write(%r)"


@pytest.mark.parametrize(
    "program",
    ["", "print('welcome', end='')", _SAY % ssh_remote.GREETING],
    ids=["silent", "a login that does not end", "no answer"],
)
def test_a_far_end_that_says_nothing_is_given_up(silent, program):
    with pytest.raises(ssh.NotReached, match=r"no answer for 0\.5 s"), silent(program):
        pass


def test_a_far_end_that_reads_nothing_is_given_up(silent):
    program = _SAY % (ssh_remote.GREETING + line(FACTS))
    with silent(program) as there:
        with pytest.raises(ssh.NotReached, match="no answer"):
            there.do(("write", "a/f", b"x" * (4 << 20)), lambda went: None)


def test_a_service_that_does_not_restart_is_given_up(tmp_path, monkeypatch):
    fake = tmp_path / "systemctl"
    fake.write_text("#!/bin/sh\n[ $3 = is-active ] && exit 0\nexec sleep 1000\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(ssh_remote, "RESTART_S", 0.5)
    said = ssh_remote.Remote(io.BytesIO(), None).restart("x.service")
    assert said[0] == "--user" and "did not end" in said[1]

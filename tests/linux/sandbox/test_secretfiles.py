"""Secrets as files, from inside the sandbox: the call that gets one can read it, nobody can
change it, and it is gone with its call.
"""

import glob
import os

import pytest
from agents import eventually
from sandbox_places import host

VALUE = "a v4lue " + "that is secret"
FILES = {"MAIL_TOKEN": VALUE, "other.key": "second"}


def _shell(place, text: str, files=FILES, **profile) -> dict:
    good, value = place.ask(
        profile=dict(injection=2, **profile), job=["command", ["sh", "-c", text]], files=files
    )["outcome"]
    assert good, value
    return value


def test_a_command_reads_it_and_no_environment_has_it(place):
    said = _shell(
        place,
        'cat "$MAIL_TOKEN_FILE"; echo; stat -c "%a %u" "$MAIL_TOKEN_FILE"; id '
        '-u; env | grep -c "v4lue"; cat "$(dirname "$MAIL_TOKEN_FILE")/other.key"',
    )
    text, modes, uid, found, other = said["output"].split("\n")
    assert text == VALUE and modes == "400 " + uid and found == "0" and other == "second"
    assert uid == ("65534" if place.root or os.geteuid() == 0 else str(os.geteuid()))
    where = _shell(place, "echo $MAIL_TOKEN_FILE")["output"].strip()
    assert (
        where == "/run/secrets/MAIL_TOKEN"
        if place.profile == "N"
        else where.startswith(("/dev/shm/clawlite-secrets-", "/tmp/clawlite-secrets-"))
    )


def test_it_cannot_be_changed(place):
    for command in (
        'echo x > "$MAIL_TOKEN_FILE"',
        'rm -f "$MAIL_TOKEN_FILE"',
        'chmod 666 "$MAIL_TOKEN_FILE"',
        'mv "$MAIL_TOKEN_FILE" "$TMPDIR/x"',
        'touch "$(dirname "$MAIL_TOKEN_FILE")/new"',
        'ln "$MAIL_TOKEN_FILE" "$TMPDIR/x"',
        'chmod 777 "$(dirname "$MAIL_TOKEN_FILE")"',
    ):
        said = _shell(place, command + ' && echo done; cat "$MAIL_TOKEN_FILE"')
        assert "done" not in said["output"] and said["output"].endswith(VALUE), command


def test_a_function_finds_it(place):
    # the tools' user need not be able to read root's Python: no module that is not loaded
    own = place.profile == "L" and place.root
    source = "import os\n" if own else "import os, subprocess\n"
    run = (
        "'secret' in path"
        if own
        else "subprocess.run(['rev', path], capture_output=True, text=True).stdout.strip()"
    )
    source += (
        "def f():\n    path = os.environ['MAIL_TOKEN_FILE']\n    return [open(path).read()[::-1], "
        "%s, 'MAIL_TOKEN' in os.environ]\n" % run
    )
    good, value = place.ask(
        profile={"injection": 2}, job=["function", "tools.py", source, "f", {}], files=FILES
    )["outcome"]
    assert good and value == [VALUE[::-1], True if own else VALUE[::-1], False], value


def test_it_is_gone_with_its_call_and_no_other_call_has_it(place):
    _shell(place, 'setsid sleep 60 < "$MAIL_TOKEN_FILE" & cat "$MAIL_TOKEN_FILE"')
    assert glob.glob("/dev/shm/clawlite-secrets-*/*") + glob.glob("/tmp/clawlite-secrets-*/*") == []
    assert not os.path.exists("/run/secrets/MAIL_TOKEN")
    said = _shell(place, "ls /run/secrets /.secrets /dev/shm/clawlite-secrets-*; env", files={})
    assert "MAIL_TOKEN" not in said["output"] and "v4lue" not in said["output"]
    if place.profile == "N":
        assert "run" not in _shell(place, "ls -a /", files={})["output"].split()


@pytest.mark.parametrize("files", [1, 3])
def test_where_the_whole_file_system_is_shown(place, files):
    good, value = place.ask(
        profile={"injection": 2, "files": files, "mounts": []},
        files=FILES,
        job=[
            "command",
            ["sh", "-c", 'cat "$MAIL_TOKEN_FILE"; echo x > "$MAIL_TOKEN_FILE" && echo done'],
        ],
    )["outcome"]
    assert good and value["output"].startswith(VALUE) and "done" not in value["output"], value
    assert not os.path.exists("/.secrets") and not os.path.exists("/run/secrets/MAIL_TOKEN")


def test_a_call_beside_it_does_not_see_it(place):
    """Two at once, both with the whole file system to read: each sees its own."""
    begun = place.folder / "ws" / "begun"
    first = place.ask(
        start=True,
        profile={"injection": 2, "files": 3, "mounts": [], "timeout_ms": 600000},
        files=FILES,
        job=[
            "command",
            ["sh", "-c", 'cat "$MAIL_TOKEN_FILE" > /dev/null && touch %s; sleep 3600' % begun],
        ],
    )["number"]
    eventually(begun.exists)
    begun.unlink()
    good, value = place.ask(
        profile={"injection": 2, "files": 1, "mounts": []},
        files={"MINE": "mine"},
        job=[
            "command",
            [
                "sh",
                "-c",
                "cat $MINE_FILE; cat "
                "/dev/shm/clawlite-secrets-*/*/* "
                "/tmp/clawlite-secrets-*/*/* "
                "/run/secrets/* "
                "/.secrets/*; for one in /proc/[0-9]*; do cat "
                "$one/$0/run/secrets/* $one/$0/.secrets/*; done",
                "root",
            ],
        ],
    )["outcome"]
    place.ask(cancel=first)
    assert good and value["output"].startswith("mine") and "v4lue" not in value["output"], value


def test_what_a_killed_supervisor_left_is_removed():
    with host("L", False) as place:
        where = _shell(place, 'dirname "$(dirname "$MAIL_TOKEN_FILE")"')["output"].strip()
        # above the highest pid that there is; none
        left = [os.path.join(where, name) for name in ("4194305-feed", "99999999999-feed", "odd")]
        for path in left:
            os.mkdir(path)
            os.chown(path, 65534, 65534) if os.geteuid() == 0 else None
            with open(os.path.join(path, "X"), "w") as file:
                file.write("old")
        _shell(place, "true")
        assert not any(map(os.path.exists, left))

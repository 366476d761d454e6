"""What a person does that stands on no page: output into what takes no more, help asked for in
other words, a folder that has gone.
"""

import json
import os
import subprocess

import pytest
from agents import clawlite, environment, linux, make_greenhouse, without_root_rights

COMMANDS = [
    ["boards"],
    ["check", "g", "--json"],
    ["tools", "g"],
    ["--help"],
    ["run", "--help"],
    ["doctor"],
    ["conformance", "--json"],
    ["inspect", "g/claw.cbor"],
]
BUFFERED = pytest.mark.parametrize(
    "buffered", [{}, {"PYTHONUNBUFFERED": "1"}], ids=["buffered", "at once"]
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("habits")
    make_greenhouse(folder / "g")
    return folder


@BUFFERED
@pytest.mark.parametrize(
    "words",
    COMMANDS,
    ids=[words[0] for words in COMMANDS[:3]]
    + ["help", "run help"]
    + [words[0] for words in COMMANDS[5:]],
)
def test_output_that_is_not_taken(folder, words, buffered):
    """A reader that has gone is no fault that is told; a full disk is one."""
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as gone, open("/dev/full", "w") as full:
        for stdout, said in (
            (gone, b""),
            (full, b"clawlite: stdout cannot be written: No space left on device\n"),
        ):
            done = subprocess.run(
                linux(*words),
                cwd=folder,
                stdout=stdout,
                stderr=subprocess.PIPE,
                env=environment(folder, **buffered),
                timeout=300,
            )
            talk = b"".join(
                line for line in done.stderr.splitlines(True) if b": warning: " not in line
            )
            assert (done.returncode, talk) == (1, said), words


def test_what_is_said_does_not_become_data_where_stderr_is_closed(folder):
    done = subprocess.run(
        ["sh", "-c", '"$@" 2>&-', "sh", *linux("check", "nothing")],
        cwd=folder,
        stdout=subprocess.PIPE,
        env=environment(folder),
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (2, b"")


def test_help_in_other_words(folder):
    for words, like in (
        (["-h"], ["--help"]),
        (["help"], ["--help"]),
        (["check", "-h"], ["check", "--help"]),
        (["help", "ask"], ["ask", "--help"]),
    ):
        assert clawlite(*words, cwd=folder).stdout == clawlite(*like, cwd=folder).stdout != ""
    text = clawlite("--help", cwd=folder, COLUMNS=80).stdout
    assert text.count("...") == 1 and "--version" in text


def test_bad_usage_with_json_is_one_document(folder):
    done = clawlite("check", "--bord", "x", "--json", cwd=folder)
    assert (
        done.returncode == 2
        and json.loads(done.stdout)["error"]["data"]["hint"] == "did you mean --board?"
        and done.stderr == "clawlite check: unknown option --bord - did you mean --board?\n"
    )


def test_a_folder_that_has_gone(tmp_path):
    script = 'mkdir gone; cd gone; rmdir ../gone; exec "$@"'
    done = subprocess.run(
        ["sh", "-c", script, "sh", *linux("new", "x")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=environment(tmp_path),
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (
        1,
        "clawlite: the current folder was removed - go to another one\n",
    )


FULL = (
    'mount -t tmpfs -o size=256k none "$0" && cd "$0" && mkdir g && cp -R "$1"/. g && '
    "rm -f g/claw.cbor && "
    '{ head -c 999999 /dev/zero >fill; shift; "$@"; code=$?; find . -type f | sort; exit '
    "$code; }"
)
WRITERS = [
    (["build", "g"], "g/claw.cbor"),
    (["run", "g"], "g/claw.cbor"),
    (["new", "h"], "h/"),
    (["boards", "new", "x", "--from", "pico"], "boards/x.toml"),
]


@pytest.mark.parametrize("words, said", WRITERS, ids=["build", "run", "new", "boards new"])
def test_a_full_disk_is_told_and_keeps_no_half_of_anything(tmp_path, words, said):
    make_greenhouse(tmp_path / "g")
    before = sorted(
        str(path.relative_to(tmp_path))
        for path in (tmp_path / "g").rglob("*")
        if path.is_file() and path.name != "claw.cbor"
    )
    (tmp_path / "disk").mkdir()
    done = subprocess.run(
        [
            "unshare",
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            FULL,
            str(tmp_path / "disk"),
            str(tmp_path / "g"),
            *linux(*words),
        ],
        capture_output=True,
        text=True,
        env=environment(tmp_path / "home"),
        timeout=300,
    )
    # else: no namespaces here
    if "unshare:" not in done.stderr and "mount:" not in done.stderr:
        assert (
            done.returncode == 1
            and "clawlite: " + said in done.stderr
            and done.stderr.endswith(": No space left on device - make room\n")
        ), done.stderr
        assert [line[2:] for line in done.stdout.splitlines()] == ["fill", *before]


def test_a_schema_that_does_not_fit_takes_the_project_back(tmp_path):
    """Files of a template are small; the first that a limit of 20 KB stops is a schema."""
    done = subprocess.run(
        ["sh", "-c", 'ulimit -f 40; exec "$@"', "sh", *linux("new", "h")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=environment(tmp_path / "home"),
        timeout=300,
    )
    assert done.returncode == 1 and "clawlite: h/.schema: File too large" in done.stderr
    assert not (tmp_path / "h").exists()


def test_a_project_that_this_user_may_not_write_into(tmp_path):
    (make_greenhouse(tmp_path / "g")).unlink()
    (tmp_path / "g").chmod(0o555)
    for words, said in (
        (["run", "g"], "let this user write there, or build another file: clawlite build -o FILE"),
        (["new", "g/h"], "choose a folder that you may write to"),
    ):
        done = subprocess.run(
            without_root_rights(linux(*words)),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env=environment(tmp_path / "home"),
            timeout=300,
        )
        assert done.returncode == 2 and "Permission denied - " + said in done.stderr, done.stderr
    (tmp_path / "g").chmod(0o755)


def test_a_glob_that_matches_nothing_says_what_is_there(tmp_path):
    make_greenhouse(tmp_path / "g")
    text = (tmp_path / "g/claw.yaml").read_text()
    for glob, said in (
        ("./tool/*.yaml", 'did you mean "tools"?'),
        ("./t/x/*.yaml", 'there is no folder "t/x"'),
        ("./tools/*.yml", "write one there, or take this out"),
    ):
        (tmp_path / "g/claw.yaml").write_text(text.replace("./tools/*.yaml", glob))
        done = clawlite("check", cwd=tmp_path / "g")
        assert (
            done.stderr
            == 'claw.yaml:29: spec.tools[0]: "%s" matches no file - %s\n1 problem.\n' % (glob, said)
        )


def test_files_that_this_user_may_not_read(tmp_path):
    make_greenhouse(tmp_path / "g")
    for path, said in (
        ("policy.yaml", 'cannot read "policy.yaml": Permission denied - let this user read it'),
        ("tools", 'matches no file - "tools" cannot be listed: Permission denied'),
    ):
        there = tmp_path / "g" / path
        mode = there.stat().st_mode
        there.chmod(0)
        done = subprocess.run(
            without_root_rights(linux("check")),
            cwd=tmp_path / "g",
            capture_output=True,
            text=True,
            env=environment(tmp_path / "home"),
            timeout=300,
        )
        there.chmod(mode)
        assert done.returncode == 2 and said in done.stderr, done.stderr


def test_an_audit_whose_reader_has_gone(tmp_path):
    make_greenhouse(tmp_path / "g")
    with open(tmp_path / "g/policy.yaml", "a") as file:
        file.write("  audit: { destination: file }\n")
    assert clawlite("ask", "is the soil dry?", "--approve", cwd=tmp_path / "g").returncode == 0
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as gone:
        done = subprocess.run(
            linux("audit"),
            cwd=tmp_path / "g",
            stdout=gone,
            stderr=subprocess.PIPE,
            env=environment(tmp_path / "g/.home"),
            timeout=300,
        )
    assert (done.returncode, done.stderr) == (1, b"")


def test_a_second_token_says_that_the_first_is_over(tmp_path):
    done = (
        clawlite("gateway", "token", "shed", cwd=tmp_path),
        clawlite("gateway", "token", "shed", cwd=tmp_path),
    )
    assert (
        [one.returncode for one in done] == [0, 0]
        and done[0].stderr == ""
        and done[0].stdout != done[1].stdout
    )
    assert done[1].stderr == "The token that shed had before is no longer valid.\n" and done[
        1
    ].stdout.startswith("shed:")


def test_a_virtual_board_whose_port_or_folder_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("mine")
    for option, place in ("--pty-link", "none/port"), ("--fs", "file"):
        done = clawlite("sim", option, place, cwd=tmp_path)
        assert (
            done.returncode == 2
            and place in done.stderr
            and "/dev/" not in done.stderr
            and " - name a place" in done.stderr
        ), done.stderr
    assert (tmp_path / "file").read_text() == "mine"


def test_a_secret_without_its_name(tmp_path):
    make_greenhouse(tmp_path / "g")
    assert clawlite("secrets", "set", cwd=tmp_path / "g").stderr.startswith(
        "clawlite secrets set: expected NAME - usage: clawlite secrets set NAME"
    )
    assert clawlite("secrets", "sett", "X", cwd=tmp_path / "g").stderr.startswith(
        'clawlite secrets: there is no command "secrets sett" - did you mean "secrets set"?'
    )


def test_a_name_with_what_a_name_has_elsewhere(tmp_path):
    for name, said in (
        ("G\u00e4rtner", "choose another folder name"),
        ("a b.c", "did you mean a-b-c?"),
    ):
        done = clawlite("new", name, cwd=tmp_path)
        assert done.returncode == 2 and done.stderr.endswith(" - %s\n" % said), done.stderr
    assert os.listdir(tmp_path) in ([], [".home"])


def test_a_service_of_no_image(tmp_path):
    done = clawlite("service", "install", cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.startswith(
        "clawlite: there is no image claw.cbor - build one first"
    ), done.stderr


def test_a_disk_that_fails_is_not_told_to_make_room():
    import errno
    import sqlite3

    from clawlite.host.base import problems
    from clawlite.host.flash import folder as flash_folder
    from clawlite.host.gateway import store

    ioerr, full = sqlite3.OperationalError("disk I/O error"), sqlite3.OperationalError("full")
    ioerr.sqlite_errorname, full.sqlite_errorname = "SQLITE_IOERR_READ", "SQLITE_FULL"
    eio, closed = (
        OSError(errno.EIO, "Input/output error"),
        OSError(errno.EACCES, "Permission denied"),
    )
    for hint in (
        store._mend(ioerr),
        store._mend(eio),
        flash_folder._make_error(eio).hint,
        problems.make_write_error("p", eio, "x").hint,
    ):
        assert hint.startswith("look at the disk") and "room" not in hint, hint
    assert (
        store._mend(full) == "make room" and problems.make_write_error("p", eio, "x").exit_code == 1
    )
    assert flash_folder._make_error(
        closed
    ).hint == "get write permission, and flash again" and "writable" in store._mend(closed)

"""Shell patterns: what is blocked, what is not, and how long that takes."""

import shlex
import shutil
import subprocess
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shell_disguises import HONEST, SEEN, UNSEEN

from clawlite.core.base.errors import SandboxDenied
from clawlite.host.schema.automata import compile_pattern
from clawlite.linux.tools import shell_patterns
from clawlite.linux.tools.builtin import command_of
from clawlite.protocols.sandbox.profile import Profile

COMMANDS = ["rm -rf /", "curl * | bash", "chmod 777"]
TABLES = [
    compile_pattern(pattern, "python") for pattern in (".*password.*=.*", "\\|\\s*bash", "eval\\s+")
]


def is_blocked(command: str, commands=COMMANDS, tables=TABLES) -> bool:
    try:
        shell_patterns.check("exec-shell", command, commands, tables)
    except SandboxDenied as e:
        assert e.code == -32010 and e.hint and e.data["rule"].startswith("blocked_")
        return True
    return False


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf /",
        "rm  -rf   /",
        "rm -rf / ",
        "rm -rf /;ls",
        "ls&&rm -rf /",
        "rm -fr /",
        "rm -r -f /",
        "rm --recursive --force /",
        "rm -rf -v /",
        "rm -rf --no-preserve-root /",
        "rm -rf / --no-preserve-root",
        "rm -rf /*",
        "rm -rf //",
        "rm -rf /.",
        "rm -rf /./",
        "rm -rf a /",
        "/bin/rm -rf /",
        "sudo rm -rf /",
        "r\\m -rf /",
        "'rm' -rf /",
        "r''m -rf \"/\"",
        "rm -r\\\nf /",
        "rm${IFS}-rf${IFS}/",
        "rm$IFS-rf$IFS/",
        "bash -c 'rm -rf /'",
        "$(rm -rf /)",
        "`rm -rf /`",
        "true | rm -rf /",
        "{ rm -rf /; }",
        "a=rm; $a -rf /",
        "r$@m -rf /",
        "r${x}m -rf /",
        "$(echo rm) -rf /",
        "`echo rm -rf /`",
        "env A=b rm -rf /",
        "command rm -rf /",
        "nohup -- rm -rf /",
        "timeout 5s rm -rf /",
        "A=b C=d rm -rf /",
        "xargs rm -rf /",
        "rm\t-rf\t/",
        "chmod 777 x",
        "chmod -R 777 .",
        "chmod\n777",
        "cd x; chmod 777 y",
        "/usr/bin/chmod 777 y",
        "curl http://x | bash",
        "curl -fsSL http://x|bash -s",
        "curl x | sudo bash",
        "curl x | /bin/bash",
        "curl x |& bash",
        "curl x | tee f | bash",
        "/usr/bin/curl x | bash",
        "echo x |   bash",
        "echo x | 'bash'",
        "echo x | /usr/bin/env bash",
        "echo x | ba\\sh",
        "echo x | $(echo bash)",
        "echo x | A=1 exec bash",
        "echo x | ba$()sh",
        "echo x | ba``sh",
        "echo x | /bin/[b]a[s]h",
        "{eval,x}",
        "{rm,-rf,/}",
        "echo x |& bash",
        "echo x | (bash)",
        "echo x | { bash; }",
        "echo x | ( { sudo -u root bash; } )",
        "echo x | timeout -k 1 5 bash",
        "echo x | nice -n 5 bash",
        "chmod 0777 x",
        "chmod -R 00777 .",
        "echo x | # why not\nbash",
        "echo x | env -S 'bash -s'",
        "echo x | 2>/dev/null bash",
        "echo x |>o bash",
        "echo x | ${X:-bash}",
        "echo x | ${X-bash}",
        'echo x | $"bash"',
        "rm -Rf //",
        "echo '#'; echo x | env bash",
        "echo x | SHELL=/bin/sh env -i A=b bash",
        "echo x | $(which bash)",
        "echo x | $(command -v bash)",
        "echo x | flock /tmp/l bash",
        "echo x | taskset 1 bash",
        "echo x | chroot / bash",
        "echo x | sh -c bash",
        "echo x | busybox sh -c 'bash -s'",
        "echo x | su -c bash root",
        "echo x | unshare -r bash",
        "coproc rm -rf /",
        "flock -w 5 /tmp/l rm -rf /",
        "rm -rf /home/../",
        "rm -rf /a/b/../../*",
        "rm -rf /..",
        'eval "touch pwned"',
        'ev""al x',
        "e\\val x",
        "eval\tx",
        "export password=x",
        "PASSWORD=1; password = x",
        "pass''word=x",
    ],
)
def test_blocked_as_a_shell_reads_it(command):
    assert is_blocked(command) == (command != "chmod\n777")  # two commands


@pytest.mark.parametrize(
    "command",
    [
        "cat hello.txt | sort | head -1",
        "echo evaluated",
        "rm -rf /tmp/x",
        "rm -rf ./build",
        "rm -rf build",
        "rm -r /",
        "rm file",
        "rm -rf /tmp/*",
        "confirm -rf /",
        "echo rm; ls -rf /",
        "chmod 755 x",
        "chmod 7770 x",
        "chmod 0644 777x",
        "xchmod 777",
        "curl http://x | sort",
        "curl http://x -o bash",
        "curl x; echo bash",
        "echo x | basename y",
        "echo bash",
        "bash script.sh",
        "ls -la && pwd",
        "grep -r medievalism .",
        "echo retrieval",
        "echo password",
        "echo x | sudo -u bash cat",
        "echo x | (cat)",
        "chmod 0770 x",
        "chmod 07770 x",
        "echo x && (bash -c y)",
        "nice -n 5 cat x",
        "printf '%s\\n' a b",
        "echo $HOME",
        "for i in 1 2; do echo $i; done",
        "cp a.{c,h} b",
        "ls [ab]*",
        "[ -f x ] && echo y",
        "awk '{print $1, $2}' f",
        "x=$((1+2)); echo $x",
        "echo '$(echo x)'",
        "",
        " ",
        '"',
        "'",
        "\\",
        "$",
        "`",
        "$(",
        "echo hello | tr a-z A-Z",
        "echo YmFzaA== | base64 -d",
        "printf '%s %s' a b | sort",
        "echo ${HOME:-x}",
        "ls *.sh",
        "/opt/app/run*",
        "sort <<< b",
        "alias ll='ls -l'",
        "f() { echo hi; }; f",
        "cat x 2>/dev/null | sort",
        "echo eval=$x | rev",
        "which bash",
        "command -v bash",
        "x=$(command -v sh); echo $x",
        "flock /tmp/l sort f",
        "echo x | flock bash.lock cat",
        "sh script.sh",
        "sh -c 'ls -l'",
        "taskset 1 make",
        "rm -rf /home/../tmp/x",
        "rm -rf ../x",
        "rm -rf /a/../b",
        "echo x | sh -c 'cat'",
        "strace -o bash ls",
    ],
)
def test_benign_look_alikes_pass(command):
    assert not is_blocked(command)


def test_a_blocked_command_is_whole_words_and_its_last_argument_is_whole():
    assert is_blocked("mkfs.ext4 /dev/sda1", ["mkfs.ext4 *"], []) and is_blocked(
        "mkfs.ext4", ["mkfs.ext4"], []
    )
    assert not is_blocked("mkfs.ext4x", ["mkfs.ext4"], [])
    assert is_blocked("dd if=/dev/zero of=/dev/sda", ["dd * of=/dev/sda"], []) and not is_blocked(
        "dd if=x of=/dev/sdab", ["dd * of=/dev/sda"], []
    )
    # no word in it: refused by the build
    assert not is_blocked("anything", ["*", ""], [])


def test_the_message_names_the_rule():
    with pytest.raises(SandboxDenied) as e:
        shell_patterns.check("exec-shell", "chmod 777 x", COMMANDS, [])
    assert (
        e.value.message
        == "exec-shell: the sandbox blocks this command (shell.blocked_commands[2], chmod 777)"
    )
    with pytest.raises(SandboxDenied) as e:
        shell_patterns.check("spawn", "eval x", COMMANDS, TABLES)
    assert e.value.data == {
        "tool": "spawn",
        "reason": "blocked command",
        "rule": "blocked_patterns[2]",
    }


# -- disguises and honest look-alikes (shell_disguises.py)


def test_the_table_has_what_adr_0099_counts():
    assert (len(SEEN), len(UNSEEN), len(HONEST)) == (40, 15, 40)


@pytest.mark.parametrize("command", SEEN + UNSEEN)
def test_a_disguise_is_real_and_is_seen_or_known_to_be_unseen(command, tmp_path):
    (tmp_path / "bin").mkdir()
    wipe, mark = tmp_path / "bin/wipe", tmp_path / "started"
    wipe.write_text('#!/bin/sh\n: > "$MARK"\n')
    wipe.chmod(0o755)
    if "bash" in command and not shutil.which("bash"):
        pytest.skip("bash is not here")
    env = {
        "PATH": "%s/bin:/usr/bin:/bin" % tmp_path,
        "MARK": str(mark),
        "BIN": str(tmp_path / "bin"),
    }
    subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=tmp_path,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    assert mark.exists(), "a disguise that runs nothing proves nothing"
    assert is_blocked(command, ["wipe -rf /data"], []) == (command in SEEN)


@pytest.mark.parametrize("command", HONEST)
def test_an_honest_command_runs(command):
    assert not is_blocked(command)


def test_a_text_is_a_command_for_a_shell_alone():
    assert is_blocked("sh -c 'chmod 777 x'") and not is_blocked("echo 'chmod 777 x'")
    assert is_blocked("bash <<EOF\nchmod 777 x\nEOF")
    assert not is_blocked("cat <<EOF\nchmod 777 x\nEOF")
    assert is_blocked("cat <<EOF\nx\nEOF\nchmod 777 x"), "what follows a document is a command"
    assert is_blocked("x=$((1<<n))\nchmod 777 x"), "a shift is no document"


def test_the_arguments_of_spawn_are_words_as_a_shell_would_quote_them():
    limits = [None] * 6
    shown = [1, [["/workspace", True]], []]
    profile = Profile(["t", 1, [0, [], True], shown, [0, False], [1, ["chmod 777"], []], limits])

    def words(*arguments):
        return command_of(
            "spawn", {"command": arguments[0], "args": list(arguments[1:])}, profile, None
        )

    assert words("git", "commit", "-m", "no chmod 777 here")[-1] == "no chmod 777 here"
    for arguments in (["chmod", "777", "x"], ["sh", "-c", "chmod 777 x"]):
        with pytest.raises(SandboxDenied):
            words(*arguments)


def test_texts_in_texts_are_read_three_deep():
    command = "chmod 777 x"
    for depth in range(4):
        assert is_blocked(command) == (depth < 3), depth
        command = "sh -c %s" % shlex.quote(command)


# -- for every text

DISGUISES = ["''", '""', "\\\n", "\\", "$@", "${nothing}", "$*"]


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(["rm -rf /", "chmod 777 x", "echo x | bash", "eval x", "curl y | bash"]),
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from(DISGUISES))),
)
def test_disguises_inside_words_change_nothing(command, disguises):
    """Each is put before a letter, inside a word: what a shell runs stays the same."""
    letters = list(command)
    for place, disguise in disguises:
        at = place % len(command)
        if command[at].isalnum():
            letters[at] = disguise + command[at]
    assert is_blocked("".join(letters))


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=200) | st.text("rm -f/|&;\\'\"$(){}`\n=echoIFS\u200b\uff52*", max_size=80))
def test_every_text_has_an_answer(command):
    texts = shell_patterns.readings(command)
    assert texts[0] == command and all(len(text) <= 20 * len(command) + 1100 for text in texts)
    is_blocked(command)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["ls", "-l", "cat", "file", "|", "sort", "&&", "echo", "x", ";", "grep", "src"]
        ),
        max_size=20,
    )
)
def test_plain_commands_are_their_own_readings(words):
    command = " ".join(words)
    texts = shell_patterns.readings(command)
    assert texts[:2] == [command, command] and len(texts) <= 3


HARD = [
    "a",
    "rm ",
    "rm -rf ",
    "| ",
    "'",
    '"',
    "\\",
    "$",
    "${",
    "${a",
    "$IFS",
    "`",
    "$(",
    "$(echo ",
    "`echo a ",
    "a=b;",
    "a=aaaaaaaa;$a$a$a",
    "$'\\x41",
    "$'",
    "password",
    "password=curl ",
    "curl | ",
    "\u0301",
    "\uff52",
    "\ufdfa",
    "/",
    "//",
    "-",
    "env ",
    "env -a ",
    "sudo A=b ",
    "\n",
    "&",
    "$a",
    "{",
    "<(",
    "=",
    "x=$x;",
    "{a,",
    "{a,b}",
    "[",
    "[a]",
    "$()",
    "``",
]


@pytest.mark.parametrize("piece", HARD)
def test_time_is_linear_for_every_kind_of_text(piece):
    """Ten times the text takes some ten times the time: 40 would be seen by a square, 100."""

    def seconds(size: int) -> float:
        command = (piece * size).encode()[:size].decode(errors="ignore")
        start = time.process_time()
        is_blocked(command)
        return time.process_time() - start

    short, long = (min(seconds(size) for _ in range(2)) for size in (5000, 50000))
    assert long < 40 * short + 0.05

"""``clawlite flash --ssh``: a real ssh and a real sshd on loopback; what is there afterwards,
and what stays when it breaks off.
"""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from agents import clawlite
from slot_board import TOOLS, project
from ssh_server import Server, command, needs_sshd

from clawlite.core.base.errors import ClawError
from clawlite.host.builder import drivers
from clawlite.host.flash import flash, ssh, ssh_remote

ROOT = Path(__file__).resolve().parents[3]
pytestmark = needs_sshd


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("ssh")) as running:
        yield running


@pytest.fixture
def there(server, monkeypatch):
    """Return the agent's folder on the other machine; nothing is there."""
    monkeypatch.setenv("PATH", server.path)
    folder = server.home / "clawlite/agent"
    subprocess.run(["rm", "-rf", server.home, server.bin], check=True)
    server.home.mkdir()
    server.bin.mkdir()
    return folder


def flashed(name, dry_run=False, host="pi") -> dict:
    with flash.target(ssh=host) as target:
        return flash.flash(
            str(name),
            target,
            dry_run,
            None,
            lambda found: None,
            lambda: None,
            lambda total, more: None,
        )


def running(there) -> str:
    return (there / "current").readlink().name


def test_an_agent_gets_there_and_answers(there, tmp_path):
    image = project(tmp_path / "agent", "1.0.0", TOOLS)
    found = flashed(image)
    assert (found["board"], found["boots"], found["slot"], found["written"]) == (
        "linux",
        None,
        "a",
        True,
    )
    assert found["said"].endswith("agent 1.0.0 is ready. /help lists the commands.")
    assert found["next"] == "ssh -t pi clawlite/agent/current/agent"
    assert found["travels"] == sum(file["bytes"] for file in found["files"])
    assert (
        running(there) == "a"
        and (there / "a/tools.py").read_text() == TOOLS
        and not (there / "a/clawlite/host").exists()
    )
    said = subprocess.run(
        ["ssh", "pi", "cd; clawlite/agent/current/agent ask hello"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert said.returncode == 0 and said.stdout.strip(), said
    for words, told in (
        ("secrets list", ""),
        ("doctor", "sandbox"),
        ("trace", "no tool call"),
        ("service install --dry-run", "ExecStart="),
    ):
        said = subprocess.run(
            ["ssh", "pi", f"cd; SUDO_USER=daemon clawlite/agent/current/agent {words}"],
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert told in said.stdout + said.stderr and "usage:" not in said.stdout + said.stderr, (
            words,
            said,
        )
    # the link, which a flash replaces
    assert f'ExecStart="{there}/current/agent" "run"' in said.stdout


def test_drivers_travel_and_those_that_are_gone_are_removed(there, tmp_path):
    folder = tmp_path / "agent"
    project(folder, "1.0.0", TOOLS)
    (folder / "sensor.py").write_text('def read():\n    return "read"\n')
    drivers.add(str(folder / "sensor.py"), str(folder))
    (folder / "sensor.py").unlink()
    (folder / "tools.py").write_text(
        'import sensor\n\n\ndef look() -> str:\n    """Look."""\n    return sensor.read()\n'
    )
    (folder / "reflex.toml").write_text(
        '[[rule]]\nwhen = "*"\ncall = "look"\narguments = {}\nthen = [{ say = "{result}" }]\n'
    )
    assert flashed(folder)["written"] and (there / "a/drivers/sensor.py").exists()
    said = subprocess.run(
        ["ssh", "pi", "cd; clawlite/agent/current/agent ask hello"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert said.stdout == "read\n", said
    (folder / "tools.py").write_text(TOOLS)
    for slot in ("b", "a"):  # one after the other
        (folder / "reflex.toml").write_text(f'[[rule]]\nwhen = "*"\nsay = "{slot}"\n')
        assert flashed(folder)["slot"] == slot
        assert not (there / slot / "drivers/sensor.py").exists()


def test_only_what_changed_travels_and_what_runs_is_not_touched(there, tmp_path):
    flashed(project(tmp_path / "one", "1.0.0", TOOLS))
    again = flashed(tmp_path / "one")
    assert (again["written"], again["travels"]) == (False, 0)
    before = {path: path.read_bytes() for path in (there / "a").rglob("*") if path.is_file()}
    image = project(tmp_path / "two", "2.0.0", TOOLS)
    new = flashed(image)
    assert [file["path"] for file in new["files"] if file["change"] != "same"] == ["/claw.cbor"]
    assert (new["boots"], new["slot"], running(there)) == ("a", "b", "b")
    assert (
        new["travels"]
        == new["files"][[file["path"] for file in new["files"]].index("/claw.cbor")]["bytes"]
    )
    assert before == {path: path.read_bytes() for path in before}
    third = flashed(tmp_path / "one")  # slot a holds it already
    assert (third["travels"], running(there)) == (0, "a")


def test_a_dry_run_and_a_no_write_nothing(there, tmp_path):
    image = project(tmp_path / "agent", "1.0.0", TOOLS)
    assert not flashed(image, dry_run=True)["written"] and not there.exists()
    done = clawlite("flash", image, "--ssh", "pi", cwd=tmp_path)
    assert (
        done.returncode == 2
        and "confirm with --yes" in done.stderr
        and "slot a" in done.stderr
        and not there.exists()
    )


def test_an_agent_that_does_not_start_does_not_run(there, tmp_path):
    flashed(project(tmp_path / "one", "1.0.0", TOOLS))
    with pytest.raises(
        ClawError, match="(?s)did not start; it said: .*nothing_of_the_kind"
    ) as failed:
        flashed(
            project(tmp_path / "two", "2.0.0", TOOLS + "raise ImportError('nothing_of_the_kind')\n")
        )
    assert failed.value.exit_code == 1 and running(there) == "a"


@pytest.mark.parametrize("count", [0, 3, 20, 70])
def test_a_flash_that_breaks_off_leaves_what_ran(there, tmp_path, monkeypatch, count):
    flashed(project(tmp_path / "one", "1.0.0", TOOLS))
    new = project(tmp_path / "two", "2.0.0", TOOLS + "# more\n")
    do, left = ssh.Remote.do, [count]

    def stops(self, step, tell):
        left[0] -= 1
        if left[0] < 0 and step[0] == "write":  # half of a file goes, then the line
            self._send(
                json.dumps(["write", step[1], len(step[2])]).encode()
                + b"\n"
                + step[2][: len(step[2]) // 2]
            )
            raise KeyboardInterrupt
        if left[0] < 0:
            raise KeyboardInterrupt
        do(self, step, tell)

    monkeypatch.setattr(ssh.Remote, "do", stops)
    with pytest.raises(KeyboardInterrupt):
        flashed(new)
    assert running(there) == "a"
    said = subprocess.run(
        [there / "current/agent"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        env={**os.environ, "CLAWLITE_STATE": str(tmp_path / "state")},
    )
    assert "agent 1.0.0 is ready." in said.stdout


def test_after_one_that_broke_off_the_next_one_is_whole(there, tmp_path, monkeypatch):
    flashed(project(tmp_path / "one", "1.0.0", TOOLS))
    (there / "b").mkdir()
    (there / "b/claw.cbor").write_bytes(b"half")
    (there / "b/left.txt").write_text("of an older version")
    assert flashed(project(tmp_path / "two", "2.0.0", TOOLS))["said"] and running(there) == "b"
    assert not (there / "b/left.txt").exists()


def test_what_came_over_is_read_back(there, tmp_path, monkeypatch):
    copy = ssh.Remote.digests
    monkeypatch.setattr(
        ssh.Remote, "digests", lambda self, paths: {**copy(self, paths), "a/claw.cbor": "0" * 64}
    )
    with pytest.raises(ClawError, match="a/claw.cbor is not what was written"):
        flashed(project(tmp_path / "one", "1.0.0", TOOLS))
    assert not (there / "current").exists()


def test_somebodys_own_folder_is_left_alone(there, tmp_path):
    there.mkdir(parents=True)
    (there / "diary.txt").write_text("mine")
    with pytest.raises(ClawError, match="diary.txt is not clawlite's"):
        flashed(project(tmp_path / "one", "1.0.0", TOOLS))
    assert [path.name for path in there.iterdir()] == ["diary.txt"]


@pytest.mark.parametrize(
    "login",
    [
        "echo welcome; echo to this Pi",
        r"printf '\033]0;pi@claw\007'",  # a terminal's title: no line end
        f"printf '%s' '{ssh_remote.GREETING.decode().strip()}'",
    ],
)
def test_a_login_that_talks_is_no_hindrance(there, server, tmp_path, login):
    (server.home / ".bashrc").write_text(login + "\n")
    assert flashed(project(tmp_path / "one", "1.0.0", TOOLS))["written"]


def test_its_service_is_restarted_where_it_runs(there, server, tmp_path):
    command(
        server.bin,
        "systemctl",
        f'echo "$*" >>{server.home}/calls; [ $1 = --user ] || exit 0; exit 3',
    )
    flashed(project(tmp_path / "one", "1.0.0", TOOLS))
    assert (server.home / "calls").read_text().splitlines() == [
        "--user --no-ask-password is-active --quiet clawlite-agent.service",
        "--system --no-ask-password is-active --quiet clawlite-agent.service",
        "--system --no-ask-password restart clawlite-agent.service",
    ]
    command(
        server.bin,
        "systemctl",
        '[ $3 = is-active ] && exit 0; echo "Interactive authentication required." >&2; exit 1',
    )
    with pytest.raises(
        ClawError, match="still runs the old one: Interactive authentication required."
    ) as failed:
        flashed(project(tmp_path / "two", "2.0.0", TOOLS))
    assert "systemctl --user restart clawlite-agent.service" in failed.value.hint


@pytest.mark.parametrize(
    "host, code, words",
    [
        ("stranger", 4, "Permission denied"),
        ("nobody", 3, "Connection refused"),
        ("-oProxyCommand=touch x", 2, "expected a host"),
        ("", 2, "--ssh: expected HOST"),
    ],
)
def test_a_host_that_cannot_be_flashed(there, tmp_path, host, code, words):
    project(tmp_path / "one", "1.0.0", TOOLS)
    done = clawlite("flash", "one", "--ssh=" + host, "--yes", cwd=tmp_path)
    assert done.returncode == code and words in done.stderr and "Traceback" not in done.stderr, (
        done.stderr
    )


def test_a_machine_without_a_python_that_will_do(there, server, tmp_path, monkeypatch):
    image = project(tmp_path / "one", "1.0.0", TOOLS)
    command(server.bin, "python3", "exit 127")
    with pytest.raises(ClawError, match="there is no python3") as failed:
        flashed(image)
    assert failed.value.exit_code == 1 and "apt install python3" in failed.value.hint
    (server.bin / "python3").unlink()
    monkeypatch.setattr(ssh, "PYTHON", (4, 0))
    with pytest.raises(ClawError, match="expected 4.0 or later"):
        flashed(image)


def test_an_old_python_is_named_though_it_cannot_read_the_program(there, server, tmp_path):
    """Its stand-in takes what the parser of Python 3.8 takes, and says that it is one."""
    (server.bin / "old.py").write_text(
        "import ast, sys\n"
        "given = sys.stdin.buffer.read(int(sys.stdin.buffer.readline()))\n"
        "sys.version_info = (3, 8, 10, 'final', 0)\n"
        "exec(compile(ast.parse(given, feature_version=(3, 8)), 'given', 'exec'))\n"
    )
    command(server.bin, "python3", f"exec {sys.executable} -I -S {server.bin}/old.py")
    with pytest.raises(ClawError, match=r"Python 3\.8, expected 3\.11 or later"):
        flashed(project(tmp_path / "one", "1.0.0", TOOLS))


def test_two_targets_are_one_too_many(tmp_path):
    done = clawlite("flash", "--ssh", "pi", "--dir", ".", cwd=tmp_path)
    assert done.returncode == 2 and "--dir and --ssh: expected one of them" in done.stderr


@pytest.mark.parametrize(
    "model, board",
    [
        ("Raspberry Pi Zero W Rev 1.1", "rpi-zero-w"),
        ("Raspberry Pi Zero 2 W Rev 1.0", "rpi-zero-2-w"),
        ("Raspberry Pi 3 Model B Plus Rev 1.3", "rpi-3b-plus"),
        ("Raspberry Pi 4 Model B Rev 1.4", "rpi-4"),
        ("Raspberry Pi 5 Model B Rev 1.0", "rpi-5"),
        ("Raspberry Pi 500 Rev 1.0", "linux"),
        ("Raspberry Pi Pico", "linux"),
        (None, "linux"),
    ],
)
def test_a_pi_says_which_one_it_is(model, board):
    assert ssh.board_of(model) == board


def test_the_runtime_is_the_package_without_its_host_part():
    names = set(ssh.runtime())
    assert {
        "clawlite/__main__.py",
        "clawlite/command.py",
        "clawlite/verbs.py",
        "clawlite/core/agent/agent.py",
        "clawlite/linux/runtime/shell.py",
    } <= names
    assert not [name for name in names if "/host/" in name or "__pycache__" in name]


def test_the_runtime_has_the_data_that_the_package_installs():
    data = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    wanted = {
        path.relative_to(ROOT).as_posix()
        for package, patterns in data["package-data"].items()
        for pattern in patterns
        for path in (ROOT / package.replace(".", "/")).glob(pattern)
        if "clawlite/host/" not in path.as_posix() and path.suffix != ".pxd"
    }
    names = set(ssh.runtime())
    assert "clawlite/linux/local/none.jsonl" in wanted <= names
    assert {name for name in names if not name.endswith(".py")} == wanted

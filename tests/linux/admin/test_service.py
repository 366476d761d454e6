"""``clawlite service``: the units, as systemd itself reads them; what is installed and removed,
and what is refused.
"""

import json
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import tomllib
import tty

import channel_world
import pytest
import yaml
from agents import DEADLINE_S, ROOT, Agent, clawlite, environment, linux
from slot_board import TOOLS, project
from ssh_server import command

from clawlite.core.base.errors import ClawError
from clawlite.host.compiler import compiler
from clawlite.linux.admin import service, units
from clawlite.linux.io import systemd

ANALYZE = shutil.which("systemd-analyze")
FILES = ROOT / "firmware-host/raspberrypi"


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Return a folder in which a machine with systemd begins: its ``systemctl`` writes down what
    it is told.
    """
    monkeypatch.setattr(service, "SYSTEM", str(tmp_path / "system"))
    monkeypatch.setattr(service, "BOOTED", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path / "state/clawlite"))
    monkeypatch.delenv("SUDO_USER", raising=False)
    (tmp_path / "bin").mkdir()
    command(
        tmp_path / "bin",
        "systemctl",
        f'echo "$*" >>{tmp_path}/calls; case "$*" in '
        f"*is-active*) echo active;; *is-enabled*) echo "
        f"enabled;; esac",
    )
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    if os.getuid():  # only root gives files away
        monkeypatch.setattr(os, "chown", lambda *_: None)
    return tmp_path


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    return project(tmp_path_factory.mktemp("service") / "agent", "1.0.0", TOOLS)


def calls(machine) -> list:
    return (machine / "calls").read_text().splitlines()


def sample(**more) -> units.Service:
    facts = {
        "name": "agent",
        "words": ["/bin/true", "a b", "100%"],
        "user": "daemon",
        "writable": ["/srv"],
        "tty": None,
        **more,
    }
    return units.Service(**facts)


# -- the units


@pytest.mark.parametrize(
    "more, scope",
    [
        ({}, "--system"),
        ({"tty": "/dev/ttyS0"}, "--system"),
        ({"user": None}, "--user"),
        ({"user": None, "tty": "/dev/ttyS0", "state": "/tmp/a b"}, "--user"),
        ({"lasts": True}, "--system"),
        ({"user": None, "lasts": True}, "--user"),
    ],
)
def test_systemd_finds_no_fault_with_them(tmp_path, more, scope):
    paths = []
    for name, text in sample(**more).units():
        (tmp_path / name).write_text(text)
        paths.append(str(tmp_path / name.replace("@.", "@1.")))
        assert text.startswith(units.MARK + "\n")
        for line in text.splitlines():
            assert re.fullmatch(r"#.*|\[[A-Z][a-z]+\]|[A-Za-z]+=.*|", line), line
    if ANALYZE:
        done = subprocess.run(
            [ANALYZE, "verify", scope, "--man=no", *paths],
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path)},
        )
        said = [line for line in done.stderr.splitlines() if str(tmp_path) in line]
        assert done.returncode == 0 and not said, done.stderr


def test_verification_bites(tmp_path):
    if not ANALYZE:
        return  # the test above says nothing then, and this one neither
    (tmp_path / "bad.service").write_text(
        sample().units()[1][1].replace("/bin/true", "/no/such/program").replace("UMask", "UMisk")
    )
    done = subprocess.run(
        [ANALYZE, "verify", "--man=no", str(tmp_path / "bad.service")],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode and "/no/such/program" in done.stderr and "UMisk" in done.stderr


def test_a_system_service_is_hardened_and_leaves_the_sandbox_its_means():
    text = dict(sample().units())["clawlite-agent@.service"]
    for line in (
        "NoNewPrivileges=yes",
        "CapabilityBoundingSet=",
        "ProtectSystem=strict",
        "ProtectHome=read-only",
        "PrivateTmp=yes",
        "DevicePolicy=closed",
        'ReadWritePaths="/srv"',
        "User=daemon",
    ):
        assert line in text.splitlines()
    for word in (
        "RestrictNamespaces",
        "PrivateUsers",
        "ProtectKernelTunables",
        "ProtectKernelLogs",
        "ProtectProc",
        "ProcSubset",
        "MemoryDenyWriteExecute",
        "PrivateDevices",
    ):
        assert word not in text
    assert "@mount" in text and "landlock_restrict_self" in text
    if ANALYZE:
        for group in ("@system-service", "@mount"):
            assert (
                subprocess.run([ANALYZE, "syscall-filter", group], capture_output=True).returncode
                == 0
            )
        allowed = "".join(
            subprocess.run(
                [ANALYZE, "syscall-filter", group], capture_output=True, text=True
            ).stdout
            for group in ("@process", "@mount")
        )
        assert {"unshare", "setns", "clone3", "mount", "pivot_root", "umount2", "prctl"} <= set(
            allowed.split()
        )


def test_what_covers_a_part_of_proc_takes_the_sandbox_its_own():
    """The kernel's rule that rule 2 of linux/admin/units.py comes from; where namespaces are not
    to be had it cannot be shown.
    """

    def namespaces(first):
        script = f"{first} unshare --user --map-root-user --mount --pid --fork --mount-proc true"
        words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script]
        return subprocess.run(words, capture_output=True).returncode == 0

    if namespaces(""):
        assert not namespaces("mount --bind /dev/null /proc/kmsg &&")
        assert not namespaces(
            "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys &&"
        )


@pytest.mark.parametrize(
    "word, text",
    [("a", '"a"'), ('a "b"\\', '"a \\"b\\"\\\\"'), ("50%", '"50%%"'), ("$HOME", '"$$HOME"')],
)
def test_words_are_quoted_as_systemd_reads_them(word, text):
    assert units.quote(word) == text


def test_the_files_of_the_firmware_folder_are_what_the_code_makes():
    home, made = "/home/pi", {}
    for line in (None, "/dev/ttyGS0"):
        made.update(
            units.Service(
                "greenhouse",
                [home + "/clawlite/greenhouse/current/agent", "run"],
                "pi",
                [home + "/.local/state/clawlite"],
                line,
            ).units()
        )
    assert {path.name: path.read_text() for path in FILES.glob("clawlite-*")} == made


def test_the_first_boot_files_say_what_their_readers_know():
    data = yaml.safe_load((FILES / "user-data").read_text())
    assert (FILES / "user-data").read_text().startswith("#cloud-config\n")
    assert set(data) == {
        "hostname",
        "manage_etc_hosts",
        "enable_ssh",
        "ssh_pwauth",
        "users",
        "rpi",
    } and data["rpi"] == {"interfaces": {"i2c": True, "spi": True}}
    # The sections and keys that init_config of raspberrypi-sys-mods reads.
    known = {
        "config_version": None,
        "system": {"hostname"},
        "user": {"name", "password", "password_encrypted"},
        "ssh": {"enabled", "password_authentication", "authorized_keys", "ssh_import_id"},
    }
    data = tomllib.loads((FILES / "custom.toml").read_text())
    assert data.pop("config_version") == 1
    for section, values in data.items():
        assert set(values) <= known[section]


# -- install, status, remove


@pytest.mark.parametrize("root", [True, False])
def test_installed_listed_and_removed(machine, image, root):
    options = {"user": "daemon", "writable": ["/srv"]} if root else {}
    found = service.install(image, root=root, **options)
    folder = machine / ("system" if root else "config/systemd/user")
    mine = [] if root else ["--user"]
    assert sorted(path.name for path in folder.iterdir()) == [
        "clawlite-agent.socket",
        "clawlite-agent@.service",
    ]
    assert [file["text"] for file in found["files"]] == [
        (folder / os.path.basename(file["path"])).read_text() for file in found["files"]
    ]
    assert calls(machine) == [
        " ".join(mine + words)
        for words in (
            ["daemon-reload"],
            ["enable", "clawlite-agent.socket"],
            ["restart", "clawlite-agent.socket"],
        )
    ]
    text = (folder / "clawlite-agent@.service").read_text()
    assert (
        ('ReadWritePaths="/srv"' in text) == root
        and units.quote(image) in text
        and (machine / "state/clawlite").stat().st_mode & 0o777 == 0o700
    )
    (row,) = service.status("agent")
    assert (row["name"], row["scope"], row["enabled"], row["active"]) == (
        "agent",
        "system" if root else "user",
        "enabled",
        "active",
    )
    service.install(image, root=root, **options)  # again: over its own
    service.remove("agent", root=root)
    assert (
        not list(folder.iterdir())
        and "disable --now clawlite-agent.socket" in calls(machine)[-2]
        and service.status(None) == []
    )


def test_a_dry_run_prints_and_does_nothing(machine, image):
    done = clawlite(
        "service",
        "install",
        image,
        "--tty",
        "/dev/ttyGS0",
        "--as",
        "daemon",
        "--dry-run",
        cwd=machine,
    )
    if os.getuid():
        assert done.returncode == 2 and "only root" in done.stderr
        done = clawlite(
            "service", "install", image, "--tty", "/dev/ttyGS0", "--dry-run", cwd=machine
        )
    assert done.returncode == 0 and "ExecStart=" in done.stdout and "# systemctl" in done.stdout, (
        done.stderr
    )
    assert not (machine / "calls").exists() and not (machine / "system").exists()


def test_json_is_one_document(machine, image):
    words = ["--as", "daemon"] if os.getuid() == 0 else []
    done = clawlite("service", "install", image, "--dry-run", "--json", *words, cwd=machine)
    assert sorted(json.loads(done.stdout)) == [
        "commands",
        "dry_run",
        "files",
        "name",
        "next",
        "scope",
        "user",
    ]
    done = clawlite("service", "status", "nobody", "--json", cwd=machine)
    assert (
        done.returncode == 1
        and json.loads(done.stdout)["error"]
        and "no service of an agent nobody" in done.stderr
    )


@pytest.mark.parametrize(
    "name, options, root, words",
    [
        ("claw.yaml", {}, False, "is no image"),
        (None, {}, True, "needs a user to run as"),
        (None, {"user": "root"}, True, "does not run as root"),
        (None, {"user": "no-such-user"}, True, "no user no-such-user"),
        (None, {"user": "daemon"}, False, "only root"),
        (None, {"tty": "ttyGS0"}, False, "expected a device"),
        (None, {"tty": "/dev/../etc/passwd"}, False, "expected a device"),
        (None, {"writable": ["/a\nUser=root"]}, False, "control characters"),
    ],
)
def test_what_cannot_be_installed_is_refused(machine, image, name, options, root, words):
    with pytest.raises(ClawError, match=words):
        service.install(name or image, root=root, **options)
    assert not (machine / "calls").exists()


def cron_image(folder) -> str:
    """Return the path of an image with a schedule."""
    cron = {"type": "cron", "transport": "polling", "trigger": {"schedule": "@daily"}}
    path = folder / "cron" / "claw.cbor"
    made = compiler.build(channel_world.project(folder / "cron", {"tick": cron})).data
    path.write_bytes(made)
    return str(path)


@pytest.mark.parametrize("root", [True, False])
def test_an_agent_with_channels_runs_from_boot_on(machine, tmp_path, root):
    found = service.install(cron_image(tmp_path), user="daemon" if root else None, root=root)
    (file,) = found["files"]
    lines = file["text"].splitlines()
    for line in (
        "Type=notify",
        "NotifyAccess=main",
        "WatchdogSec=300",
        "Restart=always",
        "RestartPreventExitStatus=2",
        "StartLimitIntervalSec=300",
        "StartLimitBurst=5",
        "StandardInput=null",
        "StandardOutput=journal",
        "WantedBy=multi-user.target" if root else "WantedBy=default.target",
    ):
        assert line in lines, line
    # only the system's manager has that target
    assert ("After=time-sync.target" in lines) is root
    unit = "clawlite-%s.service" % found["name"]
    assert (
        calls(machine)[-1].endswith("restart " + unit)
        and "journalctl" in found["next"]
        and unit in found["next"]
    )
    # systemd reads it in [Unit] alone
    assert lines.index("StartLimitBurst=5") < lines.index("[Service]")
    with pytest.raises(ClawError, match="has no socket: it runs from boot on"):
        service.relay_lines(found["name"], [str(tmp_path / "no.sock")])


def test_installed_as_another_kind_it_is_not_there_twice(machine, tmp_path):
    folder = machine / "config/systemd/user"
    image = cron_image(tmp_path)
    name = service.install(image, root=False)["name"]
    # of a version of this agent that had no channels
    for end in (".socket", "@.service"):
        (folder / ("clawlite-%s%s" % (name, end))).write_text(units.MARK + "\n")
    (machine / "calls").unlink()
    service.install(image, root=False)
    assert [path.name for path in folder.iterdir()] == ["clawlite-%s.service" % name]
    assert calls(machine)[0] == "--user disable --now clawlite-%s.socket" % name
    (folder / ("clawlite-%s.socket" % name)).write_text("[Socket]\n")
    with pytest.raises(ClawError, match="was not made by clawlite"):
        service.install(image, root=False)


class Manager:
    """The end of the notification socket that systemd has."""

    def __init__(self, path):
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._line.bind(path)
        self._line.settimeout(DEADLINE_S)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._line.close()

    def told(self) -> str:
        return self._line.recv(4096).decode()


@pytest.mark.parametrize("abstract", [False, True])
def test_systemd_hears_that_it_is_ready_that_it_lives_and_that_it_ends(tmp_path, abstract):
    path = "@clawlite-test-%d" % os.getpid() if abstract else str(tmp_path / "notify")
    with Manager(path.replace("@", "\0")) as manager, open(os.devnull) as nothing:
        process = subprocess.Popen(
            linux("run", cron_image(tmp_path)),
            stdin=nothing,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={
                **environment(tmp_path / "home"),
                "NOTIFY_SOCKET": path,
                "WATCHDOG_USEC": "200000",
            },
        )
        try:
            assert [manager.told() for _ in range(4)] == [
                "READY=1",
                "WATCHDOG=1",
                "WATCHDOG=1",
                "WATCHDOG=1",
            ]
            process.send_signal(signal.SIGTERM)
            while (said := manager.told()) == "WATCHDOG=1":
                pass
            assert said == "STOPPING=1" and process.wait(DEADLINE_S) == 143
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


@pytest.mark.parametrize(
    "more, fed",
    [
        ({}, False),
        ({"WATCHDOG_USEC": "10000000"}, True),
        ({"WATCHDOG_USEC": "10000000", "WATCHDOG_PID": "1"}, False),
        ({"WATCHDOG_USEC": "soon"}, False),
        ({"WATCHDOG_USEC": "0"}, False),
    ],
)
def test_the_watchdog_is_fed_in_half_its_time_where_it_is_meant(tmp_path, monkeypatch, more, fed):
    names = {"NOTIFY_SOCKET": str(tmp_path / "notify"), **more}
    for name, value in names.items():
        monkeypatch.setenv(name, value)
    now = [1000]
    with Manager(names["NOTIFY_SOCKET"]) as manager:
        notifier = systemd.Notifier(lambda: now[0])
        # what the agent starts does not speak for it
        assert not set(names) & set(os.environ)
        notifier.ready()
        assert manager.told() == "READY=1" and notifier.deadline() == (6000 if fed else None)
        if fed:
            assert manager.told() == "WATCHDOG=1"
            for now[0], due in ((5999, 6000), (6000, 11000)):
                notifier.poll()
                assert notifier.deadline() == due
            assert manager.told() == "WATCHDOG=1"
    # its manager has gone: nobody is told, and nothing fails
    notifier.close()


def test_no_systemd_no_service(machine, image, monkeypatch):
    monkeypatch.setattr(service, "BOOTED", str(machine / "nowhere"))
    with pytest.raises(ClawError, match="systemd does not run") as refused:
        service.install(image, root=False)
    assert (
        refused.value.exit_code == 1
        and "clawlite run" in refused.value.hint
        and not (machine / "config").exists()
    )


def test_somebodys_own_unit_is_not_touched(machine, image):
    folder = machine / "config/systemd/user"
    folder.mkdir(parents=True)
    (folder / "clawlite-agent.socket").write_text("[Socket]\n")
    for act in (
        lambda: service.install(image, root=False),
        lambda: service.remove("agent", {}, False),
    ):
        with pytest.raises(ClawError, match="was not made by clawlite"):
            act()
    assert (folder / "clawlite-agent.socket").read_text() == "[Socket]\n"


def test_a_systemctl_that_fails_says_so(machine, image):
    command(machine / "bin", "systemctl", "echo 'Failed to connect to bus' >&2; exit 1")
    with pytest.raises(ClawError, match="daemon-reload: Failed to connect to bus") as failed:
        service.install(image, root=False)
    assert failed.value.exit_code == 1


@pytest.mark.parametrize(
    "args",
    [["install", "--tty"], ["install", "a", "b"], ["mend"], ["install", "--nope"], ["remove"], []],
)
def test_bad_usage(tmp_path, args):
    done = clawlite("service", *args, cwd=tmp_path)
    assert done.returncode == 2 and "clawlite service" in done.stderr


# -- what the units start


def test_an_agent_speaks_over_a_socket_as_systemd_hands_it_over(tmp_path, image):
    words = service.plan(image, None, None, (), False).words
    ours, theirs = socket.socketpair()
    with subprocess.Popen(
        words,
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
        env=environment(tmp_path / "home"),
    ) as agent:
        theirs.close()
        with ours, ours.makefile("rwb") as line:
            assert line.readline().startswith(b"agent 1.0.0 is ready.")
            line.write(b"hello\n")
            line.flush()
            assert b"By rule." in line.readline()
            ours.shutdown(socket.SHUT_WR)
            assert agent.wait() == 0


def test_a_person_talks_to_the_socket(tmp_path, image):
    (tmp_path / "clawlite").mkdir()
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tmp_path / "clawlite/agent.sock"))
        door.listen(1)
        with Agent(
            linux("service", "talk", "agent"),
            tmp_path / "home",
            env={"XDG_RUNTIME_DIR": str(tmp_path)},
        ) as person:
            theirs = door.accept()[0]
            with (
                theirs,
                subprocess.Popen(
                    service.plan(image, None, None, (), False).words,
                    stdin=theirs,
                    stdout=theirs,
                    env=environment(tmp_path / "agent"),
                ) as agent,
            ):
                theirs.close()
                person.expect("agent 1.0.0 is ready.")
                person.line("hello")
                person.expect("By rule.")
                person.end()
                assert agent.wait() == 0
            assert person.wait() == 0
    done = clawlite("service", "talk", "agent", cwd=tmp_path, XDG_RUNTIME_DIR=tmp_path)
    assert done.returncode == 1 and "cannot be reached: Connection refused" in done.stderr


def test_a_terminal_of_a_service_has_plain_lines_without_echo(tmp_path, image):
    text = units.Service(
        "agent", service.plan(image, None, None, (), False).words, None, [], "/dev/pts/x"
    ).units()[0][1]
    before = re.search(r"^ExecStartPre=\+(.*)$", text, re.M)[1]
    ours, theirs = pty.openpty()
    subprocess.run(before.replace('"/dev/pts/x"', os.ttyname(theirs)).split(), check=True)
    term = dict([re.search(r"^Environment=(TERM=.*)$", text, re.M)[1].split("=")])
    with subprocess.Popen(
        service.plan(image, None, None, (), False).words,
        stdin=theirs,
        stdout=theirs,
        env=environment(tmp_path / "home", **term),
        start_new_session=True,
    ) as agent:
        os.close(theirs)
        tty.setraw(ours)
        os.write(ours, b"hello\n")
        said = b""
        while b"By rule." not in said:
            said += os.read(ours, 4096)
        assert b"hello" not in said and b"\x1b" not in said
        os.close(ours)
        assert agent.wait() is not None

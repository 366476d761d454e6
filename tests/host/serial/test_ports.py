"""What is attached: USB ids, bootloaders, virtual boards, who has a port open, and which one a
command means.
"""

import json
import os
import pty
import signal
import subprocess
import sys
import types

import pytest
from agents import Agent, clawlite, eventually, linux, without_root_rights
from sims import needs_micropython, simulated

from clawlite.host.base.open_files import holders
from clawlite.host.serial import ports
from clawlite.host.serial.serial_line import open_port
from clawlite.host.sim import registry
from clawlite.host.sim.sim import Sim


@pytest.fixture(autouse=True)
def machine(monkeypatch, tmp_path):
    """Return an empty machine: a list of what pyserial finds, to add to; no USB devices; a
    registry of its own.
    """
    found = []
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(ports, "_comports", lambda: found)
    monkeypatch.setattr(ports, "USB_DEVICES", tmp_path / "usb")
    return found


@pytest.fixture
def terminal():
    """Return the path of a pseudo-terminal that stands for a serial device, held open by nobody
    else.
    """
    ends = pty.openpty()
    yield os.ttyname(ends[1])
    for fd in ends:
        os.close(fd)


def info(device, vid=None, pid=None, serial=None, location=None):
    return types.SimpleNamespace(
        device=device, vid=vid, pid=pid, serial_number=serial, location=location
    )


def test_a_board_is_known_by_its_usb_ids(machine, terminal):
    machine.append(info(terminal, 0x2E8A, 0x0005, "E6614103E72B2A2F"))
    (port,) = ports.ports()
    assert {"pico", "pico-w"} <= set(port.pop("boards"))
    assert port == {
        "port": terminal,
        "usb": "2E8A:0005",
        "serial": "E6614103E72B2A2F",
        "state": "free",
        "path": None,
        "holders": [],
        "id": "usb:2E8A:0005:E6614103E72B2A2F",
        "virtual": False,
    }
    assert ports.choose()["port"] == terminal
    assert (
        ports.choose(terminal)["id"]
        == ports.choose("usb:2E8A:0005:E6614103E72B2A2F")["id"]
        == port["id"]
    )
    assert ports.find(port["id"]) == terminal


def test_boards_without_a_serial_number_are_told_apart_by_their_socket(machine, terminal):
    machine += [
        info(terminal, 0x1A86, 0x7523, None, "1-2"),
        info(terminal, 0x1A86, 0x7523, None, "1-3"),
    ]
    assert [port["id"] for port in ports.ports()] == [
        "usb:1A86:7523:at 1-2",
        "usb:1A86:7523:at 1-3",
    ]


def test_a_number_that_each_chip_has_is_none(machine, terminal):
    """A CP210x leaves its factory as number 0001; the id is the same with and without a twin."""
    machine += [info(terminal, 0x10C4, 0xEA60, "0001", "1-2")]
    (before,) = ports.ports()
    machine += [info(terminal + "x", 0x10C4, 0xEA60, "0001", "1-3")]
    assert [port["id"] for port in ports.ports()] == [
        before["id"],
        "usb:10C4:EA60:at 1-3",
    ] and before["id"] == "usb:10C4:EA60:at 1-2"
    assert [port["path"] for port in ports.ports()] == ["1-2", "1-3"]


@pytest.mark.parametrize("sockets", [("1-2", "1-3"), (None, None)])
def test_boards_that_share_a_serial_number_are_never_taken_for_each_other(
    machine, terminal, sockets
):
    one = info(terminal, 0x1A86, 0x55D4, "123", sockets[0])
    twin = info(terminal + "x", 0x1A86, 0x55D4, "123", sockets[1])
    machine.append(one)
    (alone,) = ports.ports()
    assert alone["id"] == "usb:1A86:55D4:123"
    machine.append(twin)
    ids = [port["id"] for port in ports.ports()]
    assert ids == [
        f"usb:1A86:55D4:123 at {at}"
        for at in (sockets[0] or terminal, sockets[1] or terminal + "x")
    ]
    with pytest.raises(ports.NoPort, match="more than one board has the id") as caught:
        ports.choose(alone["id"])
    assert caught.value.exit_code == 3 and ids[0] in caught.value.message
    assert ports.find(alone["id"]) is None
    assert ports.choose(ids[0])["port"] == ports.find(ids[0]) == terminal
    machine.remove(one)  # it resets: the line waits for it, not for the other
    assert ports.find(ids[0]) is None and ports.find(ids[1]) == terminal + "x"


def test_nothing_is_chosen_between_two_boards(machine, terminal):
    machine += [info(terminal, 0x2E8A, 0x0005, "A"), info(terminal + "x", 0x1234, 0x5678, "B")]
    with pytest.raises(
        ports.NoPort,
        match=f"more than one board is attached: {terminal} .*A.*, {terminal}x .unknown board, B.",
    ) as caught:
        ports.choose()
    assert caught.value.exit_code == 3 and [
        port["serial"] for port in caught.value.data["ports"]
    ] == ["A", "B"]


def test_a_uart_of_the_machine_is_taken_only_by_name(machine, terminal):
    machine.append(info(terminal))
    with pytest.raises(ports.NoPort, match="no board is attached") as caught:
        ports.choose()
    assert "clawlite sim" in caught.value.hint
    assert ports.choose(terminal)["id"] == terminal


def test_a_port_that_is_not_there(tmp_path):
    with pytest.raises(ports.NoPort, match="does not exist"):
        ports.choose(str(tmp_path / "ttyX"))
    with pytest.raises(ports.NoPort, match="does not exist"):
        open_port(str(tmp_path / "ttyX"))
    with pytest.raises(
        ports.NoPort, match="no gateway here shares the console gateway:x"
    ) as caught:
        ports.choose("gateway:x")
    assert "over Wi-Fi has none there: name the serial port" in caught.value.hint
    (tmp_path / "file").write_text("no port")
    with pytest.raises(ports.PortRefused) as caught:
        open_port(str(tmp_path / "file"))
    assert caught.value.exit_code == 4


def test_a_board_in_its_bootloader_is_shown_and_not_chosen(tmp_path):
    for name, value in (("idVendor", "2e8a"), ("idProduct", "0003"), ("serial", "E0C912D24340")):
        (tmp_path / "usb" / "1-4").mkdir(parents=True, exist_ok=True)
        (tmp_path / "usb" / "1-4" / name).write_text(value + "\n")
    (tmp_path / "usb" / "usb1").mkdir()
    (port,) = ports.ports()
    assert (port["port"], port["state"], port["id"]) == (
        None,
        "bootloader",
        "usb:2E8A:0003:E0C912D24340",
    )
    with pytest.raises(ports.NoPort) as caught:
        ports.choose()
    assert caught.value.hint == "the board in its bootloader needs MicroPython first"


@needs_micropython
def test_who_has_a_port_open_is_named(tmp_path, machine):
    with simulated(tmp_path / "flash") as board:
        assert ports.choose()["state"] == "free" and holders([board.path]) == {board.path: []}
        with Agent(
            linux("console", "--port", board.path),
            tmp_path,
            env={"CLAWLITE_STATE": tmp_path / "state"},
        ) as other:
            eventually(lambda: holders([board.path])[board.path])
            (port,) = ports.ports()
            assert port["state"] == "busy" and port["holders"] == [
                {"pid": other.process.pid, "name": "clawlite console"}
            ]
            with pytest.raises(
                ports.PortRefused,
                match=rf"{board.path} is in use by .* \(pid "
                rf"{other.process.pid}\)",
            ) as caught:
                ports.choose()
            assert caught.value.exit_code == 4 and "end that program" in caught.value.hint
            done = clawlite(
                "console", "--port", board.path, cwd=tmp_path, CLAWLITE_STATE=tmp_path / "state"
            )
            assert done.returncode == 4 and f"(pid {other.process.pid})" in done.stderr


def test_what_is_no_port_is_not_called_one_that_is_in_use():
    error = ports.port_error("/dev/full")
    assert error.message == "/dev/full is no serial port" and "clawlite ports" in error.hint
    assert ports.port_error("/tmp").message == "/tmp is no serial port"


@needs_micropython
def test_the_program_that_is_the_board_is_not_in_its_way(tmp_path, machine):
    told = {"CLAWLITE_STATE": tmp_path / "state"}
    with Agent(linux("sim", "--pty-link", tmp_path / "board"), tmp_path, env=told) as board:
        board.expect("/dev/pts/")
        path = os.path.realpath(tmp_path / "board")
        done = clawlite("doctor", "--port", path, "--json", cwd=tmp_path, **told)
        assert [
            (row["state"], row["what"]) for row in json.loads(done.stdout) if row["check"] == "port"
        ] == [("ok", f"{path} is free")]
        with open(path, "rb") as mine, pytest.raises(ports.PortRefused) as caught:
            raise ports.port_error(mine.name)
        assert caught.value.message == f"{path} is in use"  # by this process alone
        script = f"import sys; held = open('{path}', 'rb'); print(1, flush=True); sys.stdin.read()"
        with subprocess.Popen(
            [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as other:
            assert other.stdout.readline() == b"1\n"
            with pytest.raises(
                ports.PortRefused,
                match=rf"is in use by python[0-9.]* \(pid "
                rf"{other.pid}\)",
            ):
                ports.choose(path)
            done = clawlite("doctor", "--port", path, "--json", cwd=tmp_path, **told)
            other.stdin.close()
        (row,) = [row for row in json.loads(done.stdout) if row["check"] == "port"]
        assert (
            row["state"] == "wrong"
            and row["mend"] == f"kill {other.pid}"
            and str(board.process.pid) not in row["what"]
        )


def test_a_port_that_nothing_lists_has_the_same_id_from_every_folder(
    tmp_path, monkeypatch, machine, terminal
):
    (tmp_path / "link").symlink_to(terminal)
    monkeypatch.chdir(tmp_path)
    assert {ports.choose(name)["id"] for name in ("link", "./link", str(tmp_path / "link"))} == {
        str(tmp_path / "link")
    }
    assert ports.choose("link")["port"] == "link"


@needs_micropython
def test_a_port_that_is_locked_is_refused_although_nobody_is_seen(tmp_path, monkeypatch):
    with Sim() as board:
        held = open_port(board.path)
        with pytest.raises(ports.PortRefused, match="is in use"):
            open_port(board.path)
        monkeypatch.setattr(ports, "PROC", tmp_path / "nothing")
        assert [port["state"] for port in ports.ports()] == ["busy"]
        held.close()
        open_port(board.path).close()


def test_who_may_not_open_a_port_is_told_the_group_to_join(tmp_path, terminal):
    os.chmod(terminal, 0)
    done = Agent(without_root_rights(linux("console", "--port", terminal)), tmp_path)
    with done:
        assert done.wait() == 4
        assert done.errors().startswith(f"clawlite: {terminal}: permission denied - ")
        assert "join the group" in done.errors() or "belongs to root alone" in done.errors()


def test_a_virtual_board_that_is_just_ending_is_gone(tmp_path, machine, terminal):
    for port, count in ((terminal, 1), (str(tmp_path / "gone"), 0)):
        kept = registry.register(
            {
                "port": port,
                "link": None,
                "board": "sim",
                "id": "sim:x",
                "folder": None,
                "pid": os.getpid(),
            }
        )
        assert len(ports.ports()) == count
        registry.forget(kept)


def test_changes():
    one, two, busy = {"id": "1", "state": "free"}, {"id": "2"}, {"id": "1", "state": "busy"}
    assert ports.changes([], [one]) == [("added", one)]
    assert ports.changes([one, two], [busy]) == [("removed", two), ("changed", busy)]
    assert ports.changes([one], [one]) == []


@needs_micropython
def test_the_command_shows_virtual_boards(tmp_path):
    state = {"CLAWLITE_STATE": tmp_path / "state"}
    with Sim(link=str(tmp_path / "tty")) as board:
        shown = clawlite("ports", cwd=tmp_path, **state)
        assert shown.returncode == 0 and shown.stderr == ""
        (row,) = [line.split() for line in shown.stdout.splitlines() if line.startswith(board.path)]
        assert row == [board.path, "sim", "-", "free", f"sim:{tmp_path}/tty"]
        found = json.loads(clawlite("ports", "--json", cwd=tmp_path, **state).stdout)
        assert [port for port in found if port["virtual"]] == [
            {
                "port": board.path,
                "boards": ["sim"],
                "usb": None,
                "serial": None,
                "path": None,
                "state": "free",
                "holders": [],
                "id": f"sim:{tmp_path}/tty",
                "virtual": True,
            }
        ]
    found = clawlite("ports", "--json", cwd=tmp_path, **state)
    assert found.returncode == 0 and not [
        port for port in json.loads(found.stdout) if port["virtual"]
    ]


@needs_micropython
def test_watching_tells_each_change(tmp_path):
    with Agent(
        linux("ports", "--watch", "--json"),
        tmp_path,
        env={"CLAWLITE_STATE": tmp_path / "state"},
        # ignored in a job with "&"
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as watch:

        def next_of(board):
            # this machine may have ports of its own; a process that just begins holds this a moment
            event = watch.message()
            while event["port"] != board.path or event["event"] == "changed":
                event = watch.message()
            return event["event"], event["boards"]

        with Sim() as board:
            assert next_of(board) == ("added", ["sim"])
        assert next_of(board) == ("removed", ["sim"])
        watch.signal(signal.SIGINT)
        assert watch.wait() == 130 and watch.errors() == ""


def test_without_a_board_the_next_step_is_told(tmp_path, capsys):
    from clawlite.host.cli import ui

    ui.show_ports(ports.ports())
    said = capsys.readouterr()
    assert said.out == "" and said.err == (
        "No board is attached: plug one in with a USB cable "
        "that carries data, or start a virtual "
        "one: clawlite sim.\n"
    )
    ui.show(ports.ports(), True, ui.show_ports)
    assert capsys.readouterr().out == "[]\n"

"""The commands of a maker's computer on Windows: none needs a module or a name that Windows lacks.

What Windows is here stands in other_system.py; .ci/laptops.yml has the real one."""

import json
import os
import signal
import subprocess
import sys
import types
from pathlib import Path

import pytest
from agents import DEADLINE_S
from other_systems import System
from sims import needs_micropython, needs_mpy_cross

from clawlite.host.board_console import keyboard
from clawlite.host.serial import ports, serial_line
from clawlite.host.sim.sim import Sim
from clawlite.host.systems.bridge import Bridge

MCP_SERVER = Path(__file__).parents[2] / "helpers" / "mcp_server.py"


@pytest.fixture(scope="module")
def windows(tmp_path_factory):
    """Return Windows with the project "green", and its image, in the current folder."""
    system = System("windows", tmp_path_factory.mktemp("windows"))
    system.say("new", "green", "--offline")
    system.say("build", "green")
    return system


@pytest.fixture
def desk(windows):
    """Return Windows with a board at COM3, on which the agent of "green" runs.  The board starts
    anew for each test, because commands restart it.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLAWLITE_STATE", str(windows.folder / "linux"))
        with Sim(folder=str(windows.folder / "flash")) as board:
            system = System("windows", windows.folder, board.path)
            boot = windows.folder / "flash/boot.json"
            if not boot.exists():
                boot.write_text('{"window_ms": 100}')
                system.say("flash", "green", "--port", "COM3", "--board", "sim", "--yes")
            yield system


@pytest.mark.parametrize(
    "words, expected",
    [
        (["--version"], "clawlite 0."),
        (["--help"], "Make an agent"),
        (["check", "green"], "valid CKP (4 tools, 3 rules)"),
        (["inspect", "green/claw.cbor"], "ask-before-watering"),
        (["tools", "green"], "read-soil"),
        (["boards"], "Raspberry Pi Pico"),
        (["boards", "pico-w"], "RP2040 datasheet"),
        (["ports"], "No board is attached: plug one in"),
        (["ports", "--json"], "[]"),
        (["conformance"], "L3 SHOULD"),
        (["run", "--help"], "usage: clawlite run"),
        (["secrets", "list", "green"], "green has no secrets"),
        (["gateway", "devices"], ""),
        (["gateway", "token", "bed-3"], "bed-3"),
    ],
)
def test_a_command_without_a_board(windows, words, expected):
    assert expected in windows.say(*words)


@needs_mpy_cross
def test_an_image_and_the_files_of_a_board_are_made(windows):
    said = windows.say("build", "green", "--board", "pico-w")
    assert "on MicroPython: about" in said
    assert "Made" in windows.say("firmware", "made") or os.listdir(windows.folder / "made")


def test_a_project_is_written_with_plain_line_ends(windows):
    files = [path for path in (windows.folder / "green").rglob("*") if path.is_file()]
    assert len(files) > 5
    assert [path for path in files if b"\r\n" in path.read_bytes()] == []


@pytest.mark.parametrize(
    "words",
    [
        ["run", "green"],
        ["ask", "hello", "green"],
        ["serve", "green", "--stdio"],
        ["sim"],
        ["mcp", "serve", "green"],
        ["doctor"],
        ["doctor", "--port", "COM3"],
        ["swarm", "up"],
        ["service", "status"],
        ["channels", "dead"],
        ["trace", "last", "green"],
        ["audit", "verify", "green"],
    ],
)
def test_what_an_agent_needs_is_refused_in_one_sentence(windows, words):
    said = windows.say(*words, code=2)
    assert said.count("\n") == 1 and f"clawlite {words[0]} does not run on Windows" in said
    assert "WSL" in said and "Raspberry Pi" in said and "clawlite flash --port COM3" in said
    assert "clawlite gateway" in said
    found = json.loads(windows.run(*words, "--json").stdout)
    assert "does not run on Windows" in found["error"]["message"]


def test_a_port_that_is_not_there(windows):
    for words in (["console"], ["ask", "hello"], ["flash", "green", "--yes"], ["secrets", "list"]):
        said = windows.say(*words, "--port", "COM7", code=3)
        assert "COM7 does not exist - plug one in" in said and "Device Manager" in said


def test_secrets_are_kept_for_a_gateway(windows):
    windows.say("secrets", "set", "CLAW_KEY", "--agent", "red", input="gehe\u00efm\n")
    assert "CLAW_KEY" in windows.say("secrets", "list", "--agent", "red")
    code = """
from clawlite.linux.secrets.secrets import Renewal, resolve, stores
assert resolve("CLAW_KEY", stores("red")) == "gehe\\u00efm"
with Renewal("red", "CLAW_KEY") as one:
    print(one.take(), Renewal("red", "CLAW_KEY").take())
print(Renewal("red", "CLAW_KEY").take(True))"""
    assert windows.play(code).split() == ["True", "False", "True"]


@needs_micropython
@needs_mpy_cross
@pytest.mark.parametrize("name", ["COM3", "com3", "\\\\.\\COM3"])
def test_a_console_takes_the_name_in_any_form(desk, name):
    said = desk.say("console", "--port", name, input="/help\n")
    assert "/tools" in said


@needs_micropython
@needs_mpy_cross
def test_the_commands_with_a_board(desk):
    assert "pico" in desk.say("ports") and "COM3" in desk.say("ports")
    assert json.loads(desk.say("ports", "--json"))[0]["state"] == "free"
    assert "COM3 keeps the secret KEY" in desk.say(
        "secrets", "set", "KEY", "--port", "COM3", input="geheim\r\n"
    )
    assert "KEY" in desk.say("secrets", "list", "--port", "COM3")
    assert (desk.folder / "flash/state/secrets/KEY").read_bytes() == b"geheim"
    assert "keeps the network net" in desk.say("wifi", "net", "--port", "COM3", input="password1\n")
    assert "net" in desk.say("wifi", "--port", "COM3")
    assert "soil" in desk.say("ask", "is the soil dry?", "--port", "COM3", "--approve")
    assert "/tools" in desk.say(
        "run", "green", "--port", "COM3", "--board", "sim", "--yes", input="/help\n"
    )
    desk.run("trace", "--port", "COM3", "green").stderr.decode().index("audit")
    (desk.folder / "flash/log.jsonl").write_bytes(b"")
    desk.say("logs", "flash/log.jsonl", code=0)


@needs_micropython
@needs_mpy_cross
def test_the_tools_of_a_board_for_an_mcp_client(desk):
    asks = [
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            },
        },
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "board-info"}},
    ]
    with subprocess.Popen(
        desk.words("mcp", "serve", "green", "--port", "COM3"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=desk.folder,
        env=desk.env,
    ) as server:
        server.stdin.write(b"".join(json.dumps(ask).encode() + b"\n" for ask in asks))
        server.stdin.flush()
        answers = [json.loads(server.stdout.readline()) for _ in range(2)]
        server.stdin.close()
        assert server.wait(DEADLINE_S) == 0
    assert answers[0]["result"]["serverInfo"]["name"] == "green"
    assert answers[1]["id"] == 2 and "content" in answers[1]["result"]


@needs_micropython
@needs_mpy_cross
def test_a_gateway_serves_a_board_until_ctrl_c(desk):
    with subprocess.Popen(
        desk.words("gateway", "serve", "green", "--port", "COM3", "--proxy", "127.0.0.1:0"),
        stderr=subprocess.PIPE,
        cwd=desk.folder,
        env=desk.env,
    ) as gateway:
        said = b""
        while b"proxy for" not in said:
            line = gateway.stderr.readline()
            assert line, said
            said += line
        gateway.send_signal(signal.SIGINT)
        rest = gateway.stderr.read()
        assert gateway.wait(DEADLINE_S) == 130, rest
    assert b"Traceback" not in said + rest and b"serves COM3\n" in said


def test_a_gateway_starts_no_agent(windows):
    said = windows.say("gateway", "serve", "green", "--a2a", "127.0.0.1:0", code=2)
    assert "agents do not run on Windows" in said


def test_an_mcp_server_is_asked_for_its_tools(windows):
    code = """
from clawlite.host.mcp.listing import tools_of
print(len(tools_of(sys.argv[1:], {})[0]))"""
    words = [sys.executable, str(MCP_SERVER), str(windows.folder), "many"]
    assert windows.play(code, *words) == "500\n"


def test_a_gateway_talks_to_a_program_that_nothing_contains(windows):
    code = """
import asyncio
from clawlite.host.systems.loop import run
from clawlite.host.gateway.program import Programs
async def work():
    one = Programs(None, ["x"]).of(None, "x", sys.argv[1:], [])
    await one.open()
    one.write(b"abc")
    print(await one.read())
    await one.end()
    await one.settle()
    print(one._process.returncode is not None)
run(work())"""
    echo = "import os, sys\nos.write(1, os.read(0, 9))\nos.read(0, 9)"
    assert windows.play(code, sys.executable, "-c", echo).split() == ["b'abc'", "True"]


# -- paths, ports and keys


def _named(monkeypatch, *names):
    monkeypatch.setattr(sys, "platform", "win32")
    infos = [types.SimpleNamespace(device=name, vid=None) for name in names]
    monkeypatch.setattr(ports, "_comports", lambda: infos)
    monkeypatch.setattr(ports, "PROC", Path("/nowhere"))
    monkeypatch.setattr(ports, "_opens", lambda port: port != "COM9")


@pytest.mark.parametrize("name", ["COM1", "com1", "Com1", r"\\.\COM1", r"\\.\com1"])
def test_a_com_port_has_several_names(monkeypatch, name):
    _named(monkeypatch, "COM1", "COM12")
    assert ports.choose(name)["port"] == "COM1" and ports.is_there(name)
    assert ports.choose(r"\\.\COM12")["port"] == "COM12"


@pytest.mark.parametrize("name", ["COM2", "COM", "COM0", "COM1234", "COM1x", "xCOM1"])
def test_other_names_are_no_com_port(monkeypatch, name, tmp_path):
    _named(monkeypatch, "COM1")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ports.NoPort, match="does not exist"):
        ports.choose(name)


def test_a_file_of_that_name_is_no_port_and_none_elsewhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "COM2").touch()
    _named(monkeypatch, "COM1")
    assert not ports.is_there("COM2")
    monkeypatch.setattr(sys, "platform", "linux")
    assert ports.is_there("COM2")


def test_a_busy_com_port_says_so(monkeypatch):
    _named(monkeypatch, "COM9")
    with pytest.raises(ports.PortRefused, match="COM9 is in use") as refused:
        ports.choose("COM9")
    assert refused.value.exit_code == 4


class _Console:
    """msvcrt, with these codes of keys."""

    def __init__(self, codes):
        self.codes = list(codes)

    def getwch(self):
        return self.codes.pop(0)

    def kbhit(self):
        return bool(self.codes) and self.codes[0] != "end"


@pytest.mark.parametrize(
    "codes, typed",
    [
        ("a", "a"),
        ("\r", "\r"),
        ("\x03", "\x03"),
        ("\x1d", "\x1d"),
        ("\u00fc", "\u00fc"),
        (["\xe0", "end"], "\xe0"),
        ("\xe0H", "\x1b[A"),
        ("\x00P", "\x1b[B"),
        ("\xe0S", "\x1b[3~"),
        ("\xe0ss", "\x1b[1;5D"),
        ("\x00;x", "x"),  # F1 says nothing
        ("\ud83c\udf31", "\U0001f331"),
        (["\ud83c", "a"], "\ufffda"),
    ],
)
def test_keys_become_what_terminals_send(monkeypatch, codes, typed):
    monkeypatch.setitem(sys.modules, "msvcrt", _Console(codes))
    assert keyboard.Keys().read().decode() == typed


def test_a_bridge_carries_both_ways_and_ends_with_its_source():
    given, taken, ended = [b"one", b"two", b""], [], []
    bridge = Bridge(lambda: given.pop(0), taken.append, lambda: ended.append(1))
    bridge.socket.setblocking(True)
    bridge.socket.sendall(b"three")
    bridge.finish()
    came = b""
    while data := bridge.socket.recv(99):
        came += data
    bridge.close()
    assert came == b"onetwo" and b"".join(taken) == b"three" and ended == [1]


def test_a_port_without_a_descriptor_that_goes_away(monkeypatch):
    """A COM port that is pulled out is an ``OSError`` in the thread; the line says so."""

    class Port:
        in_waiting = 0

        def read(self, size):
            raise OSError("ClearCommError failed")

        def write(self, data):
            pass

        cancel_read = cancel_write = close = lambda self: None

    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(serial_line, "open_port", lambda path: Port())
    line = serial_line.SerialLine({"port": "COM3", "id": "usb:1"})
    line._port._bridge.socket.setblocking(True)
    with pytest.raises(serial_line.PortGone):
        line.read()
    assert line.fd is None


def test_the_stand_in_hides_what_it_says():
    """The other system is played at all: each of its modules and names is away."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        code = """
import importlib, os, signal, socket, select
for name in ("fcntl", "termios", "tty", "pty", "resource", "grp", "pwd"):
    try:
        importlib.import_module(name)
    except ImportError:
        continue
    raise SystemExit(name)
print(sys.platform, os.name, [n for n in ("O_NONBLOCK", "fork", "getuid") if hasattr(os, n)],
      hasattr(signal, "SIGHUP"), hasattr(select, "poll"), hasattr(socket, "AF_UNIX"))"""
        said = System("windows", Path(folder)).play(code)
    assert said == "win32 nt [] False False False\n"

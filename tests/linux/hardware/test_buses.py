"""Buses (clawlite/host/hardware/buses.py, clawlite/linux/hardware/buses.py): what is declared can
be reached, nothing else; layouts are the kernel's.
"""

import json
import os
import shutil
import subprocess

import pytest
from agents import UUID, Agent, clawlite, linux

from clawlite.core.base.errors import ClawError, SandboxDenied
from clawlite.core.buses.bustools import HANDLERS
from clawlite.core.image.pins import SimulatedPins
from clawlite.linux.hardware import bus_io
from clawlite.linux.hardware.buses import is_raspberry_pi, make_board

MANIFEST = """
claw: "0.3.0"
kind: Claw
metadata: { name: bused, version: "1.0.0" }
spec:
  identity: { inline: { personality: "x", autonomy: autonomous } }
  providers: [ { inline: { protocol: custom, endpoint: "builtin:replay", model: none, auth: { type: none } } } ]
  tools:
    - "claw://registry/clawlite/i2c-transfer@1.0.0"
    - "claw://registry/clawlite/spi-transfer@1.0.0"
    - "claw://registry/clawlite/one-wire-read@1.0.0"
  sandbox: { inline: { level: %s } }
  policies: [ { inline: { rules: [ { id: all, action: allow, scope: all } ] } } ]
"""  # noqa: E501
BUSES = """
[[buses]]
name = "sensors"
kind = "i2c"
bus = 1
addresses = [0x48, 0x76]
simulate = "10 20 30"

[[buses]]
name = "converter"
kind = "spi"
bus = 0
simulate = "0102"

[[buses]]
name = "pipes"
kind = "one-wire"
devices = ["28-0316a279d1ff"]
simulate = "21500"
"""
ROWS = [
    ["i", 0, 1, 0, 0, 100000, [0x48], [], [], None, None, 512, False],
    ["s", 1, 0, 1, 3, 1000000, [], [], [], None, None, 0, False],
    ["w", 2, 0, 0, 0, 0, [], ["28-0316a279d1ff"], [], None, None, 0, False],
]


def _tools(rows, is_pi: bool, simulated=None) -> dict:
    """Return {tool: function(arguments...)} of the built-in tools on these buses."""
    bank = SimulatedPins([], lambda: 0)
    board = make_board(bank, [rows, []], simulated, lambda: 0, is_pi)
    return {
        name: lambda *arguments, run=run: run(board, *arguments) for name, run in HANDLERS.items()
    }


def _project(folder, settings: str = BUSES, level: str = "none"):
    folder.mkdir(exist_ok=True)
    (folder / "claw.yaml").write_text(MANIFEST % level)
    (folder / "r.jsonl").write_text('{"user": null}\n{"say": "ok"}\n')
    (folder / "clawlite.toml").write_text('replay = "r.jsonl"\n' + settings)
    return folder


def _run(generator):
    """Return what *generator* returns."""
    try:
        while True:
            next(generator)
    except StopIteration as e:
        return e.value


@pytest.mark.parametrize("level", ["none", "process"])
@pytest.mark.skipif(is_raspberry_pi(), reason="its buses are real")
def test_what_is_declared_can_be_reached_and_nothing_else(tmp_path, level):
    folder = _project(tmp_path / "p", level=level)
    done = clawlite("build", cwd=folder)
    assert done.returncode == 0, done.stderr
    with Agent(linux("serve", folder / "claw.cbor", "--stdio"), tmp_path / "home") as agent:
        agent.initialize()

        def call(number: int, tool: str, **arguments):
            said = agent.call(
                "claw.tool.call",
                {
                    "name": tool,
                    "arguments": arguments,
                    "context": {"request_id": UUID % number, "identity": "bused"},
                },
                number,
            )
            return (
                json.loads(said["result"]["content"][0]["text"])
                if "result" in said
                else (said["error"]["code"], said["error"]["message"])
            )

        assert call(1, "i2c-transfer", bus="sensors", address=0x48, write=[1], read=2) == {
            "bus": "sensors",
            "address": 0x48,
            "data": [0x20, 0x30],
        }
        assert call(2, "i2c-transfer", bus="sensors", address=0x48, write=[2, 7, 8])["data"] == []
        assert call(3, "i2c-transfer", bus="sensors", address=0x48, write=[2], read=2)["data"] == [
            7,
            8,
        ]
        assert call(4, "i2c-transfer", bus="sensors", address=0x76, write=[2], read=1)["data"] == [
            0x30
        ], "another chip"
        assert call(5, "spi-transfer", bus="converter", data=[9, 9, 9])["data"] == [1, 2, 0]
        assert call(6, "one-wire-read", bus="pipes")["devices"] == ["28-0316a279d1ff"]
        assert (
            call(7, "one-wire-read", bus="pipes", device="28-0316a279d1ff")["temperature_mc"]
            == 21500
        )
        for number, (tool, arguments, words) in enumerate(
            [
                (
                    "i2c-transfer",
                    {"bus": "sensors", "address": 0x49, "read": 1},
                    "0x49 is not declared",
                ),
                ("i2c-transfer", {"bus": "converter", "address": 0x48, "read": 1}, "no i2c bus"),
                ("spi-transfer", {"bus": "nope", "data": [1]}, "no spi bus"),
                ("one-wire-read", {"bus": "pipes", "device": "28-000000000000"}, "is not declared"),
                ("one-wire-read", {"bus": "pipes", "device": "../../../etc"}, "is not declared"),
            ],
            8,
        ):
            code, message = call(number, tool, **arguments)
            assert code == -32010 and words in message, (tool, message)
        for number, (tool, arguments) in enumerate(
            [
                ("i2c-transfer", {"bus": "sensors", "address": 7, "read": 1}),
                ("i2c-transfer", {"bus": "sensors", "address": 120, "read": 1}),
                ("i2c-transfer", {"bus": "sensors", "address": 0x48, "read": 257}),
                ("i2c-transfer", {"bus": "sensors", "address": 0x48, "write": [256]}),
                ("spi-transfer", {"bus": "converter", "data": []}),
                ("spi-transfer", {"bus": "converter", "data": [0] * 4097}),
            ],
            20,
        ):
            assert call(number, tool, **arguments)[0] == -32602, (tool, arguments)
        assert len(call(30, "spi-transfer", bus="converter", data=[0] * 4096)["data"]) == 4096


@pytest.mark.parametrize(
    "settings, words",
    [
        ("", "i2c-transfer has no bus"),
        (BUSES.replace("addresses = [0x48, 0x76]\n", ""), "needs addresses"),
        (BUSES.replace("0x48", "0x78"), "119"),
        (BUSES.replace('name = "pipes"', 'name = "sensors"'), "is already there"),
        (BUSES.replace("28-0316a279d1ff", "28-../../x"), "an id as in"),
        (BUSES.replace('"10 20 30"', '"1"'), "in hexadecimal"),
        (BUSES.replace("21500", "2x"), "thousandths of a degree"),
        (BUSES.replace("bus = 0\n", "bus = 0\naddresses = [9]\n"), "has no addresses"),
        (
            BUSES + '[[buses]]\nname = "more"\nkind = "i2c"\naddresses = [0x50, 0x76]\n',
            '0x76 is an address of "sensors" already, which is the same bus',
        ),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, settings, words):
    done = clawlite("build", cwd=_project(tmp_path / "p", settings))
    assert done.returncode == 2 and words in done.stderr, done.stderr


def test_a_bus_that_is_not_there_is_refused_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr(bus_io, "W1", str(tmp_path / "none"))
    rows = [list(row) for row in ROWS]
    rows[0][2] = rows[1][2] = 255
    tools = _tools(rows, True)
    for run, path in (
        (tools["i2c-transfer"]("i", 0x48, [1]), "/dev/i2c-255"),
        (tools["spi-transfer"]("s", [1]), "/dev/spidev255.1"),
    ):
        with pytest.raises(SandboxDenied, match=path) as error:
            _run(run)
        assert error.value.data["missing"] == [path] and error.value.hint
    with pytest.raises(ClawError, match="nothing to write"):
        _run(tools["i2c-transfer"]("i", 0x48))


def test_what_simulates_is_real_on_a_raspberry_pi():
    row = ["i", 0, 255, 0, 0, 100000, [0x48], [], [], None, None, 512, True]
    memory = b"\x10".ljust(256, b"\0")
    simulated = [[], [[memory, [], 0, [], [], [], b""]], [["i", 0x48, 0, [], None]], [], [], [], []]
    here = _tools([row], False, simulated)["i2c-transfer"]
    assert _run(here("i", 0x48, [0], 1))["data"] == [0x10]
    with pytest.raises(SandboxDenied, match="/dev/i2c-255"):
        _run(_tools([row], True)["i2c-transfer"]("i", 0x48, [0], 1))


def test_a_thermometer_as_the_kernel_shows_it(tmp_path, monkeypatch):
    monkeypatch.setattr(bus_io, "W1", str(tmp_path))
    folder = tmp_path / "28-0316a279d1ff"
    folder.mkdir()
    row = list(ROWS[2])
    row[7] = ["28-0316a279d1ff", "28-000000000001"]
    port = bus_io.OneWire(row)
    for crc, value, wanted in (
        ("YES", "21562", 21562),
        ("YES", "-1250", -1250),
        ("NO", "21562", None),
    ):
        (folder / "w1_slave").write_text(
            "59 01 4b 46 7f ff 0c 10 a5 : crc=a5 %s\n59 01 4b 46 7f "
            "ff 0c 10 a5 t=%s\n" % (crc, value)
        )
        if wanted is None:
            with pytest.raises(ClawError, match="damaged"):
                port.millidegrees("28-0316a279d1ff")
        else:
            assert port.millidegrees("28-0316a279d1ff") == wanted
    assert port.present() == ["28-0316a279d1ff"]


def test_what_goes_to_the_kernel(monkeypatch):
    """The bytes of both requests, read back from memory as the kernel would."""
    import ctypes

    seen = []

    def ioctl(fd, request, argument):
        if request == bus_io.I2C_RDWR:
            at, count = bus_io.I2C_RDWR_DATA.unpack(argument)
            for number in range(count):
                address, flags, size, place = bus_io.I2C_MSG.unpack(
                    ctypes.string_at(at + number * bus_io.I2C_MSG.size, bus_io.I2C_MSG.size)
                )
                seen.append((address, flags, ctypes.string_at(place, size)))
                if flags:
                    ctypes.memmove(place, bytes(range(1, size + 1)), size)
        elif request == bus_io.SPI_MESSAGE:
            fields = bus_io.SPI_TRANSFER.unpack(argument)
            seen.append(fields[2:] + (ctypes.string_at(fields[0], fields[2]),))
            ctypes.memmove(
                fields[1], bytes(reversed(ctypes.string_at(fields[0], fields[2]))), fields[2]
            )
        else:
            seen.append((request, argument))

    monkeypatch.setattr(bus_io.fcntl, "ioctl", ioctl)
    monkeypatch.setattr(bus_io, "_open_bus", lambda path: os.open("/dev/null", os.O_RDWR))
    tools = _tools(ROWS, True)
    assert _run(tools["i2c-transfer"]("i", 0x48, [5, 6], 3))["data"] == [1, 2, 3]
    assert seen == [
        (bus_io.I2C_TIMEOUT, 25),
        (0x48, 0, b"\5\6"),
        (0x48, 1, b"\0\0\0"),
    ]
    seen.clear()
    assert _run(tools["spi-transfer"]("s", [1, 2, 3]))["data"] == [3, 2, 1]
    assert seen == [(bus_io.SPI_MODE, b"\3"), (3, 1000000, 0, 8, 0, 0, 0, 0, 0, b"\1\2\3")]


HEADERS = """#include <stdio.h>
#include <stddef.h>
#include <linux/i2c.h>
#include <linux/i2c-dev.h>
#include <linux/spi/spidev.h>
#define F(s, m) printf("%zu ", offsetof(struct s, m));
int main(void) {
    printf("%zu %zu %zu ", sizeof(struct i2c_msg), sizeof(struct i2c_rdwr_ioctl_data), sizeof(struct spi_ioc_transfer));
    printf("%u %u %u %u ", I2C_RDWR, I2C_M_RD, (unsigned) SPI_IOC_WR_MODE, (unsigned) SPI_IOC_MESSAGE(1));
    printf("%u ", I2C_TIMEOUT);
    F(i2c_msg, addr) F(i2c_msg, flags) F(i2c_msg, len) F(i2c_msg, buf) F(i2c_rdwr_ioctl_data, msgs) F(i2c_rdwr_ioctl_data, nmsgs)
    F(spi_ioc_transfer, tx_buf) F(spi_ioc_transfer, rx_buf) F(spi_ioc_transfer, len) F(spi_ioc_transfer, speed_hz)
    F(spi_ioc_transfer, delay_usecs) F(spi_ioc_transfer, bits_per_word) F(spi_ioc_transfer, cs_change)
    return 0; }
"""  # noqa: E501


@pytest.mark.skipif(
    not shutil.which("cc") or not os.path.exists("/usr/include/linux/spi/spidev.h"),
    reason="no C compiler, or no kernel headers",
)
def test_layouts_are_those_of_the_kernels_headers(tmp_path):
    (tmp_path / "t.c").write_text(HEADERS)
    subprocess.run(["cc", "-o", str(tmp_path / "t"), str(tmp_path / "t.c")], check=True)
    found = list(
        map(
            int,
            subprocess.run([str(tmp_path / "t")], capture_output=True, check=True).stdout.split(),
        )
    )
    pointer = bus_io.struct.calcsize("P")
    assert found == [
        bus_io.I2C_MSG.size,
        bus_io.I2C_RDWR_DATA.size,
        bus_io.SPI_TRANSFER.size,
        bus_io.I2C_RDWR,
        bus_io.I2C_M_RD,
        bus_io.SPI_MODE,
        bus_io.SPI_MESSAGE,
        bus_io.I2C_TIMEOUT,
        0,
        2,
        4,
        8 if pointer == 8 else 8,
        0,
        pointer,
        0,
        8,
        16,
        20,
        24,
        26,
        27,
    ]

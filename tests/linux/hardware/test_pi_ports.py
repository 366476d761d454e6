"""What a Raspberry Pi has beside I2C and SPI: a serial line, pixels, what the kernel's drivers
measure.  A pseudo terminal, files and a request to the kernel stand for the hardware.
"""

import os
import pty
import termios
import tty

import pytest

from clawlite.core.base.errors import ClawError, SandboxDenied
from clawlite.core.image.pins import SimulatedPins
from clawlite.linux.hardware import bus_io
from clawlite.linux.hardware.buses import make_board

_PLAIN = (0, 0, 0)  # number, device, mode


def board(*rows):
    """Return the ``board`` of a Raspberry Pi with the buses *rows*."""
    return make_board(SimulatedPins([], lambda: 0), [list(rows), []], None, lambda: 0, True)


def row(name: str, kind: int, speed_hz: int = 0, devices=(), most: int = 0) -> list:
    return [name, kind, *_PLAIN, speed_hz, [], list(devices), [], None, None, most, True]


@pytest.fixture
def line(monkeypatch):
    """A serial line: its other end, and the ``UARTBus`` at this one."""
    far, near = pty.openpty()
    tty.setraw(near)
    meter = board(row("meter", 3, 9600, most=512)).uart("meter")
    monkeypatch.setattr(meter.port, "_path", os.ttyname(near))
    yield far, meter
    if meter.port._fd >= 0:
        os.close(meter.port._fd)
    os.close(far)
    os.close(near)


def test_a_serial_line_gives_what_has_come_and_never_waits(line):
    far, meter = line
    assert meter.read(10) == b"" and meter.any() == 0 and meter.readline() is None
    assert termios.tcgetattr(meter.port._fd)[4:6] == [termios.B9600, termios.B9600]
    assert meter.write(b"\x00\xff\n") == 3 and os.read(far, 16) == b"\x00\xff\n"
    os.write(far, b"flow=5\r\nflow")
    assert meter.readline() == b"flow=5" and meter.readline() is None
    assert meter.any() == 4 and meter.read(2) == b"fl"
    os.write(far, b"=6\n")
    assert meter.readline() == b"ow=6"


def test_a_line_without_end_comes_in_parts_and_a_line_that_is_torn_off_is_told(line):
    far, meter = line
    assert meter.any() == 0  # what came before it was opened is dropped
    os.write(far, b"x" * 600)
    assert meter.readline() == b"x" * 512
    for call in (lambda: meter.write(b"y" * 513), lambda: meter.read(513)):
        with pytest.raises(ClawError, match="513"):
            call()
    os.close(meter.port._fd)
    meter.port._fd = -1
    meter.port._path = "/dev/no-such-line"
    with pytest.raises(ClawError, match="meter"):
        meter.read(1)


def test_a_line_with_a_speed_that_nobody_has(line):
    _, meter = line
    meter.port._baud = 9601
    with pytest.raises(ClawError, match="no line has 9601 baud"):
        meter.read(1)
    assert meter.port._fd == -1


def test_pixels_hang_at_the_data_line_of_the_spi_bus(monkeypatch):
    sent = []
    monkeypatch.setattr(bus_io.Pixels, "transfer", lambda self, data: sent.append(data))
    made = board(row("strip", 4, most=2))
    strip = made.neopixel("strip")
    strip[0] = (255, 0, 1)
    strip.write()
    assert sent[0][-90:] == bytes(90) and len(sent[0]) == 2 * 9 + 90
    bits = "".join(f"{byte:08b}" for byte in sent[0][:18])
    # green, red, blue; 110 is a one, 100 a zero
    pixels = ["1" if bits[at : at + 3] == "110" else "0" for at in range(0, 144, 3)]
    assert {bits[at : at + 3] for at in range(0, 144, 3)} == {"110", "100"}
    assert "".join(pixels) == "00000000" + "11111111" + "00000001" + "0" * 24
    made.off()
    assert "110" not in [f"{byte:08b}" for byte in sent[1]] and len(sent) == 2
    bits = "".join(f"{byte:08b}" for byte in sent[1][:18])
    assert {bits[at : at + 3] for at in range(0, 144, 3)} == {"100"}, "dark is the safe state"
    for wrong in (lambda: strip.__setitem__(2, (0, 0, 0)), lambda: strip.fill((256, 0, 0))):
        with pytest.raises(SandboxDenied, match="bus strip"):
            wrong()


def _write(folder, **files):
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)


def test_what_a_driver_of_the_kernel_measures(tmp_path, monkeypatch):
    monkeypatch.setattr(bus_io, "I2C_DEVICES", str(tmp_path))
    room = board(["room", 0, 1, 0, 0, 100000, [0x76, 0x48], [], [], None, None, 512, True]).i2c(
        "room"
    )
    assert room.kernel_values(0x76) == {}
    _write(
        tmp_path / "1-0076" / "iio:device0",
        name="bme280",
        in_temp_input="21480\n",
        in_humidityrelative_input="45123\n",
        in_pressure_input="100.653\n",
        in_other_raw="7",
        in_broken_input="no number",
    )
    _write(tmp_path / "1-0048" / "hwmon" / "hwmon2", name="lm75", temp1_input="-1250\n")
    assert room.kernel_values(0x76) == {
        "temp": 21480,
        "humidityrelative": 45123,
        "pressure": 100653,
    }
    assert room.kernel_values(0x48) == {"temp": -1250}
    with pytest.raises(SandboxDenied, match="0x50 is not declared"):
        room.kernel_values(0x50)


def test_a_dht22_as_the_kernel_reads_it(tmp_path, monkeypatch):
    monkeypatch.setattr(bus_io, "IIO", str(tmp_path))
    shed = board(row("shed", 5)).dht("shed")
    with pytest.raises(SandboxDenied, match="with the name dht11, found 0") as error:
        shed.measure()
    assert "dtoverlay=dht11" in error.value.hint
    _write(tmp_path / "iio:device0", name="mcp3008")
    first = tmp_path / "iio:device1"
    _write(first, name="dht11@4", in_temp_input="-4300", in_humidityrelative_input="61000")
    assert shed.measure() == (-4300, 61000)
    (first / "in_temp_input").unlink()  # the kernel answers EIO while the sensor is silent
    with pytest.raises(ClawError, match="bus shed: "):
        shed.measure()
    _write(tmp_path / "iio:device2", name="dht11@5")
    with pytest.raises(SandboxDenied, match="with the name dht11, found 2"):
        shed.measure()
    other = board(row("shed", 5, devices=["cellar"])).dht("shed")
    with pytest.raises(SandboxDenied, match="with the name cellar, found 0"):
        other.measure()

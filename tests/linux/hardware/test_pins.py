"""Real pins (clawlite/linux/hardware/gpio.py, linux/hardware/analog.py, pins.py) on a fake kernel
that reads what the kernel's header says, byte by byte.

No hardware is touched: there is none here, and this kernel has no gpio-sim.  A test compiles
linux/gpio.h and reads the same bytes with it."""

import ctypes
import errno
import os
import shutil
import subprocess
import types

import pytest

from clawlite.core.base.errors import ClawError, ImageMismatch, SandboxDenied
from clawlite.core.image.image import BUILTIN, GENERATOR, HAS_BOARD, MAKER
from clawlite.core.image.pins import (
    ADC,
    INPUT,
    OPEN_DRAIN,
    OUTPUT,
    PULL_DOWN,
    PULL_UP,
    PWM,
    SimulatedPins,
)
from clawlite.core.turns.builtin import HANDLERS
from clawlite.linux.hardware import analog, buses, gpio
from clawlite.linux.hardware.pins import PinHandlers, Pins, bank_of

U32, U64 = ctypes.c_uint32, ctypes.c_uint64


def struct(name: str, *fields):
    return type(name, (ctypes.Structure,), {"_fields_": list(fields)})


ChipInfo = struct(
    "ChipInfo", ("name", ctypes.c_char * 32), ("label", ctypes.c_char * 32), ("lines", U32)
)
Attribute = struct("Attribute", ("id", U32), ("padding", U32), ("value", U64), ("mask", U64))
Config = struct(
    "Config", ("flags", U64), ("num_attrs", U32), ("padding", U32 * 5), ("attrs", Attribute * 10)
)
Request = struct(
    "Request",
    ("offsets", U32 * 64),
    ("consumer", ctypes.c_char * 32),
    ("config", Config),
    ("num_lines", U32),
    ("event_buffer_size", U32),
    ("padding", U32 * 5),
    ("fd", ctypes.c_int32),
)
Info = struct(
    "Info",
    ("name", ctypes.c_char * 32),
    ("consumer", ctypes.c_char * 32),
    ("offset", U32),
    ("num_attrs", U32),
    ("flags", U64),
    ("attrs", (U64 * 2) * 10),
    ("padding", U32 * 4),
)
Values = struct("Values", ("bits", U64), ("mask", U64))


class FakeKernel(gpio.Kernel):
    """Chips by label; lines with levels and holders."""

    def __init__(self, tmp_path, *labels, closed=()):
        super().__init__(str(tmp_path))
        self.labels, self.closed = labels, closed
        self.open_files, self.levels, self.held, self.flags = {}, {}, {}, {}
        self.asked, self.next = [], 50
        self.broken, self.stuck = set(), {}
        self.slow = {}  # line -> reads that show the level before

    def chips(self):
        return ["/dev/gpiochip%d" % number for number in range(len(self.labels))]

    def open(self, path):
        if path in self.closed:
            raise PermissionError(errno.EACCES, "Permission denied")
        self.next += 1
        self.open_files[self.next] = ("chip", int(path[-1]))
        return self.next

    def close(self, fd):
        kind, number = self.open_files.pop(fd)
        if kind == "line":
            del self.held[number]

    def ioctl(self, fd, request, data):
        kind, number = self.open_files[fd]
        self.asked.append((request, bytes(data)))
        if request == gpio.CHIPINFO:
            info = ChipInfo.from_buffer(data)
            info.name, info.label, info.lines = b"gpiochip%d" % number, self.labels[number], 54
        elif request == gpio.GET_LINE:
            wanted = Request.from_buffer(data)
            assert (
                wanted.num_lines == 1
                and wanted.event_buffer_size == 0
                and not any(wanted.padding)
                and not any(wanted.config.padding)
            )
            line, flags = wanted.offsets[0], wanted.config.flags
            if line in self.held:
                raise OSError(errno.EBUSY, "Device or resource busy")
            if flags & gpio.OUTPUT:
                attribute = wanted.config.attrs[0]
                assert wanted.config.num_attrs == 1 and (attribute.id, attribute.mask) == (2, 1)
                self.levels[line] = attribute.value & 1
            else:
                assert wanted.config.num_attrs == 0
            self.held[line], self.flags[line] = wanted.consumer, flags
            self.next += 1
            self.open_files[self.next] = ("line", line)
            wanted.fd = self.next
        elif request == gpio.LINEINFO:
            info = Info.from_buffer(data)
            info.consumer = self.held[info.offset]
        else:
            values = Values.from_buffer(data)
            assert kind == "line" and values.mask == 1
            if request == gpio.GET_VALUES:
                late = self.slow.get(number, 0)
                self.slow[number] = max(0, late - 1)
                level = self.stuck.get(number, self.levels.get(number, 0))
                values.bits = 1 - level if late else level
            else:
                assert request == gpio.SET_VALUES and self.flags[number] & gpio.OUTPUT
                if number in self.broken:
                    raise OSError(errno.EIO, "Input/output error")
                self.levels[number] = values.bits


def row(name, number, kind, safe=0, hertz=1000):
    return [name, number, kind, 0, None, 0, 0, safe, hertz]


@pytest.fixture
def kernel(tmp_path):
    return FakeKernel(tmp_path, b"raspberrypi-exp-gpio", b"pinctrl-bcm2711")


def test_lines_are_as_they_are_declared(kernel):
    pins = Pins(
        [
            row("pump", 17, OUTPUT),
            row("door", 4, INPUT),
            row("up", 5, PULL_UP),
            row("down", 6, PULL_DOWN),
        ],
        kernel,
    )
    assert (
        kernel.flags == {17: 8, 4: 4, 5: 4 | 256, 6: 4 | 512}
        and kernel.held[17] == b"clawlite pump"
        and kernel.levels[17] == 0
    )
    pins.write("pump", 1)
    kernel.levels[4] = 1
    assert (pins.read("pump"), pins.read("door"), pins.read("up")) == (
        1,
        1,
        0,
    ) and not pins.simulated
    assert pins.describe() == [
        {"name": "pump", "pin": 17, "kind": "output", "value": 1},
        {"name": "door", "pin": 4, "kind": "input", "value": 1},
        {"name": "up", "pin": 5, "kind": "input", "value": 0},
        {"name": "down", "pin": 6, "kind": "input", "value": 0},
    ]
    for name, value, said in (
        ("door", 1, "pin door is input, expected output or pwm"),
        ("pump", 2, "pin pump: expected 0 to 1, got 2"),
        ("x", 1, "no pin is called x; declared: pump, door, up, down"),
    ):
        with pytest.raises(SandboxDenied, match=said):
            pins.write(name, value)
    pins.off()
    pins.release()
    assert kernel.levels[17] == 0 and not kernel.open_files and not kernel.held


def test_who_holds_a_line_is_told_and_nothing_stays_open(kernel):
    other = Pins([row("lamp", 18, OUTPUT)], kernel)
    with pytest.raises(
        ImageMismatch, match='pin pump: GPIO 18 is held by "clawlite lamp"'
    ) as caught:
        Pins([row("door", 4, INPUT), row("pump", 18, OUTPUT)], kernel)
    assert "stop that" in caught.value.hint and set(kernel.held) == {18}
    other.release()
    with pytest.raises(ImageMismatch, match="GPIO 0 to 53, expected 54"):
        Pins([row("pump", 54, OUTPUT)], kernel)
    Pins([row("pump", 53, OUTPUT)], kernel).release()
    assert not kernel.open_files


def test_a_machine_without_such_a_chip_or_the_right(tmp_path):
    with pytest.raises(ClawError, match="no chip of /dev/gpiochip"):
        Pins([row("pump", 17, OUTPUT)], FakeKernel(tmp_path, b"INT34C5:00"))
    with pytest.raises(ClawError, match="/dev/gpiochip0: this user may not open it") as caught:
        Pins(
            [row("pump", 17, OUTPUT)],
            FakeKernel(tmp_path, b"pinctrl-rp1", closed=("/dev/gpiochip0",)),
        )
    assert caught.value.hint.startswith("sudo usermod -aG gpio")
    for label in gpio.LABELS:
        Pins([row("pump", 17, OUTPUT)], FakeKernel(tmp_path, b"other", label)).release()


def tool(function, flags=HAS_BOARD, kind=MAKER, name="f"):
    return types.SimpleNamespace(handler=(kind, name), name=name, flags=flags)


def test_outputs_go_off_when_anything_ends_badly(kernel):
    """A failure, a timeout, a cancelled call, the end: and what the handler itself does at its
    end comes before the last of them.
    """

    def fails(board):
        board.write("pump", 1)
        raise ValueError("no")

    def runs(board):
        board.write("pump", 1)
        try:
            yield 10
            yield 10
        finally:
            board.write("pump", 1)

    pins = Pins([row("pump", 17, OUTPUT), row("lamp", 22, OUTPUT)], kernel)
    handlers = PinHandlers(HANDLERS, {"fails": fails, "runs": runs}, pins)
    pins.write("lamp", 1)
    assert handlers.start(1, tool(fails, name="fails"), {}, None, 0)[
        0
    ] is False and kernel.levels == {17: 0, 22: 0}
    assert (
        handlers.start(
            2,
            tool(None, kind=BUILTIN, name="digital-write"),
            {"pin": "pump", "value": True},
            None,
            0,
        )[0]
        is True
        and kernel.levels[17] == 1
    )
    for end in (lambda: handlers.poll(100), lambda: handlers.cancel(3), handlers.close):
        assert handlers.start(3, tool(runs, HAS_BOARD | GENERATOR, name="runs"), {}, 50, 0) is None
        handlers.poll(0)
        assert kernel.levels[17] == 1
        end()
        assert kernel.levels[17] == 0
    pins.write("pump", 1)
    assert kernel.levels[17] == 1, "an agent that gets over an ERROR has its pins"


def test_a_safe_state_that_is_high(kernel):
    """A relay that is on while its pin is low, and a line that is off while it is released."""

    def fails(board):
        board.write("relay", 0)
        board.write("line", 0)
        raise ValueError("no")

    pins = Pins([row("relay", 17, OUTPUT, 1), row("line", 22, OPEN_DRAIN, 1)], kernel)
    assert kernel.levels == {17: 1, 22: 1}, "from the moment when it is requested"
    assert pins.safe_level("relay") == 1
    handlers = PinHandlers(HANDLERS, {"fails": fails}, pins)
    assert not handlers.start(1, tool(fails, name="fails"), {}, None, 0)[0]
    assert kernel.levels == {17: 1, 22: 1}
    pins.write("relay", 0)
    handlers.close()
    assert kernel.levels == {17: 1, 22: 1}


def test_a_level_that_does_not_come_is_an_error(kernel):
    settled = row("pump", 17, OUTPUT)
    settled[6] = 5
    pins = Pins([settled, row("relay", 18, OUTPUT), row("line", 19, OPEN_DRAIN)], kernel)
    write = HANDLERS["digital-write"]
    assert kernel.flags[19] == gpio.OUTPUT | gpio.OPEN_DRAIN and kernel.levels[19] == 0
    kernel.stuck[17], kernel.stuck[18], kernel.stuck[19] = 0, 0, 0
    for name in ("pump", "relay"):
        with pytest.raises(ClawError, match=f"pin {name} was set to 1 and reads 0"):
            write(pins, name, True)
        assert write(pins, name, False) == {"pin": name, "value": False}
    assert write(pins, "line", True) == {"pin": "line", "value": False}
    kernel.stuck = {}
    kernel.slow[17] = 3
    assert write(pins, "pump", True) == {"pin": "pump", "value": True}
    kernel.slow[18] = 1
    with pytest.raises(ClawError, match="pin relay was set to 1"):
        write(pins, "relay", True)


def test_a_write_that_does_not_come_switches_all_outputs_off(kernel):
    pins = Pins([row("pump", 17, OUTPUT), row("fan", 18, OUTPUT)], kernel)
    handlers = PinHandlers(HANDLERS, {}, pins)
    write = tool(None, HAS_BOARD, BUILTIN, "digital-write")
    assert handlers.start(1, write, {"pin": "fan", "value": True}, None, 0)[0]
    kernel.stuck[17] = 0
    done, error = handlers.start(2, write, {"pin": "pump", "value": True}, None, 0)
    assert not done and "reads 0" in error.message
    assert kernel.levels == {17: 0, 18: 0}


def test_an_output_that_stays_on_is_said(kernel, capsys):
    pins = Pins([row("pump", 17, OUTPUT), row("lamp", 22, OUTPUT)], kernel)
    handlers = PinHandlers({}, {"fails": lambda: 1 / 0}, pins)
    pins.write("pump", 1)
    pins.write("lamp", 1)
    kernel.broken = {17}
    done, error = handlers.start(1, tool(None, 0, name="fails"), {}, None, 0)
    assert (
        not done
        and "could not be switched off: pump (Input/output error)" in error.message
        and "division" in error.message
    )
    assert kernel.levels == {17: 1, 22: 0}, "the others all the same"
    handlers.close()
    assert "could not be switched off: pump" in capsys.readouterr().err


def test_pins_are_simulated_where_this_is_no_pi(monkeypatch, kernel):
    rows = [row("pump", 17, OUTPUT)]
    monkeypatch.setattr(buses, "is_raspberry_pi", lambda: False)
    bank = bank_of(rows, lambda: 0)
    assert isinstance(bank, SimulatedPins)
    handlers = PinHandlers({}, {}, bank)
    bank.write("pump", 1)
    handlers.close()
    assert bank.read("pump") == 0
    monkeypatch.setattr(buses, "is_raspberry_pi", lambda: True)
    monkeypatch.setattr(gpio, "Kernel", lambda: kernel)
    assert not bank_of(rows, lambda: 0).simulated and kernel.held


# -- PWM and ADC: files


def controller(tmp_path, name="pwmchip0", device="fe20c000.pwm"):
    folder, real = tmp_path / "sys/class/pwm", tmp_path / "sys/devices/platform/soc" / device
    for channel in range(4):
        (real / "pwm" / name / ("pwm%d" % channel)).mkdir(parents=True)
        (real / "pwm" / name / ("pwm%d" % channel) / "period").write_text("0")
    folder.mkdir(parents=True, exist_ok=True)
    (real / "pwm" / name / "device").symlink_to(real)
    (folder / name).symlink_to(real / "pwm" / name)
    return str(folder / name)


@pytest.fixture
def put(monkeypatch):
    """Return [(path, value)]: what is written to files, and may be refused by ``put.refuse``."""

    class Written(list):
        refuse = ()

    written, refused = Written(), []
    written.refused = refused

    def one(path, value):
        for end, error, times in written.refuse:
            if path.endswith(end) and refused.count(end) < times:
                refused.append(end)
                raise OSError(error, os.strerror(error))
        written.append((path.rpartition("/sys/class/pwm/")[2], value))

    monkeypatch.setattr(analog, "_put", one)
    monkeypatch.setattr(analog, "_WAIT_S", 0)
    return written


def test_pwm(tmp_path, put):
    controller(tmp_path)
    pins = Pins([row("fan", 18, PWM)], FakeKernel(tmp_path, b"pinctrl-bcm2711"))
    assert put == [
        ("pwmchip0/export", 0),
        ("pwmchip0/pwm0/duty_cycle", 0),
        ("pwmchip0/pwm0/period", 1000000),
        ("pwmchip0/pwm0/duty_cycle", 0),
        ("pwmchip0/pwm0/enable", 1),
    ]
    del put[:]
    for value, duty in ((65535, 1000000), (32768, 500007), (0, 0)):
        pins.write("fan", value)
        assert put.pop() == ("pwmchip0/pwm0/duty_cycle", duty) and pins.read("fan") == value
    pins.write("fan", 9)
    del put[:]
    pins.off()
    assert put == [("pwmchip0/pwm0/duty_cycle", 0)]
    with pytest.raises(ImageMismatch, match="in use by another agent or pin"):
        analog.PWM("other", 12, 1000, 0, str(tmp_path))
    pins.release()
    put.refuse = (("export", errno.EBUSY, 1),)
    analog.PWM("after a kill", 12, 1000, 0, str(tmp_path)).close()


def test_pwm_that_is_safe_at_a_duty(tmp_path, put):
    """A driver whose signal is turned around, and a servo that goes to an angle."""
    controller(tmp_path)
    rows = [row("fan", 18, PWM, 65535), row("lid", 13, PWM, 4915, 50)]
    pins = Pins(rows, FakeKernel(tmp_path, b"pinctrl-bcm2711"))
    safe = [("pwmchip0/pwm0/duty_cycle", 1000000), ("pwmchip0/pwm1/duty_cycle", 1499961)]
    assert [one for one in put if one in safe] == safe
    assert ("pwmchip0/pwm1/period", 20000000) in put
    pins.write("fan", 0)
    pins.drive("lid", 50, 8192)
    del put[:]
    pins.off()
    assert put == safe
    pins.release()


@pytest.mark.parametrize(
    "device, number, channel",
    [
        ("3f20c000.pwm", 13, 1),
        ("1f00098000.pwm", 19, 3),
        ("1f00098000.pwm", 18, 2),
        ("fe20c000.pwm", 19, 1),
    ],
)
def test_the_channel_of_a_pin(tmp_path, put, device, number, channel):
    controller(tmp_path, "pwmchip0", "1f0009c000.pwm")  # the fan's
    controller(tmp_path, "pwmchip2", device)
    analog.PWM("fan", number, 1000, 0, str(tmp_path))
    assert put[0] == ("pwmchip2/export", channel)


def test_what_udev_gives_later_is_waited_for_and_what_fails_is_told(tmp_path, put):
    controller(tmp_path)
    put.refuse = (("period", errno.EACCES, 3), ("duty_cycle", errno.EINVAL, 1))
    analog.PWM("fan", 12, 1000, 0, str(tmp_path)).close()
    assert [value for path, value in put if path.endswith("enable")] == [1]
    del put[:]
    put.refuse = (("enable", errno.EIO, 9),)
    with pytest.raises(OSError):
        analog.PWM("fan", 12, 1000, 0, str(tmp_path))
    shutil.rmtree(tmp_path / "sys/class/pwm/pwmchip0/pwm1")
    for error, said in (
        (errno.EBUSY, "channel 1 of .*pwmchip0 is refused: Device or resource busy"),
        (errno.EACCES, "may not use it"),
    ):
        put.refuse = (("export", error, 9),)
        del put.refused[:]
        with pytest.raises(ClawError, match=said):
            analog.PWM("fan", 13, 1000, 0, str(tmp_path))


def test_pwm_that_is_not_there(tmp_path):
    with pytest.raises(ImageMismatch, match="no PWM controller is on") as caught:
        analog.PWM("fan", 18, 1000, 0, str(tmp_path))
    assert "dtoverlay=pwm-2chan" in caught.value.hint
    with pytest.raises(ImageMismatch, match="GPIO 17 has no PWM"):
        analog.PWM("fan", 17, 1000, 0, str(tmp_path))


def converter(tmp_path, number=0, **files):
    folder = tmp_path / ("sys/bus/iio/devices/iio:device%d" % number)
    (folder / "scan_elements").mkdir(parents=True)
    for name, text in files.items():
        (folder / name.replace("__", "/")).write_text(text + "\n")
    return folder


def test_adc(tmp_path):
    folder = converter(tmp_path, name="mcp3008", in_voltage0_raw="1023", in_voltage1_raw="0")
    pins = Pins([row("soil", 0, ADC), row("light", 1, ADC)], FakeKernel(tmp_path))
    assert (pins.read("soil"), pins.read("light")) == (65535, 0)
    (folder / "in_voltage0_raw").write_text("512\n")
    assert (
        pins.read("soil") == 512 * 65535 // 1023
        and HANDLERS["adc-read"](pins, "soil")["percent"] == 50
    )
    pins.release()


@pytest.mark.parametrize(
    "kind, raw, value",
    [
        ("le:u12/16>>4", "4095", 65535),
        ("be:s16/16>>0", "32767", 65535),
        ("le:s12/16>>4", "-3", 0),
        ("le:u12/16>>0", "5000", 65535),
    ],
)
def test_full_scale_is_what_the_driver_says(tmp_path, kind, raw, value):
    converter(tmp_path, name="any", in_voltage3_raw=raw, scan_elements__in_voltage3_type=kind)
    assert analog.ADC("soil", 3, str(tmp_path)).read() == value


def test_adc_that_is_not_there_or_not_known_or_not_one(tmp_path):
    with pytest.raises(ImageMismatch, match="no converter has a channel 0"):
        analog.ADC("soil", 0, str(tmp_path))
    converter(tmp_path, name="odd", in_voltage0_raw="1")
    with pytest.raises(ImageMismatch, match='full scale of the converter "odd" is not known'):
        analog.ADC("soil", 0, str(tmp_path))
    converter(tmp_path, 1, name="mcp3008", in_voltage0_raw="1")
    with pytest.raises(ImageMismatch, match="iio:device0, iio:device1, expected one"):
        analog.ADC("soil", 0, str(tmp_path))


# -- the kernel's header

READER = r"""#include <stdio.h>
#include <unistd.h>
#include <linux/gpio.h>
int main(void) {
    struct gpio_v2_line_request r; struct gpio_v2_line_info i; struct gpio_v2_line_values v; struct gpiochip_info c;
    struct gpio_v2_line_config f; struct gpio_v2_line_event e;
    if (read(0, &r, sizeof r) != sizeof r || read(0, &i, sizeof i) != sizeof i || read(0, &v, sizeof v) != sizeof v || read(0, &c, sizeof c) != sizeof c) return 1;
    if (read(0, &f, sizeof f) != sizeof f || read(0, &e, sizeof e) != sizeof e) return 1;
    printf("%u %u %u %u %u %u\n", (unsigned) GPIO_V2_LINE_SET_CONFIG_IOCTL, (unsigned) GPIO_GET_CHIPINFO_IOCTL, (unsigned) GPIO_V2_GET_LINEINFO_IOCTL, (unsigned) GPIO_V2_GET_LINE_IOCTL,
           (unsigned) GPIO_V2_LINE_GET_VALUES_IOCTL, (unsigned) GPIO_V2_LINE_SET_VALUES_IOCTL);
    printf("%d %d %d %d %d %d %d %d\n", (int) (GPIO_V2_LINE_FLAG_EDGE_RISING | GPIO_V2_LINE_FLAG_EDGE_FALLING), (int) GPIO_V2_LINE_EVENT_RISING_EDGE,
           (int) GPIO_V2_LINE_FLAG_OPEN_DRAIN, (int) GPIO_V2_LINE_FLAG_INPUT, (int) GPIO_V2_LINE_FLAG_OUTPUT, (int) GPIO_V2_LINE_FLAG_BIAS_PULL_UP,
           (int) GPIO_V2_LINE_FLAG_BIAS_PULL_DOWN, (int) GPIO_V2_LINE_ATTR_ID_OUTPUT_VALUES);
    printf("%u %s %llu %u %u %llu %llu %u %u %d\n", r.offsets[0], r.consumer, (unsigned long long) r.config.flags, r.config.num_attrs,
           r.config.attrs[0].attr.id, (unsigned long long) r.config.attrs[0].attr.values, (unsigned long long) r.config.attrs[0].mask, r.num_lines, r.event_buffer_size, r.fd);
    printf("%s %s %u %u %llu\n", i.name, i.consumer, i.offset, i.num_attrs, (unsigned long long) i.flags);
    printf("%llu %llu %s %s %u\n", (unsigned long long) v.bits, (unsigned long long) v.mask, c.name, c.label, c.lines);
    printf("%llu %u %llu %u\n", (unsigned long long) f.flags, f.num_attrs, (unsigned long long) e.timestamp_ns, e.id);
    return read(0, &r, 1) != 0; }
"""  # noqa: E501


@pytest.mark.skipif(
    not shutil.which("cc") or not os.path.exists("/usr/include/linux/gpio.h"),
    reason="no C compiler, or no kernel headers",
)
def test_what_is_packed_is_what_the_kernels_header_reads(tmp_path):
    (tmp_path / "t.c").write_text(READER)
    subprocess.run(["cc", "-o", str(tmp_path / "t"), str(tmp_path / "t.c")], check=True)
    packed = (
        gpio.REQUEST.pack(17, b"clawlite pump", gpio.OUTPUT, 1, gpio.OUTPUT_VALUES, 1, 1, 1, 0, -1)
        + gpio.INFO.pack(b"GPIO17", b"other", 17, 3, 9)
        + gpio.VALUES.pack(1, 5)
        + gpio.CHIP.pack(b"gpiochip0", b"pinctrl-rp1", 54)
        + gpio.CONFIG.pack(gpio.INPUT | gpio.EDGES, 0)
        + gpio.EVENT.pack(1234567890123, 2)
    )
    lines = (
        subprocess.run([str(tmp_path / "t")], input=packed, capture_output=True, check=True)
        .stdout.decode()
        .splitlines()
    )
    assert list(map(int, lines[0].split())) == [
        gpio.SET_CONFIG,
        gpio.CHIPINFO,
        gpio.LINEINFO,
        gpio.GET_LINE,
        gpio.GET_VALUES,
        gpio.SET_VALUES,
    ]
    assert list(map(int, lines[1].split())) == [
        gpio.EDGES,
        gpio.RISING,
        gpio.OPEN_DRAIN,
        gpio.INPUT,
        gpio.OUTPUT,
        gpio.PULL_UP,
        gpio.PULL_DOWN,
        gpio.OUTPUT_VALUES,
    ]
    assert lines[2:] == [
        "17 clawlite pump 8 1 2 1 1 1 0 -1",
        "GPIO17 other 17 3 9",
        "1 5 gpiochip0 pinctrl-rp1 54",
        "52 0 1234567890123 2",
    ]

"""``clawlite doctor`` names the sensors that the kernel drives, and those that do not answer."""

import os

from clawlite.linux.doctor.doctor_checks import NONE, OK, WRONG, Machine
from clawlite.linux.doctor.doctor_machine import sensors


def put(here, path: str, text: str = ""):
    full = here.path(path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "w") as file:
        file.write(text)


def pi(tmp_path):
    here = Machine(str(tmp_path))
    put(here, "/proc/device-tree/model", "Raspberry Pi 4 Model B Rev 1.4\0")
    return here


def test_only_a_pi_is_asked(tmp_path):
    assert sensors(Machine(str(tmp_path)))[0][1] == NONE
    assert sensors(pi(tmp_path))[0][:3] == ("sensors", NONE, "the kernel drives none")


def test_devices_are_found_by_name(tmp_path):
    here = pi(tmp_path)
    put(here, "/sys/bus/iio/devices/iio:device0/name", "bme280\n")
    put(here, "/sys/bus/iio/devices/iio:device1/name", "dht11@4\n")
    put(here, "/sys/bus/iio/devices/iio:device2/name", "1-0040\n")
    put(here, "/sys/bus/iio/devices/trigger0/name", "sysfstrig\n")
    put(here, "/sys/bus/i2c/devices/1-0040/name", "si7020\n")
    put(here, "/sys/bus/i2c/devices/1-0040/driver/uevent")
    put(here, "/sys/class/hwmon/hwmon0/name", "sht3x\n")
    put(here, "/sys/bus/w1/devices/28-0316a279d1ff/w1_slave")
    put(here, "/sys/bus/w1/devices/w1_bus_master1/uevent")
    ((name, state, what, mend),) = sensors(here)
    assert (name, state, mend) == ("sensors", OK, "")
    assert what == (
        "the kernel drives bme280 (/sys/bus/iio/devices/iio:device0), dht11 "
        "(/sys/bus/iio/devices/iio:device1), si7020 (/sys/bus/iio/devices/iio:device2), sht3x "
        "(/sys/class/hwmon/hwmon0), 28-0316a279d1ff (/sys/bus/w1/devices)"
    )


def test_a_chip_that_does_not_answer_is_wrong(tmp_path):
    here = pi(tmp_path)
    put(here, "/sys/bus/i2c/devices/1-0076/name", "bme280\n")
    put(here, "/sys/bus/i2c/devices/i2c-1/name", "bcm2835 (i2c@7e804000)\n")
    ((_, state, what, mend),) = sensors(here)
    assert (state, what) == (WRONG, "bme280 at address 0x76 of I2C bus 1 does not answer")
    assert mend.endswith("i2cdetect -y 1")
    put(here, "/sys/bus/i2c/devices/1-0076/driver/uevent")
    assert sensors(here)[0][1] == NONE


def test_a_bus_without_a_sensor_is_wrong(tmp_path):
    here = pi(tmp_path)
    put(here, "/sys/bus/w1/devices/w1_bus_master1/uevent")
    ((_, state, what, _),) = sensors(here)
    assert (state, what) == (WRONG, "the 1-Wire bus is on, and no sensor on it answers")


def test_no_name_of_a_device_drives_the_terminal(tmp_path):
    here = pi(tmp_path)
    for n in range(30):
        put(here, f"/sys/class/hwmon/hwmon{n}/name", "x" if n else "")
    ((_, _, what, _),) = sensors(here)
    assert "? (/sys/class/hwmon/hwmon0)" in what and what.endswith("and 10 more")

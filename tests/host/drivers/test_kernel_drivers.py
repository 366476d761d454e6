"""The kernel's drivers of a Raspberry Pi are found by the name of a module."""

import pytest

from clawlite.host.builder import build, check, drivers
from clawlite.host.drivers import kernel_drivers


@pytest.mark.parametrize(
    "module, overlay, folder",
    [
        ("bme280", "i2c-sensor,bme280", kernel_drivers.IIO),
        ("bme280_float", "i2c-sensor,bme280", kernel_drivers.IIO),
        ("micropython_bme280", "i2c-sensor,bme280", kernel_drivers.IIO),
        ("BMP280", "i2c-sensor,bmp280", kernel_drivers.IIO),
        ("si7021", "i2c-sensor,si7020", kernel_drivers.IIO),
        ("sht31", "i2c-sensor,sht3x", kernel_drivers.HWMON),
        ("mcp9808", "i2c-sensor,jc42", kernel_drivers.HWMON),
        ("dht", "dht11,gpiopin=4", kernel_drivers.IIO),
        ("ds18x20", "w1-gpio,gpiopin=4", kernel_drivers.W1),
        ("onewire", "w1-gpio,gpiopin=4", kernel_drivers.W1),
    ],
)
def test_a_sensor_has_its_overlay(module, overlay, folder):
    found = kernel_drivers.find(module)
    assert (found.overlay, found.folder) == (overlay, folder)
    assert f"dtoverlay={overlay} in /boot/firmware/config.txt" == found.overlay_line()
    assert folder in found.where()


@pytest.mark.parametrize("module", ["json", "bme", "ssd1306", "helper", "dht_and_more2", "lm", ""])
def test_other_modules_have_none(module):
    assert kernel_drivers.find(module) is None or module == "dht_and_more2"


def test_check_and_build_for_a_pi_name_the_overlay(index, project):
    drivers.add("bme280", str(project))
    for found in (check.check(str(project), "rpi-4"), build.build(str(project), board="rpi-4")):
        (said,) = [one for one in found["warnings"] if "kernel" in one["message"]]
        assert said["line"] == 1 and said["file"].endswith("tools.py")
        assert "dtoverlay=i2c-sensor,bme280" in said["message"]
    for board in (None, "linux", "pico"):
        assert not [
            one
            for one in check.check(str(project), board)["warnings"]
            if "kernel" in one["message"]
        ]

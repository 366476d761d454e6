"""Sensors that the kernel of a Raspberry Pi has a driver for, and what turns it on.

An overlay in config.txt names the chip; the kernel then measures, checks and converts, and gives
the values as files: an IIO or hwmon device whose ``name`` is that of the chip, or a folder for each
sensor on the 1-Wire bus.  Sources: boot/overlays/README and i2c-sensor-common.dtsi of Raspberry
Pi's kernel 6.12; drivers/iio, drivers/hwmon and drivers/w1 of Linux."""

import re
from typing import NamedTuple

CONFIG = "/boot/firmware/config.txt"
IIO, HWMON, W1 = "/sys/bus/iio/devices", "/sys/class/hwmon", "/sys/bus/w1/devices"
_IIO_OF_I2C = (
    "bh1750 bme280 bme680 bmp085 bmp180 bmp280 bmp380 ccs811 hdc100x htu21 max30102 mpu6050 "
    "mpu9250 ms5637 ms5803 ms5805 ms5837 ms8607 sgp30 si7020 sps30 tsl4531 veml6070"
)
_HWMON_OF_I2C = "adt7410 aht10 ds1621 jc42 lm75 sht3x sht4x tmp102"
# chips of the same family, by the name that makers know
_SAME = {
    "aht20": "aht10",
    "bmp388": "bmp380",
    "bmp390": "bmp380",
    "hdc1000": "hdc100x",
    "hdc1008": "hdc100x",
    "hdc1080": "hdc100x",
    "htu21d": "htu21",
    "mcp9808": "jc42",
    "si7021": "si7020",
    "sht30": "sht3x",
    "sht31": "sht3x",
    "sht35": "sht3x",
    "sht40": "sht4x",
    "sht41": "sht4x",
    "sht45": "sht4x",
}
_DHT = "dht dht11 dht21 dht22 am2301 am2302"
_ONE_WIRE = "ds18x20 ds18b20 ds18s20 onewire"
_WORD = re.compile(r"[a-z]+[0-9]+[a-z0-9]*|[a-z]+")


class KernelDriver(NamedTuple):
    """The kernel's driver for a sensor.

    chip     as the kernel calls it;  overlay  the value of ``dtoverlay``
    folder   where its devices are;  ``IIO``, ``HWMON`` or ``W1``
    """

    chip: str
    overlay: str
    folder: str

    def overlay_line(self) -> str:
        return f"dtoverlay={self.overlay} in {CONFIG}"

    def where(self) -> str:
        """Return where its values are then."""
        if self.folder == W1:
            return f"each sensor is then a folder of {W1}, 28-..., and its temperature a file there"
        return f'the device in {self.folder} whose name is "{self.chip}" then has the values'


def _table() -> dict:
    found = {}
    for chips, folder in ((_IIO_OF_I2C, IIO), (_HWMON_OF_I2C, HWMON)):
        for chip in chips.split():
            found[chip] = KernelDriver(chip, f"i2c-sensor,{chip}", folder)
    for other, chip in _SAME.items():
        found[other] = found[chip]
    for name in _DHT.split():
        found[name] = KernelDriver("dht11", "dht11,gpiopin=4", IIO)
    for name in _ONE_WIRE.split():
        found[name] = KernelDriver("w1", "w1-gpio,gpiopin=4", W1)
    return found


KNOWN = _table()


def find(module: str) -> KernelDriver | None:
    """Return the kernel's driver for the sensor that the module is named after: ``bme280``,
    ``bme280_float``, ``micropython_bme280``.
    """
    words = _WORD.findall(module.lower())
    return next((KNOWN[word] for word in words if word in KNOWN), None)

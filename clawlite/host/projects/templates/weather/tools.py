"""A weather station: a BME280 at the I2C bus "room" of clawlite.toml.

``board`` is handed in, with the pins and buses of clawlite.toml, by name.
"""

import struct

ADDRESS = 0x76


def read_weather(board) -> dict:
    """Measure temperature in degrees Celsius, humidity in percent and pressure in hectopascals."""
    room = board.i2c("room")
    known = room.kernel_values(ADDRESS)     # on a Raspberry Pi with dtoverlay=i2c-sensor,bme280
    if "temp" in known:
        return _weather(known["temp"] // 10, known["humidityrelative"], known["pressure"])
    if room.readfrom_mem(ADDRESS, 0xD0, 1) != b"\x60":
        raise ValueError("what answers at 0x76 is no BME280: another chip, or two at one address")
    room.writeto_mem(ADDRESS, 0xF2, b"\x01")        # humidity once
    room.writeto_mem(ADDRESS, 0xF4, b"\x25")        # temperature and pressure once, then sleep
    for wait_ms in (10, 5, 5, 10, 20):
        yield wait_ms                               # milliseconds; the agent stays awake meanwhile
        if not room.readfrom_mem(ADDRESS, 0xF3, 1)[0] & 8:
            break
    else:
        raise ValueError("the BME280 did not end its measurement")
    first, second = room.readfrom_mem(ADDRESS, 0x88, 26), room.readfrom_mem(ADDRESS, 0xE1, 7)
    return _weather(*_compensate(room.readfrom_mem(ADDRESS, 0xF7, 8), first, second))


def _weather(centidegrees: int, milli_percent: int, pascals: int) -> dict:
    """What the three numbers mean; what no weather can be is an error."""
    if not -4000 <= centidegrees <= 8500 or not 30000 <= pascals <= 110000:
        raise ValueError("the BME280 answered nonsense: %d, %d" % (centidegrees, pascals))
    return {
        "temperature": (centidegrees + 5) // 10 / 10,
        "humidity": (milli_percent + 500) // 1000,
        "pressure": (pascals + 50) // 100,
    }


def _compensate(raw, first, second) -> tuple:
    """Hundredths of a degree, thousandths of a percent, pascals, from what the chip measured and its
    calibration: the integer formulas of the datasheet (BST-BME280-DS002, 4.2.3)."""
    p_high, p_low, t_high, t_low, raw_humidity = struct.unpack(">HBHBH", raw)
    if t_high == 0x8000 and not t_low:
        raise ValueError("the BME280 has measured nothing")
    t1, t2, t3 = struct.unpack("<Hhh", first[:6])
    part = (t_high << 4 | t_low >> 4) // 8 - t1 * 2
    fine = part * t2 // 2048 + (part // 2) * (part // 2) // 4096 * t3 // 16384
    percent = _humidity(raw_humidity, fine, first[25], *struct.unpack("<hBbBbb", second))
    pascals = _pressure(p_high << 4 | p_low >> 4, fine, *struct.unpack("<Hhhhhhhhh", first[6:24]))
    return (fine * 5 + 128) // 256, percent, pascals


def _pressure(raw: int, fine: int, p1, p2, p3, p4, p5, p6, p7, p8, p9) -> int:
    """Pascals."""
    one = fine - 128000
    two = one * one * p6 + (one * p5 << 17) + (p4 << 35)
    one = (one * one * p3 >> 8) + (one * p2 << 12)
    one = ((1 << 47) + one) * p1 >> 33
    if not one:
        raise ValueError("the BME280's calibration is empty")
    value = ((1048576 - raw << 31) - two) * 3125 // one
    one = p9 * (value >> 13) * (value >> 13) >> 25
    two = p8 * value >> 19
    return ((value + one + two >> 8) + (p7 << 4) + 128) >> 8


def _humidity(raw: int, fine: int, h1, h2, h3, high, middle, low, h6) -> int:
    """Thousandths of a percent."""
    h4, h5 = high * 16 + (middle & 15), low * 16 + (middle >> 4)
    value = fine - 76800
    left = (raw << 14) - (h4 << 20) - h5 * value + 16384 >> 15
    right = (value * h6 >> 10) * ((value * h3 >> 11) + 32768) >> 10
    value = left * ((right + 2097152) * h2 + 8192 >> 14)
    value -= ((value >> 15) * (value >> 15) >> 7) * h1 >> 4
    return max(0, min(419430400, value)) * 125 >> 19

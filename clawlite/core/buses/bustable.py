"""The image's sections BUSES and SIMULATED: what of ``[[buses]]`` and ``[[pins]]`` code may use.

BUSES = [buses, waves]

    bus   [name, kind, number, device, mode, speed, addresses, devices, pins, registers, writable,
          most, simulated]; host/hardware/buses.py says what each kind has of it
    wave  [pin, lowest Hz, highest Hz, shortest us, longest us, degrees], of a servo (degrees > 0)
          or of a tone

SIMULATED holds the devices of machines that have no such buses (simulator.py).  It is a section of
its own so that a board with real buses never reads it.
"""

ABILITY = "buses"
BUSES, SIMULATED = 29, 30
I2C, SPI, ONE_WIRE, UART, PIXELS, DHT = range(6)
KINDS = ("i2c", "spi", "one-wire", "uart", "neopixel", "dht")
_REGISTERS = [None, [(256, 256)]]
BUS_SHAPE = (  # core/image/header.py
    str,
    6,
    256,
    256,
    4,
    1 << 30,
    [128],
    [str],
    [256],
    _REGISTERS,
    _REGISTERS,
    1025,
    bool,
)
SHAPE = ([BUS_SHAPE], [(str, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 361)])
(
    BUS_NAME,
    BUS_KIND,
    BUS_NUMBER,
    BUS_DEVICE,
    BUS_MODE,
    BUS_SPEED,
    BUS_ADDRESSES,
    BUS_DEVICES,
    BUS_PINS,
    BUS_REGISTERS,
    BUS_WRITABLE,
    BUS_MOST,
    BUS_SIMULATED,
) = range(13)

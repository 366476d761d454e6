"""The modules that a board's firmware has are those of the released one: the libraries that its
manifest freezes, and for the unix port what the program itself says.
"""

import subprocess

import pico_stack
import pytest
from sims import needs_micropython

from clawlite.host.drivers.names import LIBRARIES, is_builtin
from clawlite.host.firmware import foreign_names

# MicroPython 1.28: ports/rp2/boards/manifest.py; RPI_PICO_W/manifest.py, which adds
# bundle-networking and aioble; ports/esp32/boards/manifest.py with its folder modules
RP2 = "onewire ds18x20 dht neopixel asyncio uasyncio"
NETWORKING = "mip ntptime ssl requests webrepl webrepl_setup urequests"
ESP32 = f"{RP2} {NETWORKING} aioespnow umqtt upysh apa106 espnow flashbdev inisetup"
FROZEN = {
    "rp2-rpi-pico": RP2,
    "rp2-rpi-pico2": RP2,
    "rp2-rpi-pico-w": f"{RP2} {NETWORKING} aioble",
    "rp2-rpi-pico2-w": f"{RP2} {NETWORKING} aioble",
    "esp32-esp32-generic": ESP32,
    "esp32-esp32-generic-c3": ESP32,
    "esp32-esp32-generic-c6": ESP32,
    "esp32-esp32-generic-s3": ESP32,
    "unix": "asyncio uasyncio argparse mip requests ssl",
}


@pytest.mark.parametrize("api", foreign_names.stub_packages())
def test_a_board_has_what_its_manifest_freezes_and_no_other_library(api):
    able, frozen = foreign_names.importable(api), set(FROZEN[api].split())
    assert frozen <= able
    assert able & LIBRARIES == frozen & LIBRARIES
    assert all(not is_builtin(name) for name in LIBRARIES)


def test_boards_without_a_network_have_no_sockets():
    for api in ("rp2-rpi-pico", "rp2-rpi-pico2"):
        assert not {"socket", "ssl", "network", "bluetooth"} & foreign_names.importable(api)


@needs_micropython
def test_the_unix_port_imports_all_that_it_is_said_to_have_and_has_nothing_else():
    names = sorted(foreign_names.importable("unix"))
    script = (
        "import sys\n"
        "for name in sys.argv[1:]:\n"
        "    try: __import__(name)\n"
        "    except ImportError: print(name)\n"
    )
    words = [pico_stack.micropython(), pico_stack.script(script), *names]
    done = subprocess.run(
        words, capture_output=True, text=True, env={"MICROPYPATH": ".frozen"}, timeout=60
    )
    assert (done.stdout, done.stderr) == ("", "")
    done = subprocess.run(
        [words[0], pico_stack.script("help('modules')")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    listed = {word.partition("/")[0] for word in done.stdout.partition("Plus")[0].split()}
    assert {name for name in listed if name[0] != "_"} <= set(names)

"""What words32.mjs runs on MicroPython: an agent on the real shell of boards, whose output goes
nowhere.
"""

from main import open_device
from unload import drop

HELLO = b"\x1e~0000h5cbfd1ae025f3a9c21000000001000a0\n"  # of a host (docs/line.md)


class Sink:
    def write(self, data):
        pass

    def flush(self):
        pass


def stand_ins():
    """Load what stands for a board's own modules, where it does."""
    try:
        import machine  # noqa: F401
        import network  # the unix port has a machine, and no network  # noqa: F401
    except ImportError:
        pass


def ready(path: str):
    """Return the device of the image at *path*, READY; its radio, where it has one, finds no
    network.
    """
    device = open_device(path, path.rpartition("/")[0], False)
    device.stdio.output = Sink()
    device.agent.start(device.now_ms())
    device.console.greet()
    device.settle()
    try:
        import network  # noqa: F401
        from wifi import Wifi

        networks = path.rpartition("/")[0] + "/wifi.json"
        with open(networks, "w") as file:
            file.write(
                '{"networks": [{"ssid": "Garden", "password": "rose-rose"}], "country": "DE"}'
            )
        device.wifi = Wifi(networks, device)
        device.wifi.tick(device.now_ms())
    except ImportError:
        pass
    drop()
    return device


def turn(device, path: str):
    """Say what the file ``says`` beside the image has, "qwertz" without one, or begin a skill; a
    provider that is away is tried until its attempts are used up."""
    if device.uplink:
        device.stdio.feed(HELLO)
        device.stdio.next_event()
        device.heed(device.stdio.line)
        device.stdio.pump()
    now = device.now_ms()
    try:
        with open(path.rpartition("/")[0] + "/says") as file:
            text = file.read()
    except OSError:
        text = "/greet" if device.agent.image.row("skill__greet") else "qwertz"
    device.console.line(text, now)
    device.settle()
    for _ in range(30):
        now += 60000
        if device.net:
            device.net.tick()
        device.agent.tick(now)
        device.settle()
    drop()

"""What words32.mjs runs on MicroPython: an agent on the real shell of boards, whose output goes
nowhere.
"""

from main import open_device
from unload import drop

HELLO = b"\x1e~0000h5cbfd1ae025f3a9c21000000001000a0\n"  # of a host (docs/line.md)


class Sink:
    """Counts the texts that have ``wanted``."""

    wanted = b""
    count = 0

    def write(self, data):
        self.count += self.wanted in bytes(data)

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
        device.beside += (device.wifi,)
        device.wifi.tick(device.now_ms())
    except ImportError:
        pass
    drop()
    return device


def turn(device, path: str):
    """Say what the file ``says`` beside the image has, a line after the other, "qwertz" without
    one, or begin a skill; a provider that is away is tried until its attempts are used up.  Yields
    between the steps.  Raises ``ValueError`` when the text in the file ``hears`` did not come."""
    if device.uplink:
        device.stdio.feed(HELLO)
        device.stdio.next_event()
        device.check_line(device.stdio.line)
        device.stdio.pump()
    now, folder = device.now_ms(), path.rpartition("/")[0]
    lines = [_text(folder + "/says")]
    if not lines[0]:
        lines = ["/greet" if device.agent.image.row("skill__greet") else "qwertz"]
    device.stdio.output.wanted = _text(folder + "/hears").encode()
    while lines:
        text, _, more = lines.pop().partition("\n")
        device.console.line(text, now)
        device.settle()
        yield
        for _ in range(3 if more else 30):
            now += 2000 if more else 60000
            if device.net:
                device.net.tick()
            device.agent.tick(now)
            if device.rules:
                device.rules.tick(now)
            device.settle()
            yield
        if more:
            lines.append(more)
    if not device.stdio.output.count:
        raise ValueError("it did not say what it should")
    drop()


def _text(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""

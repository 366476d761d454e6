"""What words32.mjs runs on MicroPython: an agent on the real shell of boards, whose output goes nowhere."""
from main import open_device
from memory import drop

HELLO = b"\x1e~0000h5cbfd1ae025f3a9c21000000001000a0\n"        # of a host (docs/line.md)


class Sink:

    def write(self, data):
        pass

    def flush(self):
        pass


def ready(path: str):
    """Return the device of the image at *path*, READY."""
    device = open_device(path, path.rpartition("/")[0], False)
    device.stdio.output = Sink()
    device.agent.start(device.now_ms())
    device.console.greet()
    device.settle()
    drop()
    return device


def turn(device):
    """Say something that no rule knows; a provider that is away is tried until its attempts are used up."""
    if device.uplink:
        device.take(HELLO, False)
        device.stdio.pump()
    now = device.now_ms()
    device.console.line("qwertz", now)
    device.settle()
    for _ in range(30):
        now += 60000
        if device.net:
            device.net.tick()
        device.agent.tick(now)
        device.settle()
    drop()

"""How a board begins: its agent, what was under way at its last end, the console, the watchdog, Wi-Fi.  Loaded once, and dropped."""
import os


def begin(device):
    """Start the agent, and what is beside it."""
    device.agent.start(device.now_ms())
    if "calls.journal" in os.listdir(device.folder):
        from journal import recover
        recover(device.agent, device.folder, device.epoch_s(), device.console is not None)
    if device.console:
        device.console.greet()
    device.settle()
    if device.uplink:
        device.uplink.call()
    if device.watchdog_ms:
        from machine import WDT
        device.watchdog = WDT(timeout=device.watchdog_ms)
    _join(device)


def _join(device):
    """Begin to join a network, where there is one to join and something to join it with."""
    path = device.folder.rpartition("/")[0] + "/wifi.json"
    try:
        os.stat(path)
        from wifi import Wifi
    except (OSError, ImportError):
        return
    device.wifi = Wifi(path, device)
    device.agent.conditions = (device.wifi.about,)

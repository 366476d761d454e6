"""The start of a board: its agent, recovery of what was in progress when it last ended, the
console, the watchdog, Wi-Fi.  Loaded once, and dropped.
"""

import os
import sys


def start(device):
    """Start the agent, and everything beside it."""
    if device.guarding:
        # the secrets are read here: deep in a turn the stack would not be enough
        device.guarding.guard.clean("")
    device.agent.start(device.now_ms())
    if "calls.journal" in os.listdir(device.folder):
        from call_journal import recover

        recover(device.agent, device.folder, device.epoch_s(), device.console is not None)
    if device.console:
        device.console.greet()
    device.settle()
    if device.uplink:
        device.uplink.call()
    _join(device)
    # the slow steps are done: the start of the agent, and that of the radio
    if device.watchdog_ms:
        _arm(device)


def _arm(device):
    """Start the watchdog, or say why there is none."""
    try:
        from machine import WDT

        device.watchdog = WDT(timeout=device.watchdog_ms)
    except (ImportError, OSError, ValueError) as e:
        sys.stderr.write(
            "clawlite: there is no watchdog of %d ms here: %s\n" % (device.watchdog_ms, e)
        )


def _join(device):
    """Begin to join a network, when one is configured and the board has a radio."""
    path = device.folder.rpartition("/")[0] + "/wifi.json"
    try:
        os.stat(path)
        from wifi import Wifi
    except (OSError, ImportError):
        return
    device.wifi = Wifi(path, device)
    device.beside += (device.wifi,)
    device.wifi.tick(device.now_ms())
    device.conditions += (device.wifi.about,)

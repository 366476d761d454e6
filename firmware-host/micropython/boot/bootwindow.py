"""The code that runs first on a board: the boot window and safe mode.  Then ``_choose_slot``
decides between slots A and B and opens the image of one.  slots.py keeps the boot record that it
needs.

1. No image can lock its maker out.  For a short time after each reset none of its code has run, and
   Ctrl-C ends the start.  Nor does it start while the file ``safe-mode`` exists or the safe-mode
   pin is low.  Then the REPL is free.
2. An image that cannot be opened is given up at once; an image that was not READY in three boots is
   given up after them.  Then the other slot boots, if it can be opened, and a line says so.
   Without another slot, the only one is tried at each reset.
3. At each boot the files of a slot are compared with its list (slots.py) before any of them is
   imported: MicroPython may hang for ever in a ``.mpy`` file that was cut short.  The image's
   digest is checked at its first boot, and with ``device.key`` its signature at each; its CRC at
   each boot.  The window passes while the files of the first slot are compared: none of its code
   runs, and the board is ready earlier.
4. The settings are in ``/boot.json``, which a person writes and our code never changes:
   {"window_ms": 1000, "safe_pin": 15, "watchdog_ms": 8000}.  With ``watchdog_ms`` the watchdog is
   armed after the window, with the longest time that all boards support, because loading takes
   seconds; the agent sets its own time when it runs (startup.py).  During the window there is none.

``import main`` below is runtime/main.py, which a board has under that name.
"""

import gc
import os
import sys
import time
from binascii import crc32

import slots

_TRIALS = 3
_WINDOW_MS = 1000
_MIN_WINDOW_MS, _MAX_WINDOW_MS = 100, 60000
_MAX_PIN = 255
_MIN_DOG_MS, _MAX_DOG_MS = 1000, 8388  # rp2 supports no more
_MAX_SETTINGS = 512  # bytes
_MIN_KEY = 16
_MAX_LIST = 8192  # bytes
_PIECE = 512  # bytes that are read at once


def start(root: str = ""):
    """Return (function that runs an agent, the agent), or None when the REPL is next.  Never raises
    ``Exception``.

    root  as in slots.py; the agent's files are in its folder ``state``
    """
    # The running functions keep references to these modules until they return; then the modules
    # are freed.
    for name in ("bootwindow", "slots"):
        sys.modules.pop(name, None)
    window_ms, pin, watchdog_ms = _settings(root)
    slot, trials, checked = slots.read(root)
    try:
        if _is_held(root, pin):
            return None
        _say("Ctrl-C within %d ms keeps the agent from starting" % window_ms)
        begun = time.ticks_ms()
        order = _order(root, slot, trials)
        why = _damage(root + "/claw-" + order[0], lambda: None) if order else ""
        if _waits(root, pin, begun, window_ms):
            opened = _choose_slot(root, order, why, (slot, trials, checked), _arm(watchdog_ms))
            if opened and watchdog_ms:
                import main

                _, device = opened
                main.watch(device, watchdog_ms)
            return opened
    except KeyboardInterrupt:
        _say("interrupted, the agent does not start")
    return None


def _order(root: str, slot: str, trials: int) -> list:
    """Return the names of the slots that have an image, in the order in which they are tried."""
    order = [
        name
        for name in (slot, "b" if slot == "a" else "a")
        if _has(root + "/claw-" + name + ".cbor")
    ]
    if len(order) > 1 and trials >= _TRIALS:
        order.reverse()
    return order


def _choose_slot(root: str, order: list, why: str, record: tuple, feed):
    """Return the result of ``start`` for the first slot that can be opened.

    order   of ``_order``;  why: what is wrong with the files of the first of them
    record  what ``slots.read`` returned
    feed    function() that feeds the watchdog
    """
    slot, trials, checked = record
    key = _key(root)
    if not order:
        _say("there is no image here - write one with: clawlite flash")
    elif len(order) > 1 and trials >= _TRIALS:
        _say("slot %s was not ready in %d boots: slot %s is taken" % (slot, trials, order[0]))
    for name in order:
        stays = name == slot
        if not stays:
            _say("slot %s boots now" % name)
        _record(root, name, trials + 1 if stays else 1, checked if stays else 0)
        try:
            if name != order[0]:
                why = _damage(root + "/claw-" + name, feed)
            opened, why = (None, why) if why else _prepare(root, name, key, not (stays and checked))
            feed()
        except KeyboardInterrupt:
            _record(root, slot, trials, checked)
            raise
        if opened:
            return opened
        _say("slot %s: %s" % (name, why))
    if order:
        _record(root, slot, trials, checked)
        _say("no image boots - write one with: clawlite flash")
    return None


def _prepare(root: str, slot: str, key, is_new: bool) -> tuple:
    """Return ((run, agent), "") for an image that can be opened; else (None, reason), with all its
    modules dropped from memory.
    """
    before = set(sys.modules)
    folder = root + "/claw-" + slot
    sys.path.insert(0, folder)
    try:
        if not _has(root + "/state"):
            os.mkdir(root + "/state")
        if key is not None and len(key) < _MIN_KEY:
            return None, "device.key holds %d bytes, expected %d or more" % (len(key), _MIN_KEY)
        import main

        device, why = main.attempt(
            folder + ".cbor", folder, False, root + "/state", is_new or key is not None, key
        )
        if device:
            return (main.run, device), ""
    except Exception as e:
        why = "%s: %s" % (type(e).__name__, e)
    sys.path.remove(folder)
    for name in list(sys.modules):
        if name not in before:
            del sys.modules[name]
    gc.collect()
    return None, why


def _damage(folder: str, feed) -> str:
    """Return what is wrong with the files of a slot, according to its list; "" when nothing is, or
    when the slot has no list.
    """
    try:
        with open(folder + "/files", "rb") as file:
            lines = file.read(_MAX_LIST).split(b"\n")
    except OSError:
        return ""
    listed = b"".join([line + b"\n" for line in lines[:-2]])
    if len(lines) < 2 or lines[-2:] != [b"files %d %08x" % (len(listed), crc32(listed)), b""]:
        return "its list of files is damaged"
    buffer = bytearray(_PIECE)
    for line in lines[:-2]:
        try:
            name, size, wanted = str(line, "utf-8").split(" ")
            size, wanted = int(size), int(wanted, 16)
        except ValueError:  # its CRC is right, so somebody wrote it so
            return "its list of files is damaged"
        try:
            with open(folder + "/" + name, "rb") as file:
                found, crc = _sum(file, buffer)
        except OSError:
            return name + " is missing"
        if found != size:
            return "%s is damaged: it has %d bytes, expected %d" % (name, found, size)
        if crc != wanted:
            return name + " is damaged"
        feed()
    return ""


def _sum(file, buffer: bytearray) -> tuple:
    """Return (bytes, CRC-32) of a file."""
    view, size, crc = memoryview(buffer), 0, 0
    count = file.readinto(buffer)
    while count:
        size += count
        crc = crc32(view[:count], crc)
        count = file.readinto(buffer)
    return size, crc


def _arm(watchdog_ms: int):
    """Arm the watchdog, if one is wanted; return the function that feeds it, or one that does
    nothing.
    """
    if watchdog_ms:
        try:
            from machine import WDT

            return WDT(timeout=_MAX_DOG_MS).feed
        except (ImportError, OSError, ValueError) as e:
            _say("there is no watchdog while the agent is loaded: %s" % e)
    return lambda: None


def _settings(root: str) -> tuple:
    """Return (window in ms, safe-mode pin or None, watchdog in ms or 0).  A wrong setting in the
    file is reported and ignored.
    """
    import json

    window_ms, pin, watchdog_ms = _WINDOW_MS, None, 0
    try:
        with open(root + "/boot.json") as file:
            found = json.loads(file.read(_MAX_SETTINGS))
        if found.get("window_ms", window_ms) in range(_MIN_WINDOW_MS, _MAX_WINDOW_MS + 1):
            window_ms = found.get("window_ms", window_ms)
        else:
            _say("boot.json: window_ms: expected %d to %d" % (_MIN_WINDOW_MS, _MAX_WINDOW_MS))
        if "watchdog_ms" in found:
            watchdog_ms = _watchdog(found["watchdog_ms"])
        if "safe_pin" in found and found["safe_pin"] not in range(_MAX_PIN + 1):
            _say("boot.json: safe_pin: expected the number of a pin")
        elif "safe_pin" in found:
            from machine import Pin

            pin = Pin(found["safe_pin"], Pin.IN, Pin.PULL_UP)
    except OSError:
        pass
    except ImportError:
        _say("boot.json: safe_pin: there are no pins here; the file safe-mode does the same")
    except Exception as e:
        _say("boot.json: %s" % e)
    return window_ms, pin, watchdog_ms


def _watchdog(wanted) -> int:
    """Return the ms of the watchdog that the settings ask for, 0 for none."""
    try:
        from machine import WDT
    except ImportError:
        WDT = None
    if wanted not in range(_MIN_DOG_MS, _MAX_DOG_MS + 1):
        _say("boot.json: watchdog_ms: expected %d to %d" % (_MIN_DOG_MS, _MAX_DOG_MS))
    elif WDT:
        return wanted
    else:
        _say("boot.json: watchdog_ms: there is no watchdog here")
    return 0


def _is_held(root: str, pin) -> bool:
    if _has(root + "/safe-mode"):
        _say("safe mode, the agent does not start: the file safe-mode is there")
    elif pin is not None and not pin.value():
        _say("safe mode, the agent does not start: its pin is low")
    else:
        return False
    return True


def _waits(root: str, pin, begun: int, window_ms: int) -> bool:
    """Wait until *window_ms* after *begun* (``ticks_ms``); return False when a safe-mode pin is set
    up and safe mode is requested in that time.
    """
    while True:
        if pin is not None and _is_held(root, pin):
            return False
        if time.ticks_diff(time.ticks_ms(), begun) >= window_ms:
            return True
        time.sleep_ms(10)


def _key(root: str):
    """Return the device key, or None when there is none; b"" when it cannot be read, so that no
    image is accepted.
    """
    if not _has(root + "/device.key"):
        return None
    try:
        with open(root + "/device.key", "rb") as file:
            return file.read(4096).strip()
    except OSError:
        return b""


def _record(root: str, slot: str, trials: int, checked: int):
    try:
        slots.write(root, slot, trials, checked)
    except OSError as e:  # the board boots even when its flash is full
        _say("the boot record cannot be written: %s" % e)


def _has(path: str) -> bool:
    try:
        os.stat(path)
        return True
    except OSError:
        return False


def _say(text: str):
    sys.stdout.write("clawlite: %s\n" % text)

"""Serial ports: which are attached, to which board each leads, and which program has it open; and
the choice of the port that a command uses.

1. Listing opens no port, because opening one resets some boards.  Only where there is no /proc to
   show which program has a port open, the port is opened to find out, with the two lines low that
   reset a board.
2. A command never chooses between two boards.  A port without USB ids (a Pi's own UART) is used
   only when it is named.
3. ``id`` stays the same when a board is unplugged and comes back as another device.  Boards that
   have one serial number between them are told apart by their sockets.
4. On Windows a port is a name, such as COM3, in letters of any case, or \\\\.\\COM3: no file is
   there to be looked at.
"""

import functools
import os
import re
import sys
import time
from collections import Counter
from pathlib import Path

from clawlite.core.base.errors import ClawError
from clawlite.host.base.open_files import holders
from clawlite.host.boards import boards
from clawlite.host.sim import registry

USB_DEVICES = Path("/sys/bus/usb/devices")
PROC = Path("/proc/self/fd")
# Boards that wait for firmware.
BOOTLOADERS = {"2E8A:0003": "RP2040", "2E8A:000F": "RP2350", "303A:0002": "ESP32-S2"}
# Serial numbers that a maker gave to each chip alike: they tell no board from another.
_NO_SERIALS = {"10C4": {"0001"}}  # CP210x of Silicon Labs, unless somebody has set another
SHARED = "gateway:"  # begins the id of a console that a gateway shares
_GATEWAY = "clawlite gateway"  # as a holder of a port is named
_WATCH_S = 0.5
_COM = re.compile(r"(?:\\\\\.\\)?(COM[1-9][0-9]{0,2})\Z", re.IGNORECASE)


class NoPort(ClawError):
    """No board, or more than one.  ``data`` lists the candidates."""

    exit_code = 3


class PortRefused(ClawError):
    """The port is busy, or this person may not open it."""

    exit_code = 4


def ports() -> list[dict]:
    """Return every serial port, USB bootloader and virtual board, by port.

    Keys: port (None: a bootloader without one), boards (names of the profiles with these USB ids),
    usb ("VID:PID" or None), serial, path (of its USB socket, or None), state ("free", "busy",
    "bootloader", "not permitted"), holders ([{pid, name}]), id, virtual."""
    known = profiles()
    # not one that is just ending
    found = [_virtual(facts) for facts in registry.running() if os.path.exists(facts["port"])]
    found += [_describe(info, known) for info in _comports()]
    seen = {(port["usb"], port["serial"]) for port in found}
    found += [
        port for port in _bootloaders(USB_DEVICES) if (port["usb"], port["serial"]) not in seen
    ]
    _tell_twins_apart(found)
    _see_state(found)
    return sorted(found, key=lambda port: (port["port"] is None, port["port"] or "", port["id"]))


def _tell_twins_apart(found: list):
    """Give each board its socket as part of its id, where several have the same."""
    twins = Counter(entry["id"] for entry in found)
    for entry in found:
        if twins[entry["id"]] > 1:
            entry["id"] += f" at {entry['path'] or entry['port']}"


def _is_called(entry: dict, id: str) -> bool:
    """Return whether *id* is that of *entry*, or was before a board like it came or went."""
    base = entry["id"]
    at = f" at {entry['path'] or entry['port']}"
    if entry["usb"] and entry["serial"]:
        base = base.removesuffix(at)
    return id in (entry["id"], base, base + at)


@functools.cache
def profiles() -> dict[str, list[str]]:
    """Return {"VID:PID": names of the boards with it}, out of the profiles' field ``usb``."""
    found = {}
    for profile in boards.load_all():
        for ids in profile.usb or ():
            found.setdefault(ids, []).append(profile.name)
    return found


def choose(port: str = None) -> dict:
    """Return the port that a command means: the one named (a device, a link to one, or an id), or
    the only one that there is.

    Raises ``NoPort``; ``PortRefused`` when somebody else has it open or it may not be opened.
    """
    found = ports()
    if port:
        return _may_open(_find_named(port, found))
    candidates = [
        entry
        for entry in found
        if entry["port"] and (entry["usb"] or entry["virtual"]) and entry["state"] != "bootloader"
    ]
    if len(candidates) == 1:
        return _may_open(candidates[0])
    if candidates:
        raise NoPort(
            "more than one board is attached: "
            + ", ".join(describe(entry) for entry in candidates),
            "choose one with --port",
            {"ports": candidates},
        )
    raise NoPort("no board is attached", next_step(found), {"ports": []})


def _find_named(port: str, found: list) -> dict:
    named = _place(port)
    meant = [
        entry
        for entry in found
        if entry["port"] and (_is_called(entry, port) or named == _place(entry["port"]))
    ]
    if len(meant) > 1:
        raise NoPort(
            f"more than one board has the id {port}: "
            + ", ".join(f"{entry['port']} ({entry['id']})" for entry in meant),
            "choose one of these with --port",
            {"ports": meant},
        )
    for entry in meant:
        is_path = not _com(port) and os.path.exists(port)
        return {**entry, "port": port if is_path else entry["port"]}
    if port.startswith(SHARED):
        shared = [entry["id"] for entry in found if entry["id"].startswith(SHARED)]
        raise NoPort(
            f"no gateway here shares the console {port}"
            + (f": there is {', '.join(shared)}" if shared else ""),
            "a gateway shares the consoles of boards at its serial ports; one that comes over "
            "Wi-Fi has none there: name the serial port of that board",
        )
    if not is_there(port):
        raise NoPort(f"{port} does not exist", next_step(found))
    entry = _entry(port, [], None, None, os.path.abspath(port))
    _see_state([entry])
    return entry


def find(id: str):
    """Return the path of the port with this ``id``, or None while it is away, or while more than
    one board may be meant.
    """
    if not _com(id) and os.path.exists(id):
        return id
    meant = [
        entry["port"]
        for entry in ports()
        if _is_called(entry, id) and entry["state"] != "bootloader"
    ]
    return meant[0] if len(meant) == 1 else None


def _com(port: str) -> str:
    """Return *port* as Windows calls it, "" for what is no such name or on another system."""
    match = _COM.match(port) if sys.platform == "win32" else None
    return match[1].upper() if match else ""


def _place(port: str) -> str:
    return _com(port) or os.path.realpath(port)


def is_there(path: str) -> bool:
    """Return whether there is a port *path*."""
    if _com(path):
        return any(_com(info.device) == _com(path) for info in _comports())
    return os.path.exists(path)


def _is_allowed(path: str) -> bool:
    """Return whether this person may open *path*, as far as that is seen from outside."""
    return bool(_com(path)) or os.access(path, os.R_OK | os.W_OK)


def next_step(found: list) -> str:
    """Return the hint for a person whose board was not found."""
    if any(entry["state"] == "bootloader" for entry in found):
        return "the board in its bootloader needs MicroPython first"
    step = "plug one in with a USB cable that carries data"
    if sys.platform == "win32":
        return step + ", and see in the Device Manager whether it has a COM port"
    return step + ", or start a virtual one: clawlite sim"


def describe(entry: dict) -> str:
    """Return one port in a few words."""
    names = " or ".join(entry["boards"]) or "unknown board"
    return f"{entry['port']} ({names}{', ' + entry['serial'] if entry['serial'] else ''})"


def changes(before: list, now: list) -> list[tuple[str, dict]]:
    """Return (what happened, port) for each difference: "added", "removed" or "changed"."""
    old, new = ({entry["id"]: entry for entry in entries} for entries in (before, now))
    found = [("removed", entry) for id, entry in old.items() if id not in new]
    found += [("added", entry) for id, entry in new.items() if id not in old]
    return found + [
        ("changed", entry) for id, entry in new.items() if id in old and old[id] != entry
    ]


def watch():
    """Yield (what happened, port), first of what is there, then of each change, without end."""
    before = []
    while True:
        now = ports()
        yield from changes(before, now)
        before = now
        time.sleep(_WATCH_S)


def port_error(path: str) -> PortRefused:
    """Return the error for the port *path*, which could not be opened: who holds it, the group to
    join, or that it is none.
    """
    if not _is_allowed(path):
        return PortRefused(f"{path}: permission denied", _group(path))
    if not _com(path) and _is_other(path):
        return PortRefused(f"{path} is no serial port", "see those that are there: clawlite ports")
    owners = holders([path])[path]
    held = ", ".join(f"{name} (pid {pid})" for pid, name in owners)
    if any(name == _GATEWAY for _, name in owners):
        return PortRefused(
            f"{path}: a gateway serves this board: {held}",
            "end the gateway, do this, and start it again; the board's console: clawlite ports "
            "shows the one that it shares",
        )
    return PortRefused(
        f"{path} is in use{' by ' + held if held else ''}",
        "end that program, or name another port with --port",
    )


def _is_other(path: str) -> bool:
    """Return whether *path* is no terminal, as ports are; False where it cannot be opened."""
    if os.path.isdir(path):
        return True
    flags = os.O_RDWR
    for name in ("O_NOCTTY", "O_NONBLOCK", "O_CLOEXEC"):
        flags |= getattr(os, name, 0)
    try:
        fd = os.open(path, flags)
    except OSError:
        return False
    try:
        return not os.isatty(fd)
    finally:
        os.close(fd)


def _group(path: str) -> str:
    try:
        import grp

        name = grp.getgrgid(os.stat(path).st_gid).gr_name
    except (ImportError, KeyError, OSError):
        return "ask who administers this machine for the right to open it"
    if name == "root":
        return "it belongs to root alone: a udev rule gives it to a group"
    return f"join the group {name}, then log in again: sudo usermod -a -G {name} $USER"


def _may_open(entry: dict) -> dict:
    if entry["state"] in ("busy", "not permitted"):
        raise port_error(entry["port"])
    return entry


def _entry(port, names, usb, serial, id, owner=None, path=None) -> dict:
    """Return the record of a port.

    owner  the process of a virtual board, which has it open by design
    path   of the USB socket
    """
    return {
        "port": port,
        "boards": names,
        "usb": usb,
        "serial": serial,
        "path": path,
        "state": "bootloader" if usb in BOOTLOADERS else "free",
        "holders": [owner] if owner else [],
        "id": id,
        "virtual": owner is not None,
    }


def _see_state(found: list):
    """Fill in who has the ports open, and what their state is."""
    held = holders([entry["port"] for entry in found if entry["port"]])
    for entry in found:
        path, owners = entry["port"], entry["holders"]
        entry["holders"] = [
            {"pid": pid, "name": name} for pid, name in held.get(path, ()) if pid not in owners
        ]
        if path and entry["state"] == "free":
            if not _is_allowed(path):
                entry["state"] = "not permitted"
            elif entry["holders"] or not PROC.is_dir() and not _opens(path):
                entry["state"] = "busy"


def _opens(port: str) -> bool:
    import serial

    try:
        one = serial.Serial(None, exclusive=True)
        one.dtr = one.rts = False
        one.port = port
        one.open()
        one.close()
    except (OSError, ValueError):  # SerialException is an OSError
        return False
    return True


def _virtual(facts: dict) -> dict:
    return _entry(facts["port"], [facts["board"]], None, None, facts["id"], facts["pid"])


def _comports() -> list:
    from serial.tools import list_ports

    return list_ports.comports()


def _describe(info, known: dict) -> dict:
    """Return the record of *info*, as pyserial's list_ports gives it."""
    if info.vid is None:
        return _entry(info.device, [], None, None, info.device)
    usb = f"{info.vid:04X}:{info.pid:04X}"
    # boards without a serial number of their own are told apart by the socket that they are plugged
    # into
    own = info.serial_number
    if not own or own in _NO_SERIALS.get(usb[:4], ()):
        where = f"at {info.location or info.device}"
    else:
        where = own
    names = known.get(usb, [])
    return _entry(info.device, names, usb, own, f"usb:{usb}:{where}", path=info.location)


def _bootloaders(folder: Path) -> list[dict]:
    """Return the boards in a bootloader that has no serial port (a drive, on RP2), where Linux
    tells of USB devices.
    """

    def read(device, name):
        try:
            return (device / name).read_text(encoding="utf-8").strip()
        except OSError:
            return None

    found = []
    for device in sorted(folder.glob("*")) if folder.is_dir() else ():
        usb = f"{read(device, 'idVendor')}:{read(device, 'idProduct')}".upper()
        if usb in BOOTLOADERS:
            serial = read(device, "serial")
            found.append(
                _entry(
                    None,
                    [],
                    usb,
                    serial,
                    f"usb:{usb}:{serial or 'at ' + device.name}",
                    path=device.name,
                )
            )
    return found

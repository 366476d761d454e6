"""Serial ports: whether this user may open them, which process has them open, and lock files
that a program left behind when it died.
"""

import os

from clawlite.linux.doctor.doctor_checks import NONE, NOTE, OK, WRONG

PREFIXES = ("ttyACM", "ttyUSB")
LOCKS = ("/run/lock", "/var/lock")
_RULE = (
    'echo \'SUBSYSTEM=="tty", ATTRS{idVendor}=="%s", ATTRS{idProduct}=="%s", GROUP="dialout", '
    'MODE="0660"\' | '
    "sudo tee /etc/udev/rules.d/70-clawlite.rules && sudo udevadm control --reload && sudo "
    "udevadm trigger"
)


def ports(here) -> list:
    """Check the port that is asked about, or every USB serial port: whether this user may open
    it, and whether another process has it open.
    """
    if here.port:
        paths = [here.path(os.path.realpath(here.port) if here.root == "/" else here.port)]
        if not os.path.exists(paths[0]):
            return [
                (
                    "port",
                    WRONG,
                    "%s does not exist" % here.port,
                    "plug the board in with a cable that carries data, then: clawlite ports",
                )
            ]
    else:
        paths = [
            here.path("/dev/" + name) for name in here.names("/dev") if name.startswith(PREFIXES)
        ]
    rows = []
    for path in paths:
        if not here.may(path, 6):
            rows.append(_forbidden(here, path))
            continue
        held = ["%s (pid %d)" % (name, pid) for pid, name in holders(here.proc, path)]
        if held:
            rows.append(
                (
                    "port",
                    WRONG if here.port else NOTE,
                    "%s is in use by %s" % (path, ", ".join(held)),
                    "kill %s" % held[0].rpartition(" ")[2][:-1],
                )
            )
        else:
            rows.append(("port", OK, "%s is free" % path, ""))
    return rows or [("port", NONE, "no USB serial port is attached", "")]


def _forbidden(here, path: str) -> tuple:
    """Return the row of a port that this user may not open. The remedy is to join its group, or
    a udev rule that gives it one.
    """
    gid = os.stat(path).st_gid
    name, members = _group(here, gid)
    if gid == 0 or name is None or not os.stat(path).st_mode & 0o060 == 0o060:
        vendor, product = _usb(here, path)
        return ("port", WRONG, "%s belongs to root alone" % path, _RULE % (vendor, product))
    user = here.environ.get("USER", "")
    if user in members:
        return (
            "port",
            WRONG,
            "%s: you have joined the group %s since you logged in" % (path, name),
            "newgrp %s" % name,
        )
    return (
        "port",
        WRONG,
        "%s is for the group %s, and you are not in it" % (path, name),
        "sudo usermod -a -G %s %s" % (name, user or "$USER"),
    )


def _group(here, gid: int) -> tuple:
    """Return (name, members) of a group, (None, []) when it has no name."""
    try:
        with open(here.path("/etc/group"), errors="replace") as file:
            for line in file:
                fields = line.rstrip("\n").split(":")
                if len(fields) == 4 and fields[2] == str(gid):
                    return fields[0], fields[3].split(",")
    except OSError:
        pass
    return None, []


def _usb(here, path: str) -> tuple:
    """Return (vendor, product) in hex of the USB device behind a port, as sysfs tells it; "*"
    where it does not.
    """
    folder = here.path("/sys/class/tty/%s/device" % os.path.basename(path))
    folder = os.path.realpath(folder)
    for _ in range(4):  # the interface, then the device that it is one of
        try:
            with (
                open(os.path.join(folder, "idVendor")) as vendor,
                open(os.path.join(folder, "idProduct")) as product,
            ):
                return vendor.read().strip(), product.read().strip()
        except OSError:
            folder = os.path.dirname(folder)
    return "*", "*"


def holders(proc: str, path: str) -> list:
    """Return [(pid, name)] of the other processes that have the file at *path* open, as far as
    they may be looked into.
    """
    found, real = set(), os.path.realpath(path)
    for pid in os.listdir(proc) if os.path.isdir(proc) else ():
        if not pid.isdigit() or int(pid) == os.getpid():
            continue
        try:
            opened = {
                fd: os.readlink("%s/%s/fd/%s" % (proc, pid, fd))
                for fd in os.listdir("%s/%s/fd" % (proc, pid))
            }
            if real in opened.values() and not any(
                _is_master(proc, pid, fd, real)
                for fd, name in opened.items()
                if name.endswith("/ptmx")
            ):
                with open("%s/%s/comm" % (proc, pid)) as file:
                    found.add((int(pid), file.read().strip()))
        except OSError:  # gone, or another user's
            pass
    return sorted(found)


def _is_master(proc: str, pid: str, fd: str, path: str) -> bool:
    """Return whether *fd* is the master side of the pseudo-terminal at *path*. The process that
    has it is the (simulated) board itself, not another user of the port.
    """
    with open("%s/%s/fdinfo/%s" % (proc, pid, fd)) as file:
        return any(line.split() == ["tty-index:", path.removeprefix("/dev/pts/")] for line in file)


def locks(here) -> list:
    """UUCP lock files of ports (LCK..NAME), whose program is gone: some terminal programs refuse
    a port for one.
    """
    rows, seen = [], set()
    for folder in LOCKS:
        if os.path.realpath(here.path(folder)) in seen:
            continue
        seen.add(os.path.realpath(here.path(folder)))
        for name in here.names(folder):
            pid = here.text("%s/%s" % (folder, name)).strip()
            if (
                name.startswith("LCK..")
                and pid.isdigit()
                and not os.path.isdir("%s/%s" % (here.proc, pid))
            ):
                rows.append(
                    (
                        "locks",
                        WRONG,
                        "%s/%s is of a program that has ended (pid %s)" % (folder, name, pid),
                        "sudo rm %s/%s" % (folder, name),
                    )
                )
    return rows or [("locks", OK, "no lock of a port is left over", "")]


CHECKS = (ports, locks)

"""The swarms of this machine: whether all agents have the same version of one, and whether the
MQTT broker, where it is mosquitto, keeps what it has acknowledged.

A swarm loses no task with its broker (docs/adr/0134).  What it is told to keep for others is lost
when it is killed, unless it writes each change down: the stop for boards that come later, and which
log of the swarm there is.
"""

import os
from shlex import quote

from clawlite.core.net.netaddress import address_of, is_loopback
from clawlite.linux.doctor.doctor_checks import NONE, NOTE, OK, WRONG
from clawlite.linux.files import files

DIFFERS = "differs"  # the same name as in linux/swarm/member.py
BROKER = "broker"  # the same name as in linux/swarm_engines/mqtt_engine.py
USUAL = "/etc/mosquitto/mosquitto.conf"
OWN = "/etc/mosquitto/conf.d/clawlite.conf"
# setting -> (the value that is needed, mosquitto's default)
DEMANDED = {
    "persistence": ("true", "false"),
    "autosave_on_changes": ("true", "false"),
    "autosave_interval": ("1", "1800"),
}
_ASKED = ", ".join("%s %s" % (name, wanted) for name, (wanted, _) in DEMANDED.items())
MOST_BYTES = 1 << 20  # bytes of a configuration that are read
MOST_FILES = 100


def versions(here) -> list:
    """Each swarm of which agents here have met others with another version of its document."""
    mend = "build all of its agents from the same Swarm and start them again (see which: clawlite"
    mend += " swarm status FOLDER)"
    rows = [
        ("swarm", WRONG, "the swarm %s is another one for %s than here" % (name, others), mend)
        for name, others in _kept(here, DIFFERS)
    ]
    return rows or [("swarm", NONE, "no agent has met another version of its swarm", "")]


def _kept(here, file: str) -> list:
    """Return [(name of a swarm, what *file* of its folder says), ...] where there is one."""
    place = os.path.join(here.state, files.SWARMS)
    names = sorted(os.listdir(place)) if os.path.isdir(place) and here.may(place, 5) else ()
    said = [(name, _read(os.path.join(place, name, file)).strip()) for name in names]
    return [pair for pair in said if all(pair)]


def broker(here) -> list:
    """Each broker that an agent of this machine has spoken to."""
    addresses = {address for _, address in _kept(here, BROKER)}
    rows = [row for address in sorted(addresses) for row in _looked_at(here, address)]
    return rows or [("broker", NONE, "no swarm is over MQTT", "")]


def _looked_at(here, address: str) -> list:
    host = address.partition("://")[2].rpartition(":")[0]
    own = host == "localhost" or address_of(host) and is_loopback(address_of(host))
    if not own:
        what = "%s is on another machine, and its settings cannot be seen from here" % address
        return [("broker", NOTE, what, "see that it has: " + _ASKED)]
    path, runs = _configuration(here)
    if path is None:
        what = "%s: its settings cannot be seen, since no mosquitto is found here" % address
        return [("broker", NOTE, what, "where it is one, see that it has: " + _ASKED)]
    if path and not os.access(here.path(path), os.R_OK):
        what = "%s: %s cannot be read by you" % (address, path)
        return [("broker", NOTE, what, "sudo cat %s, and see that it has: %s" % (path, _ASKED))]
    found = _settings(here, path) if path else {}
    wrong = {
        name: (wanted, found.get(name, usual))
        for name, (wanted, usual) in DEMANDED.items()
        if found.get(name, usual) != wanted
    }
    if not wrong:
        return [("broker", OK, "%s keeps what it acknowledges (%s)" % (address, path), "")]
    what = "%s forgets what it has acknowledged when it is killed: %s has %s" % (
        address,
        path or "mosquitto without a configuration",
        ", ".join("%s %s" % (name, is_) for name, (_, is_) in wrong.items()),
    )
    lines = "".join("%s %s\\n" % (name, wanted) for name, (wanted, _) in wrong.items())
    file = OWN if path == USUAL else path or USUAL
    mend = "printf '%s' | sudo tee -a %s" % (lines, quote(file))
    return [
        ("broker", WRONG, what, mend + (" && sudo systemctl restart mosquitto" if runs else ""))
    ]


def _configuration(here) -> tuple:
    """Return (the configuration of the mosquitto that runs here, or of the one that is installed;
    "" where it runs without one, None where there is none; whether it runs).
    """
    for pid in sorted(os.listdir(here.proc)) if os.path.isdir(here.proc) else ():
        words = _read(os.path.join(here.proc, pid, "cmdline")).split("\0") if pid.isdigit() else []
        if not words or os.path.basename(words.pop(0)) != "mosquitto":
            continue
        for option in ("-c", "--config-file"):
            if option in words[:-1]:
                return words[words.index(option) + 1], True
        return "", True
    return (USUAL if os.path.isfile(here.path(USUAL)) else None), False


def _settings(here, path: str) -> dict:
    """Return {name: value} of a configuration and of what it includes; the last one counts."""
    found, waiting, read = {}, [path], 0
    while waiting and read < MOST_FILES:
        read += 1
        for line in _read(here.path(waiting.pop(0))).splitlines():
            name, _, value = line.strip().partition(" ")
            if name == "include_dir":
                folder = value.strip()
                waiting += [
                    os.path.join(folder, one) for one in here.names(folder) if one.endswith(".conf")
                ]
            elif name in DEMANDED:
                found[name] = value.strip()
    return found


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


CHECKS = (versions, broker)

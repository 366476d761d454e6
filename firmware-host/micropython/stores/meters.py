"""How much of its limits an agent has used: ``meters.json`` beside the image, written at each
change.

Loaded for images that declare limits, or whose providers are remote.
"""

import os
import sys

from clawlite.core.base.errors import ClawError
from clawlite.core.policy.ledger import CALLS, ENTRY_AMOUNT, ENTRY_KEY, Ledger, count_use
from jsontext import dumps, loads

_MAX = 4096  # bytes of the file
_ENOENT = 2


class Meters:
    """The meters of one agent: ``meter``.

    image   ``image.Image``
    folder  where ``meters.json`` lies
    clock   function -> (monotonic ms, seconds since 1970 or None)
    """

    def __init__(self, image, folder: str, clock):
        self._path, self._is_told = folder + "/meters.json", False
        self._spent = self._read()
        info = image.agent
        if "http" in image.requires or "https" in image.requires:
            from clawlite.core.policy.meter import Meter

            self.meter = Meter(
                clock,
                self.amounts,
                info.tokens_per_hour,
                info.cost_per_day,
                info.rates,
                None,
                self.add,
            )
        else:
            self.meter = Ledger(clock, self.amounts, None, self.add)

    def amounts(self) -> dict:
        return self._spent

    def add(self, entries: list):
        """Return the value of the effect STORE for *entries*, which are in flash by then, or
        reported.
        """
        if not entries:
            return self.meter.read_use_of_day()
        if entries[0][ENTRY_KEY] == CALLS:
            entries = self.meter.make_call_entries(entries[0][ENTRY_AMOUNT])
        if not count_use(self._spent, entries):
            return False
        try:
            with open(self._path + ".new", "w") as file:
                file.write(dumps(self._spent))
            os.rename(self._path + ".new", self._path)
            self._is_told = False
        except OSError as e:
            if not self._is_told:
                sys.stderr.write(
                    "clawlite: %s cannot be written: %s - make room; limits count, and a restart "
                    "resets them\n" % (self._path, e)
                )
            self._is_told = True
        return True

    def _read(self) -> dict:
        """Return the meters of the last run.  A damaged file is set aside and reported: it must not
        reset a limit unnoticed.  The first and the last such file are kept.
        """
        try:
            with open(self._path, "rb") as file:
                stored = loads(file.read(_MAX))
            if not isinstance(stored, dict):
                raise ClawError("no object")
        except OSError as e:
            if e.args[0] != _ENOENT:
                sys.stderr.write(
                    "clawlite: the meters of this agent cannot be read (%s) and start anew: "
                    "look at the flash\n" % e
                )
            return {}
        except ClawError:
            folder, _, name = self._path.rpartition("/")
            name += ".damaged"
            if name in os.listdir(folder):
                name += ".2"
            os.rename(self._path, folder + "/" + name)
            sys.stderr.write(
                "clawlite: the meters of this agent were damaged and start anew (%s)\n" % name
            )
            return {}
        return {
            key: entry
            for key, entry in stored.items()
            if isinstance(entry, list)
            and len(entry) % 2 == 0
            and (len(entry) == 2 or key == CALLS)
            and all(type(n) is int and n >= 0 for n in entry)
        }

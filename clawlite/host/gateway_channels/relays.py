"""Channels that the gateway carries for boards: what people say goes up to the board, and what the
board says goes back (docs/gateway.md).

1. One process, ``clawlite channels relay``, speaks to all platforms, so this loop never waits for
   one.  It has the keys, and keeps what is under way on the disk.
2. The process tells a device, after each greeting, that it hears it: the device answers with what
   has not been confirmed.  A device that has been away for GONE_S is gone: nothing is taken for it
   any more.
3. What a device says is checked here: the process may trust it.
"""

import asyncio

from clawlite.core.image.image import CHANNELS
from clawlite.host.systems.helper import Helper

GONE_S = 20  # a board that was reset is back before
_MAX_ID, _MAX_TEXT = 128, 65536
_CARRIED = 6  # the length of a record of a channel that the gateway does not carry
METHODS = ("reply", "acts", "unknown", "say")
_WHYS = ("", "failed", "stranger", "pairing", "length", "rate", "busy")


def is_carried(image) -> bool:
    """Return whether *image* has a channel that its gateway carries."""
    return any(len(record) > _CARRIED for record in image.section(CHANNELS) or ())


class Relays:
    """What the gateway does for devices with such channels.

    images   ``images.Images``
    deliver  function(device's name, name of a record, its params) -> why the device cannot take
             it, or ""
    event    function(device's name, event of the log)
    note     function(text) for the person who runs the gateway
    """

    def __init__(self, images, deliver, event, note):
        self._images, self._deliver, self._event, self._note = images, deliver, event, note
        self._paths: dict = {}  # name of a device -> path of its image
        self._timers: dict = {}  # name of a device -> until it has gone
        words = "channels", "relay"
        self._helper = Helper(words, self._take_record, note, self._send_here, self._note_end)

    def note_here(self, device: str, digest: str) -> None:
        """*device* is connected, now or again, and runs the image of this digest."""
        path = self._images.path(digest)
        if self._paths.get(device, path) != path:
            self.forget(device)
        self._stop_timer(device)
        self._paths[device] = path
        self._helper.start()
        self._helper.send({"device": device, "here": path})

    def note_away(self, device: str) -> None:
        """The link to *device* is over; it may come back."""
        if device in self._paths and device not in self._timers:
            loop = asyncio.get_running_loop()
            self._timers[device] = loop.call_later(GONE_S, self.forget, device)

    def forget(self, device: str) -> None:
        """*device* does not come back, or runs another image."""
        self._stop_timer(device)
        if self._paths.pop(device, None):
            self._helper.send({"device": device, "gone": True})

    def _stop_timer(self, device: str) -> None:
        timer = self._timers.pop(device, None)
        if timer:
            timer.cancel()

    def take(self, device: str, name: str, params: dict) -> None:
        """Hand on the record *name* of *device*; one of another shape is dropped."""
        id = params.get("id")
        if device not in self._paths or not _is_text(id, _MAX_ID):
            return
        record = {"device": device, name: id}
        fields = {"reply": ("text", "why"), "acts": ("tool",), "say": ("channel", "actor", "text")}
        for field in fields.get(name, ()):
            value = params.get(field)
            if not _is_text(value, _MAX_TEXT if field == "text" else _MAX_ID):
                return
            record[field] = value
        if name == "reply" and record["why"] not in _WHYS:
            return
        if name == "say":
            of = params.get("of")
            record["of"] = of if isinstance(of, str) else ""
            for field in ("asks", "ended"):
                record[field] = params[field] if _is_text(params.get(field), _MAX_ID) else ""
        self._helper.send(record)

    async def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        await self._helper.close()

    # -- the process

    def _send_here(self) -> None:
        for device, path in self._paths.items():
            self._helper.send({"device": device, "here": path})

    def _note_end(self, why: str) -> None:
        self._note(f"the process that carries the channels of boards has ended: {why}")

    def _take_record(self, record: dict) -> None:
        device = record["device"]
        if "send" in record:
            why = self._deliver(device, record["send"], record["params"])
            if why and record["send"] == "spoke":
                told = {"device": device, "refused": record["params"]["id"]}
                self._helper.send(dict(told, why=f"Nothing was done: {why}."))
        elif "event" in record:
            self._event(device, record["event"])
        elif "note" in record:
            self._note(f"{device}: {record['note']}")
        else:
            hint = f" - {record['hint']}" if record["hint"] else ""
            self._note(f"{device}: its channels are not carried: {record['unable']}{hint}")


def _is_text(value, most: int) -> bool:
    return isinstance(value, str) and len(value) <= most

"""Boards as members of swarms: the gateway joins the swarm's engine in the name of each device
whose image declares one, and hands it the tasks that come for it (docs/adr/0133).

1. Each such member runs as a separate process, ``clawlite swarm stand-in``, so this loop never
   waits for an engine, whichever it is.
2. A device that is away for GONE_S, or was reset, counts as gone: for the swarm that is the same as
   a killed process.
3. A task is sent to the device again with each greeting, with the same id, so the device does it
   once.
4. A device may run out of memory while it receives the stop, and then does not answer that it is a
   member.  The stop is sent to it again, and the person who runs the gateway gets a note.
"""

import asyncio

from clawlite.host.systems.helper import Helper

ANSWER_S, LONGEST_S = 5, 60  # until a device is told again; doubled each time
GONE_S = 3  # as long as members of an engine wait for one that was cut off


class Members:
    """What the gateway does for devices that are members.

    images   ``images.Images``
    deliver  function(device's name, name of a record, its params): sends it to a connected device
    event    function(device's name, event of the log)
    note     function(text) for the person who runs the gateway
    """

    def __init__(self, images, deliver, event, note):
        self._images, self._deliver, self._event, self._note = images, deliver, event, note
        self._joined: dict = {}  # name of a device -> path of its image
        self._tasks: dict = {}  # name of a device -> params of the task that it is to do
        self._timers: dict = {}  # name of a device -> until it has gone
        self._expected: dict = {}  # name of a device -> until it is told again
        self._silent: set = set()  # devices of which it was noted that they do not answer
        self._listings: dict = {}  # number of a request of the page -> what its answer goes to
        self._last = 0
        words = "swarm", "stand-in"
        self._helper = Helper(words, self._take_record, note, self._send_joined, self._note_end)

    def expect(self, device: str, tell, pause_s: float = ANSWER_S) -> None:
        """Expect *device* to answer, to the message that it was just sent, that it is a member.
        When no answer comes, *tell*() is called to send that message again.
        """
        self._stop_expecting(device)

        def tell_again():
            if device not in self._silent:
                self._silent.add(device)
                self._note(
                    f"{device}: has not confirmed that it is a member of its swarm, and "
                    f"is none until then - it may be out of memory; the gateway keeps asking"
                )
            tell()
            self.expect(device, tell, min(2 * pause_s, LONGEST_S))

        loop = asyncio.get_running_loop()
        self._expected[device] = loop.call_later(pause_s, tell_again)

    def _stop_expecting(self, device: str) -> None:
        timer = self._expected.pop(device, None)
        if timer:
            timer.cancel()

    def confirm(self, device: str, digest: str) -> None:
        """*device* says that it is a member, with the image of this digest."""
        self._stop_expecting(device)
        if device in self._silent:
            self._silent.remove(device)
            self._note(f"{device}: is a member of its swarm now")
        timer = self._timers.pop(device, None)
        if timer:
            timer.cancel()
        if device not in self._joined:
            self._joined[device] = self._images.path(digest)
            self._helper.start()
            self._helper.send({"device": device, "join": self._joined[device]})
        elif device in self._tasks:
            self._deliver(device, "task", self._tasks[device])

    def note_away(self, device: str) -> None:
        """The link to *device* is over; it may come back."""
        self._stop_expecting(device)
        if device in self._joined and device not in self._timers:
            loop = asyncio.get_running_loop()
            self._timers[device] = loop.call_later(GONE_S, self.forget, device)

    def forget(self, device: str) -> None:
        """*device* will not do its task: it has been away for long, or was reset."""
        timer = self._timers.pop(device, None)
        if timer:
            timer.cancel()
        if self._joined.pop(device, None):
            self._tasks.pop(device, None)
            self._helper.send({"device": device, "gone": True})

    def ask_to_begin(self, device: str, turn: str) -> None:
        """The device asks whether a tool with side effects may begin in *turn*."""
        self._helper.send({"device": device, "begins": turn})

    def list_swarm(self, device: str, reply) -> None:
        """A person at the page asks who is in the swarm of *device*; *reply*({"result" or
        "error"}).
        """
        self._last += 1  # a device's own requests have texts for ids
        self._listings[self._last] = reply
        self.ask_swarm(device, self._last, "claw.swarm.list", {})

    def ask_swarm(self, device: str, id, method, params) -> None:
        """An operator of the device asks *method* of its swarm; "": a notification."""
        if device in self._joined and self._helper.is_up:
            self._helper.send({"device": device, "swarm": id, "method": method, "params": params})
        elif id:
            said = "the gateway does not speak for this board in its swarm yet"
            hint = "read the output of clawlite gateway, and ask again"
            error = {"code": -32603, "message": said, "data": {"hint": hint}}
            self._answer(device, id, {"error": error})

    def _answer(self, device: str, id, answer: dict) -> None:
        if id in self._listings:
            self._listings.pop(id)(answer)
            return
        why = self._deliver(device, "swarm", {"id": id, "text": "", **answer})
        if why:
            error = {"code": -32603, "message": why}
            self._deliver(device, "swarm", {"id": id, "text": "", "error": error})

    def report(self, device: str, turn: str, status, text, error) -> None:
        """The device reports *turn*; a report of another shape is dropped."""
        if not isinstance(status, str) or not isinstance(text, str):
            return
        if self._tasks.get(device, {}).get("id") == turn:
            del self._tasks[device]
        told = {"device": device, "report": turn, "status": status, "text": text}
        self._helper.send(dict(told, error=error) if isinstance(error, str) else told)

    async def close(self) -> None:
        for timer in (*self._timers.values(), *self._expected.values()):
            timer.cancel()
        await self._helper.close()

    # -- the process

    def _send_joined(self) -> None:
        for device, path in self._joined.items():
            self._helper.send({"device": device, "join": path})

    def _note_end(self, why: str) -> None:
        self._tasks.clear()  # they are the swarm's again
        for id in list(self._listings):
            error = {"code": -32603, "message": f"the swarm cannot be read: {why}"}
            self._answer("", id, {"error": error})
        self._note(f"the process that speaks for the boards in their swarms has ended: {why}")

    def _take_record(self, record: dict) -> None:
        device = record["device"]
        if "event" in record:
            self._event(device, record["event"])
        elif "refused" in record:
            self._joined.pop(device, None)  # it tries again with its next greeting
            self._note(f"{device}: is in no swarm: {record['refused']} - {record['hint']}")
        elif "task" in record:
            params = {"id": record["task"], "text": record["text"], "caller": record["caller"]}
            if record["ms"] is not None:
                params["ms"] = record["ms"]
            self._tasks[device] = params
            self._deliver(device, "task", params)
        elif "swarm" in record:
            name = "result" if "result" in record else "error"
            self._answer(device, record["swarm"], {name: record[name]})
        else:
            name = "begun" if "begun" in record else "withdrawn"
            if name == "withdrawn":
                self._tasks.pop(device, None)
            self._deliver(device, name, {"id": record[name], "text": record["text"]})

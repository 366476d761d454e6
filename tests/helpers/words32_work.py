"""What words32.mjs runs on MicroPython: a person's dialogue, a line each in the file ``says``
beside the image.  Questions are answered as board_work.py says, and behind a gateway its
other end is played, with a model that streams the file ``streams`` after a call of the tool
``look``.
"""

from json import loads

from main import open_device
from unload import drop

_HELLO = b'{"jsonrpc":"2.0","id":1,"method":"claw.gateway.hello","params":{"version":1}}'
_PIECE = 512  # characters of a text of the gateway
_AHEAD = 1024


class Screen:
    """Counts the texts that have ``wanted``, and hands what the agent writes to the gateway."""

    gateway = None
    wanted = b""
    count = 0

    def write(self, data):
        data = bytes(data)
        self.count += self.wanted in data
        if self.gateway:
            self.gateway.hear(data)
        return len(data)

    def flush(self):
        pass


class Gateway:
    """The other end of the line of *device*."""

    def __init__(self, device, text: str):
        from clawlite.core.line.line import Line

        self._device, self._text = device, text
        self.line = Line(1, 4096)
        self.line.hello(device.now_ms())
        self.line.send(_HELLO, device.now_ms())
        self._answers, self._asked = None, 0

    def hear(self, data: bytes):
        self.line.feed(data, self._device.now_ms())
        event = self.line.next_event()
        while event:
            if b"claw.gateway.provider" in event[1]:
                self._asked += 1
                self._answers = self._answer(loads(event[1])["id"])
            event = self.line.next_event()

    def _answer(self, id: str):
        """Yield the records of an answer: a call, or the text after it."""
        stop = "tool_calls" if self._asked % 2 else "stop"
        if stop == "stop":
            for at in range(0, len(self._text), _PIECE):
                text = self._text[at : at + _PIECE].replace("\n", "\\n")
                yield (
                    '{"jsonrpc":"2.0","method":"claw.gateway.text","params":{"id":"%s","text":"%s"}}'
                    % (id, text)
                )
        calls = ', "calls":[["c1","look","{\\"where\\":\\"bed 2\\"}"]]' if stop != "stop" else ""
        yield '{"jsonrpc":"2.0","id":"%s","result":{"stop":"%s"%s}}' % (id, stop, calls)

    def send(self) -> bytes:
        """Return what this end has to write."""
        now = self._device.now_ms()
        while self._answers and self.line.waiting < _AHEAD:
            record = next(self._answers, None)
            if record is None:
                self._answers = None
            else:
                self.line.send(record.encode(), now)
        self.line.tick(now)
        return self.line.output()


def stand_ins():
    pass


def ready(path: str):
    device = open_device(path, path.rpartition("/")[0], False)
    device.stdio.output = Screen()
    device.agent.start(device.now_ms())
    device.console.greet()
    device.settle()
    drop()
    return device


def turn(device, path: str):
    """Say each line; yields between the steps of the loop.  Raises ``ValueError`` when nothing of
    what should come came.
    """
    folder, screen, answer = path.rpartition("/")[0], device.stdio.output, b"y"
    with open(folder + "/hears") as file:
        screen.wanted, screen.count = file.read().encode(), 0
    if device.uplink:
        with open(folder + "/streams") as file:
            screen.gateway = Gateway(device, file.read())
        while not device.uplink.is_up:
            for _ in step(device):
                yield
    with open(folder + "/says") as file:
        line = file.readline()
        while line:
            device.person_typed(line.strip().encode(), device.now_ms(), False)
            for _ in step(device):
                yield
            while device.console.is_busy:
                if device.agent.waiting:
                    answer = b"y" if answer == b"n" else b"n"
                    device.person_typed(answer, device.now_ms(), False)
                for _ in step(device):
                    yield
            drop()
            line = file.readline()
    if not screen.count:
        raise ValueError("it did not say what it should")


def step(device):
    """Do what a round of the loop does, and let 100 ms go by; yields where the loop is back in its
    outermost function, so that what is thrown away can be collected.
    """
    agent, gateway = device.agent, device.stdio.output.gateway
    if gateway:
        data = gateway.send()
        while data:
            device.stdio.feed(data)
            event = device.stdio.next_event()
            while event:
                device.event(event[0], event[1], device.now_ms())
                event = device.stdio.next_event()
            data = gateway.send()
        if device.stdio.line:
            device.check_line(device.stdio.line)
            device.stdio.line.tick()
    if device.net:
        device.net.tick()
    agent.tick(device.now_ms())
    for part in device.beside:
        part.tick(device.now_ms())
    is_settled = False
    while not is_settled:
        yield
        if agent.later:
            task, value, error = agent.later.pop(0)
            agent.drive(task, value, error, device.now_ms())
            task = value = error = None
            continue
        effect = device.doing = agent.next_effect()
        if effect:
            for part in device.before:
                if part.take(effect):
                    break
            else:
                device.carry_out(effect)
            effect = None
            continue
        ended = device.handlers.poll(device.now_ms())
        device.hand_in(ended)
        is_settled = not ended and not agent.effects and not agent.later
    device.stdio.pump()
    device.clock.now += 100

"""The messages of a channel that are not done yet, in one file: no message is lost after its source
was told that it has arrived (delivery.py).

    ["+", number, packet id, digest, actor, text, correlation]   received; synced before it is
                                                                 acknowledged
    ["b", number]                      the first effect of its turn begins
    ["u", number]                      withdraws the last "b": the process ended in order
    ["s", number, tool]                a tool with side effects begins; synced before it does
    ["r", number, text]                its turn ended with this reply, which has not arrived yet
    ["-", number]                      done
    ["m", [[packet id, digest], ...]]  the last messages received, as of a rewrite of the file

A packet id is what the source calls a message by: a broker's packet id, an update of Telegram, a
time of a schedule.

1. Delivery is at least once.  A message that was not done when its process ended begins again, and
   a reply that has not arrived is sent again.  A message is given up (dead_letters.py) when its
   turn had begun an effect ``MOST_TRIES`` times and each time the process died; on channels that
   ask for that, also once a tool with side effects had begun.
2. A broker sends a message again when the acknowledgement did not reach it.  Such a message is
   marked, and has its earlier packet id (MQTT 5, 4.4).  It is recognised by packet id and content
   among the last ``REMEMBERED`` messages.
3. A torn last line was never acknowledged, so it is dropped.
4. Each line ends with a blank and its CRC-32 in 8 hexadecimal digits; lines of earlier versions
   have no CRC.  When a line is damaged, the file is copied to ``NAME.damaged`` and written again
   without it, and a message says so on stderr.
"""

from collections import deque

from clawlite.core.base.dialect import sha256
from clawlite.core.base.errors import ClawError
from clawlite.linux.files.record_log import RecordLog, is_sealed, seal
from clawlite.linux.files.rollback_marks import Mark
from clawlite.linux.io.jsontext import dumps, loads

ROOM = 10000  # messages that are not done
REMEMBERED = 1000  # as many as a broker sends without an acknowledgement (mqtt.py)
MOST_TRIES = 3
REWRITE_BYTES = 1 << 20


class Item:
    """One message: its *number* in the file, *actor* or "", *text*, *correlation* (bytes: what its
    source needs to answer it), how often its turn has begun an effect, the tool with side effects
    that has begun in it or "", and the reply to it or None.
    """

    def __init__(self, number: int, actor: str, text: str, correlation: bytes, begun: int = 0):
        self.number, self.actor, self.text, self.correlation, self.begun = (
            number,
            actor,
            text,
            correlation,
            begun,
        )
        self.answer: str | None = None
        self.acted = ""


class Inbox:
    """The messages of one channel.

    path  of its file, or None: nothing outlasts the process

    waiting  {number: ``Item``} in the order in which they came, those under way among them
    """

    def __init__(self, path):
        self._path, self._log = path, path and RecordLog(path, "the inbox", Mark(path))
        self._rewrite_at = REWRITE_BYTES
        self._last, self._ids = 0, deque(maxlen=REMEMBERED)
        self.waiting = {}
        if path:
            self._read()

    def knows(self, packet: int, digest: str) -> bool:
        """Return whether a message that is marked as sent again was received before."""
        return (packet, digest) in self._ids

    def forget(self):
        """Forget all packet ids: the broker has begun a new session."""
        self._ids.clear()

    def take(self, messages: list) -> list:
        """Put *messages* [(packet id, digest, actor, text, correlation)] on record, with one
        sync; return their ``Item``s.  Raises ``OSError``.
        """
        items, lines = [], []
        for packet, digest, actor, text, correlation in messages:
            items.append(Item(self._last + len(items) + 1, actor, text, correlation))
            lines.append(["+", items[-1].number, packet, digest, actor, text, correlation.hex()])
        self._write(lines, True)
        self._last += len(items)
        for item, message in zip(items, messages):
            self.waiting[item.number] = item
            if message[0]:  # a message that a person runs again has no packet id
                self._ids.append(message[:2])
        return items

    def put_answer(self, mark: tuple, actor: str, text: str) -> Item:
        """Put *text* for *actor* on record, which answers nothing; return its ``Item``.  *mark*:
        packet id and digest, by which it is known.  Raises ``OSError``.
        """
        item = Item(self._last + 1, actor, "", b"")
        item.answer = text
        self._write([["+", item.number, *mark, actor, "", ""], ["r", item.number, text]], True)
        self._last += 1
        self.waiting[item.number] = item
        self._ids.append(mark)
        return item

    def begins(self, item: Item):
        """Record that the first effect of the turn of *item* begins: it may end this process."""
        item.begun += 1
        self._note(["b", item.number])

    def withdraws(self, item: Item):
        """Withdraw the last ``begins``: this process ends in order, and not because of *item*."""
        item.begun -= 1
        self._note(["u", item.number])

    def acts(self, item: Item, tool: str):
        """Record that *tool*, which has side effects, begins in the turn of *item*.  Raises
        ``OSError``: it must not begin.
        """
        self._write([["s", item.number, tool]], True)
        item.acted = tool

    def keep_answer(self, item: Item, text: str):
        """Record *text*, the reply of the turn of *item*, which is sent next."""
        item.answer = text
        self._note(["r", item.number, text])

    def remove(self, item: Item):
        """Record that *item* is done."""
        if self.waiting.pop(item.number, None) is not None:
            self._note(["-", item.number])
            if self._log and self._log.size > self._rewrite_at:
                self._rewrite()

    def close(self):
        if self._log:
            self._log.close()

    # -- the file

    def _note(self, line: list):
        try:
            self._write([line], False)
        except OSError:  # a full disk: at worst, the message is handled once more
            return

    def _write(self, lines: list, lasting: bool):
        """Append *lines*; all of them are there, or none.  Raises ``OSError``."""
        if not self._path:
            return
        if self._log.was_replaced():
            self._rewrite()  # all messages that wait are in memory
        if self._log.fd is None:
            self._log.open(lasting=True)
        self._log.append(_data(lines), lasting)

    def _rewrite(self):
        """Replace the file by a new one with the messages that are not done."""
        lines = [["m", [list(one) for one in self._ids]]]
        for item in self.waiting.values():
            lines += [["+", item.number, 0, "", item.actor, item.text, item.correlation.hex()]] + [
                ["b", item.number]
            ] * item.begun
            if item.acted:
                lines.append(["s", item.number, item.acted])
            if item.answer is not None:
                lines.append(["r", item.number, item.answer])
        try:
            self._log.rewrite([_data(lines)], True)
        except OSError:  # either the old file or the new one is complete
            pass
        self._rewrite_at = max(self._rewrite_at, 2 * self._log.size)

    def _read(self):
        read = self._log.fold(self._apply, is_sealed)
        if read.damaged:
            try:
                self._log.keep_damaged(read)
            except OSError:  # it stays as it is, and is reported again at the next start
                return
            self._rewrite()
        elif read.size > read.end or read.is_open:  # so that the next record begins a line
            self._log.open(lasting=True)
            self._log.cut(read.end)
            if read.is_open:
                self._log.append(b"\n", False)

    def _apply(self, line: bytes) -> bool:
        """Apply one line of the file; return False when it is damaged."""
        if not is_sealed(line) and not line.endswith(b"]"):  # as lines of earlier versions do
            return False
        try:
            self._apply_record(loads(line[:-9] if is_sealed(line) else line))
        except KeyError:  # it is about a message that is done, or whose "+" line is damaged
            return True
        except (ClawError, ValueError, TypeError, IndexError):
            return False
        return True

    def _apply_record(self, line: list):
        kind, number = line[0], line[1]
        if kind == "m":
            self._ids.extend([(packet, digest) for packet, digest in number])
        elif kind == "b":
            self.waiting[number].begun += 1
        elif kind == "u":
            self.waiting[number].begun -= 1
        elif kind == "s" and isinstance(line[2], str):
            self.waiting[number].acted = line[2]
        elif kind == "r" and isinstance(line[2], str):
            self.waiting[number].answer = line[2]
        elif kind == "-":
            self.waiting.pop(number, None)
        elif kind == "+":
            packet, digest, actor, text, correlation = line[2:]
            if type(number) is not int or not isinstance(actor, str) or not isinstance(text, str):
                return
            self.waiting[number] = Item(number, actor, text, bytes.fromhex(correlation))
            self._last = max(self._last, number)
            if packet:
                self._ids.append((packet, digest))


def _data(lines: list) -> bytes:
    return b"".join([seal(dumps(line).encode()) for line in lines])


def digest_of(topic: str, payload: bytes) -> str:
    """Return a digest that distinguishes messages with the same packet id."""
    return sha256(topic.encode("utf-8", "surrogatepass") + b"\0" + payload).hexdigest()[:16]

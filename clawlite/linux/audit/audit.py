"""The audit of one agent (CKP 0.2.0, 5.8 ``audit``): one record for each decision and each call, in
a chain (chain.py).

1. A record is made from the event that the pipeline logs, and becomes a line, as on a board:
   scan/auditrecord.py, auditline.py.
2. Records wait for ``flush``, which is called before results are sent, and before a tool with side
   effects begins.
3. An audit that cannot be written is an error of the whole agent: nothing more runs
   (linux/runtime/startup.py).
4. No secret stands in a record, whatever else policies say of secrets.
5. The record of a call that a service or an MCP server answered says which one, its own name for
   the tool, who called it, how, and the size of what came back (tool_source.py).
"""

import time

from clawlite.core.base.clock import iso8601
from clawlite.core.base.errors import ClawError
from clawlite.core.image.image import MCP, SERVICES
from clawlite.core.image.scan_config import AUDIT_DESTINATION, AUDIT_KEPT_S
from clawlite.linux.audit.chain import line
from clawlite.linux.files.files import mend, print_to_stderr, state_folder
from clawlite.linux.io.stdio import Part
from clawlite.protocols.image.features import audit_mb
from clawlite.scan.auditrecord import begin_record, record

REFUSED = "swarm.refused"  # a message of who is not in the swarm, or what is none
STRANGE_S = 60  # between records of such
MOST_WAITING = 4096  # records that wait for a disk that takes them again


def store_of(agent: str, wants: list, taken=None):
    """Return the store of an audit: files unless its destination is "sqlite".

    wants  the audit of ``scan_config.ScanConfig``;  taken  as ``files.FileStore``
    """
    kept_s, most = wants[AUDIT_KEPT_S], audit_mb(wants) << 20
    if wants[AUDIT_DESTINATION] == "sqlite":
        from clawlite.linux.audit.sqlite import SQLiteStore

        return SQLiteStore(state_folder(agent), agent, kept_s, most)
    from clawlite.linux.audit.files import FileStore

    return FileStore(state_folder(agent), agent, kept_s, taken, most)


class Audit(Part):
    """What is kept, and what waits to be.

    image   ``image.Image``
    guard   ``guard.Guard`` with an audit
    store   of ``store_of``
    """

    def __init__(self, image, guard, store=None):
        self._wants = guard.audit
        destination, target = self._wants[4:6]
        self._image, self._clean = image, guard.clean
        self._sender, taken = (
            _sender(image.agent.name, destination, target) if target else (None, None)
        )
        self._served = None
        if image.size_of(MCP) or image.size_of(SERVICES):
            from clawlite.linux.audit.tool_source import ToolSources

            self._served = ToolSources(image)
        self._store = store or store_of(image.agent.name, self._wants, taken)
        self._waiting = []
        self._failure = ""
        self._strange, self._strange_s = 0, None  # refused messages; when the last was on record
        self._is_full = False  # it was told that old records are removed

    def write(self, event: dict):
        """Take one event of the log that has its time stamp; others than those of calls, and of
        messages that a swarm has refused, are passed over.
        """
        if event.get("event") == REFUSED:
            self._count_refusal(event)
            return
        pairs = record(event, self._wants, self._image)
        if pairs is not None:
            self._waiting.append(dict(pairs))
            if self._served:
                self._waiting[-1].update(self._served.of(event))

    def _count_refusal(self, event: dict):
        """A stranger may send as much as it wants: one record a minute says how much that was."""
        self._strange += 1
        now_s = time.monotonic()
        if self._strange_s is None or now_s - self._strange_s >= STRANGE_S:
            told = {"time": event["timestamp"], "event": REFUSED, "swarm": event["swarm"]}
            self._waiting.append(dict(told, reason=event["reason"], messages=self._strange))
            self._strange, self._strange_s = 0, now_s
            self.flush()  # no call may follow

    def begins(self, tool, arguments: dict, request_id):
        """Take note that *tool*, which has side effects, is about to run: ``flush`` comes before
        it does, or ``stays_out``.
        """
        at = iso8601(int(time.time()))
        pairs = begin_record(at, self._wants, tool.name, arguments, request_id)
        self._waiting.append(dict(pairs))

    def stays_out(self):
        """Forget the last ``begins``: it was not written, and the tool does not run."""
        if self._waiting and self._waiting[-1]["event"] == "tool.begin":
            self._waiting.pop()

    def flush(self) -> bool:
        """Write what waits; what that returned True for is not lost by ``kill -9``.  False: it
        could not be written.
        """
        if self._waiting or self._failure:
            try:
                self.check()
            except ClawError as e:
                self._failure, self.mend = e.message, e.hint
                return False
        return True

    mend = ""  # what helps against that

    @property
    def failure(self) -> str:
        """Why the last ``flush`` failed, "" when it did not."""
        return self._failure

    def check(self):
        """Write what waits, and see that more could be written.  Raises ``ClawError``."""
        waiting = self._waiting
        try:
            self._store.append(self._lines, int(time.time()))
        except OSError as e:
            del waiting[MOST_WAITING:]
            where = ": %s" % e.filename if isinstance(e.filename, str) else ""
            raise ClawError(
                "the audit cannot be written: %s%s" % (e.strerror, where), mend(e)
            ) from None
        waiting.clear()
        self._failure = ""
        if self._sender:
            self._sender.ring()

    def _lines(self, head) -> bytes:
        problem = self._store.problem()
        if problem:  # it is on record, too, and verify finds it where it is
            self._waiting.insert(
                0, {"time": iso8601(int(time.time())), "event": "audit.problem", "problem": problem}
            )
        records, removed = self._waiting, self._store.removed
        if removed:
            records = [
                {"time": iso8601(int(time.time())), "event": "audit.removed", "removed": removed},
                *records,
            ]
            if not self._is_full:  # each record says so, stderr says it once
                self._is_full = True
                print_to_stderr(
                    "the audit is full; from now on its oldest records are removed: " + removed
                )
        return b"".join([line(head, one, self._clean) for one in records])

    def close(self):
        """Write what waits, and end."""
        self.flush()
        self._store.close()
        if self._sender:
            self._sender.close()


def _sender(agent: str, destination: str, target: list) -> tuple:
    """Return (``forwarding.Sender`` for *destination*, function() -> number of the last record
    that was taken).
    """
    from clawlite.linux.audit.forwarding import Sender, read_mark
    from clawlite.linux.audit.receivers import delivery

    folder = state_folder(agent)
    return Sender(folder, delivery(destination, target, agent)), lambda: read_mark(folder)[0]

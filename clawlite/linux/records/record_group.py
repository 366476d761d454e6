"""What operators beyond stdio read of an agent: its calls and why, what another call would do, its
audit, its memory, its pins and its swarm.  These methods are clawlite's own; docs/methods.md.

1. They are the functions of the commands.  What the disk has is read in a thread, so that the loop
   does not wait for it.
2. A user reads the calls of their own; an admin reads all.
3. What is told has no secrets, as log and audit have none.
"""

import _thread
import os

from clawlite.core.base.effect import LOG
from clawlite.core.base.errors import (
    ClawError,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    wrap_error,
)
from clawlite.core.image.image import PINS
from clawlite.core.image.memories import SCOPES, TYPES, ask
from clawlite.core.image.pins import ADC, KINDS, PWM
from clawlite.core.policy.access import ADMIN, USER, VIEWER
from clawlite.core.protocol.rpc import field
from clawlite.linux.files.files import mend, state_folder
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.io.stdio import Part, now_ms
from clawlite.protocols.session.group_session import Group, Later

ROWS = """
call.list      ready  -  -  -  last?
call.preview   ready  -  -  -  name arguments
audit.list     ready  -  -  -  last? before? filter?
audit.verify   ready  -  -  -  anchor?
audit.export   ready  -  -  -  after?
memory.list    ready  -  -  -
memory.forget  ready  -  -  -  store id
pin.list       ready  -  -  -
swarm.list     ready  -  -  -  last?
"""
_MOST_ASIDE = 4  # requests that read the disk at once
_MOST = 500  # calls, records or tasks in one answer
_MOST_TEXT = 200
_MOST_NUMBER = 1 << 62


# ``audit.export`` and ``memory.forget`` take an admin who has just logged in
_LEAST = {
    "claw.memory.list": VIEWER,
    "claw.swarm.list": VIEWER,
    "claw.call.list": USER,
    "claw.call.preview": USER,
    "claw.audit.list": ADMIN,
    "claw.audit.verify": ADMIN,
}


class RecordGroup(Part, Group):
    """The methods here, and what they read in threads.

    parts  ``agent_parts.AgentParts``
    """

    rows, least = ROWS, _LEAST

    def __init__(self, parts):
        self.parts, self._aside, self._ended = parts, 0, []
        self._event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)  # something was read
        self.folder = state_folder(parts.image.agent.name)
        self._own = Records(self, None)

    def of(self, person, send):
        """Return this group for a line of *person*."""
        return Records(self, person)

    def begin(self, method: str, params: dict):
        """Return the result of a request of who is on stdin.  Raises ``ClawError``."""
        return self._own.begin(method, params)

    def read(self, work, finish=None) -> Later:
        """Return what *work()* returns in a thread, and then *finish(that)* in the loop."""
        if self._aside >= _MOST_ASIDE:
            raise InvalidRequest("%d such requests are under way" % _MOST_ASIDE, "send this again")
        self._aside += 1
        later = Later()

        def run():
            said: tuple
            try:
                said = work(), None
            except ClawError as e:
                said = None, e
            except OSError as e:
                said = None, ClawError("the record cannot be read: %s" % e.strerror, mend(e))
            except Exception as e:
                said = None, wrap_error(e)
            self._ended.append((later, finish, *said))
            try:
                os.eventfd_write(self._event, 1)
            except OSError:  # the agent has ended meanwhile
                pass

        _thread.start_new_thread(run, ())
        return later

    def fileno(self) -> int:
        return self._event

    def close(self):
        event, self._event = self._event, -1
        os.close(event)

    def poll(self):
        """Pass on what threads have read."""
        if self._ended:
            try:
                os.eventfd_read(self._event)
            except BlockingIOError:
                pass
        while self._ended:
            later, finish, value, error = self._ended.pop(0)
            self._aside -= 1
            try:
                if error is not None:
                    raise error
                later.give(finish(value) if finish else value)
            except ClawError as e:
                later.fail(e)

    def without_secrets(self, told):
        guard = self.parts.guard
        return told if guard is None else loads(guard.text(dumps(told)).encode())


class Records(Group):
    """The group of one line.

    person  ``operator_line.Person``, None: who is on stdin
    """

    rows = ROWS

    def __init__(self, group: RecordGroup, person):
        self._group, self._person, self._parts = group, person, group.parts
        self._is_open = True
        self._methods = {
            "claw.call.list": self._list_calls,
            "claw.call.preview": self._preview,
            "claw.audit.list": self._list_audit,
            "claw.audit.verify": self._verify,
            "claw.audit.export": self._export,
            "claw.memory.list": self._list_stores,
            "claw.memory.forget": self._forget,
            "claw.pin.list": self._list_pins,
            "claw.swarm.list": self._list_swarm,
        }

    def begin(self, method: str, params: dict):
        """Return the result of a request, or a ``Later``.  Raises ``ClawError``."""
        return self._methods[method](params)

    def _may_see(self, event: dict) -> bool:
        if self._person is None or self._person.role == ADMIN:
            return True
        return event.get("caller") in (self._person.caller, "tasks/" + self._person.caller)

    # -- calls

    def _list_calls(self, params: dict) -> Later:
        from clawlite.linux.records.call_record import describe, read_last

        last, image = _count(params), self._parts.image
        self._parts.log.flush()

        def finish(found: list) -> dict:
            seen = [(number, event) for number, event in found if self._may_see(event)][:last]
            return {"calls": [describe(image, number, event) for number, event in seen]}

        folder, most = self._group.folder, last if self._may_see({}) else 20 * _MOST
        return self._group.read(lambda: read_last(folder, most), finish)

    def _preview(self, params: dict) -> dict:
        from clawlite.linux.records.call_preview import preview_call
        from clawlite.linux.records.call_record import describe

        name, arguments = field(params, "name", str, ""), field(params, "arguments", dict, "")
        caller = self._person.caller if self._person else "operator"
        event = preview_call(self._parts, name, arguments, caller)
        return self._group.without_secrets(describe(self._parts.image, 0, event))

    # -- the audit

    def _list_audit(self, params: dict) -> Later:
        from clawlite.linux.records.audit_record import find_records, kind_of

        last, before = _count(params), _number(params, "before", 1)
        words = field(params, "filter", str, "", False) or ""
        if len(words) > _MOST_TEXT:
            raise InvalidParams("filter: expected at most %d characters" % _MOST_TEXT)
        kind, folder = self._open_audit(kind_of)
        return self._group.read(lambda: find_records(kind, folder, words, before, last))

    def _verify(self, params: dict) -> Later:
        from clawlite.linux.records.audit_record import (
            check_records,
            copies_of,
            kind_of,
            parse_anchor,
        )

        anchor = parse_anchor(field(params, "anchor", str, "", False))
        kind, folder = self._open_audit(kind_of)
        name, image = self._parts.image.agent.name, self._parts.image
        return self._group.read(
            lambda: check_records(kind, folder, name, anchor),
            lambda found: {**found, **copies_of(image, folder)},
        )

    def _export(self, params: dict) -> Later:
        from clawlite.linux.records.audit_record import export_records, kind_of

        after = _number(params, "after", 0) or 0
        kind, folder = self._open_audit(kind_of)
        return self._group.read(lambda: export_records(kind, folder, after))

    def _open_audit(self, kind_of) -> tuple:
        """Return (kind, folder) of the audit, all of which is written by now."""
        kind = kind_of(self._parts.image)
        self._parts.audit.flush()
        return kind, self._group.folder

    # -- the memory

    def _stores(self) -> list:
        if self._parts.memories is None:
            raise MethodNotFound("this agent has no memory", "declare one, and build it")
        return self._parts.memories().stores

    def _list_stores(self, params: dict) -> dict:
        return {
            "stores": [
                {
                    "name": store.name,
                    "type": TYPES[store.type],
                    "scope": SCOPES[store.scope],
                    "is_encrypted": bool(store.secret),
                }
                for store in self._stores()
            ]
        }

    def _forget(self, params: dict) -> Later:
        name, id = field(params, "store", str, ""), field(params, "id", str, "")
        store = next((one for one in self._stores() if one.name == name), None)
        if store is None:
            raise InvalidParams("store: unknown store %s" % name[:60], "claw.memory.list has them")
        swarm = self._parts.swarm and self._parts.swarm.swarm
        if store.path is not None or swarm and swarm.engine and name in swarm.shares:
            raise InvalidParams(
                "store %s: it is kept in files, or by another agent" % name,
                "remove it from the file, or ask the agent that keeps the store",
            )
        later = Later()

        def end(value, error, at_ms):
            if error:
                later.fail(error)
                return
            by = self._person.caller if self._person else "operator"
            event = {"event": "memory.forgotten", "store": name, "id": id, "by": by}
            self._parts.agent.effects.append((LOG, dict(event, entries=value)))
            later.give({"forgotten": value})

        self._parts.agent.begin(ask("forget", store, None, id), end, now_ms())
        return later

    # -- what is here

    def _list_pins(self, params: dict) -> dict:
        found = []
        for name, _, kind, *_ in self._parts.image.section(PINS) or ():
            try:
                value = self._parts.handlers.read_pin(name)
            except (ClawError, OSError):  # it is shown without a value
                value = None
            scale = 65535 if kind in (ADC, PWM) else 1
            found.append({"name": name, "kind": KINDS[kind], "value": value, "of": scale})
        return {"pins": found}

    def _list_swarm(self, params: dict) -> dict:
        if self._parts.member is None:
            raise MethodNotFound("this agent is in no swarm", "declare one, and build it")
        return self._parts.member.describe(_count(params))


def _count(params: dict) -> int:
    number = _number(params, "last", 1)
    if number is not None and number > _MOST:
        raise InvalidParams("last: expected 1 to %d, got %d" % (_MOST, number))
    return number or 50


def _number(params: dict, key: str, least: int):
    number = field(params, key, int, "", False)
    if number is not None and not least <= number < _MOST_NUMBER:
        raise InvalidParams("%s: expected %d or more, got %d" % (key, least, number))
    return number

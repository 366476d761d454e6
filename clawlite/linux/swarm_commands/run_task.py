"""``clawlite swarm run``: a task of a person, and its report."""

import os
import select
import sys
import uuid

from clawlite.core.base.errors import ClawError
from clawlite.linux.io.jsontext import document, loads
from clawlite.linux.io.printing import print_line
from clawlite.linux.swarm.bus_protocol import TaskBus
from clawlite.linux.swarm.member import outcome_of
from clawlite.linux.swarm_commands.results import result_lines
from clawlite.protocols.swarm.swarm import COMPLETED, RUNNING, WAITING, Swarm, Task

PERSON = "operator"  # the sender
LOOK_MS = 1000  # between looks for processes that ended


def run_task(swarm, bus: TaskBus, description: str, to, data, as_json: bool, together=None) -> int:
    """Delegate, and wait for the end; return 0 when it was completed, else 1; 130 after Ctrl-C:
    the task goes on.

    swarm     ``swarm.Swarm``
    to        the identity that is to do it, or None: whoever is free
    data      JSON text that goes with it, or None
    together  ``in_process.InProcessSwarm``: the agents, where they are in this process; else None
    Raises ``ClawError``.
    """
    able = [
        one.identity
        for one in swarm.members
        if not (swarm.hands_on and swarm.is_leader(one))  # it does nothing itself
    ]
    if to is not None and to not in able:
        raise ClawError(
            "--to %s: no member does tasks under that name" % to[:60],
            "these do: %s" % ", ".join(able),
        )
    for name, text in (("the task", description), ("--input", data or "")):
        if not text.isprintable() and any(0xD800 <= ord(c) < 0xE000 for c in text):
            raise ClawError(name + ": expected UTF-8 text, found other bytes", "write it as UTF-8")
    task = Task(str(uuid.uuid4()), description, _json(data), PERSON, to or swarm.entry)
    try:
        if not swarm.engine:
            bus.join()
        bus.wait(bus.put(task))
        statuses = swarm.statuses(*bus.there(swarm))
        asked = [task.recipient] if task.recipient else able
        if all(statuses[name] == "unavailable" for name in asked):
            sys.stderr.write(
                "clawlite: no agent that could do it is running yet, so it waits - start "
                "them with: clawlite swarm up, or a board behind a gateway with: clawlite gateway\n"
            )
        try:
            state = _wait(swarm, bus, task.id, together)
        except KeyboardInterrupt:
            then = "it goes on - see it with: clawlite swarm trace %s" % task.id[:8]
            if together:
                then = "the task ended with its agents"
            sys.stderr.write("clawlite: %s\n" % then)
            return 130
        by, status, result, *_ = outcome_of(bus, task.id)
    finally:
        bus.leave()
    if as_json:
        print(
            document(
                {
                    "task_id": task.id,
                    "state": state,
                    "status": status,
                    "by": by,
                    "result": result,
                }
            )
        )
    else:
        print_line(*result_lines(result))
        if state != COMPLETED:
            os.write(2, b"clawlite: the task was not completed: %s\n" % state.encode())
    return 0 if state == COMPLETED else 1


def _wait(swarm: Swarm, bus: TaskBus, task_id: str, together):
    """Return the state in which the task ended.  Raises ``KeyboardInterrupt``, and ``ClawError``
    when the agents in this process have ended before.
    """
    poll = select.poll()
    if not together:
        poll.register(bus.fileno(), select.POLLIN)
    while True:
        state = bus.state(task_id)
        if state not in (WAITING, RUNNING):
            return state
        if not together:
            poll.poll(LOOK_MS)
        elif not together.step(LOOK_MS):
            if together.code > 128:  # a signal
                raise KeyboardInterrupt
            raise ClawError(
                "the agents of the swarm ended before the task: their logs say why",
                "read them in the folder of the swarm",
            )
        bus.receive()
        bus.reclaim(swarm.retries, swarm.keeps_dead)
        if swarm.timeout_ms:
            bus.expire(swarm.timeout_ms, swarm.keeps_dead)


def _json(text):
    if text is None:
        return None
    try:
        return loads(text.encode())
    except ClawError as e:
        raise ClawError("--input: %s" % e.message, "write JSON, in quotes for the shell") from None

"""Who is there of a swarm, and its last tasks, as data: for ``clawlite swarm status --json``, and
for operators (records/record_group.py).
"""

import hashlib

from clawlite.core.base.clock import iso8601
from clawlite.linux.io.jsontext import dumps
from clawlite.linux.swarm.bus_protocol import Listing


def describe(swarm, bus: Listing, most: int) -> dict:
    """Return the state of *swarm* with its last *most* tasks.  Raises ``ClawError``."""
    present, paused = bus.there(swarm)
    statuses, stop, own = swarm.statuses(present, paused), bus.find_stop(), digest(swarm)
    who, at = stop_row(*stop) if stop else (None, None)
    return {
        "swarm": swarm.name,
        "stopped": stop and {"by": who, "time": at},
        "members": [
            {
                "identity": one.identity,
                "role": one.role,
                "status": statuses[one.identity],
                "processes": len(present.get(one.identity, ())),
            }
            for one in swarm.members
        ],
        "tasks": [task_row(*row) for row in bus.tasks(most)],
        "differs": sorted({name for _, name, terms in bus.list_declared() if terms != own}),
    }


def digest(swarm) -> str:
    """Return what is the same for all processes whose images have the same swarm."""
    return hashlib.sha256(dumps(swarm.terms).encode()).hexdigest()[:16]


def stop_row(who: str, at_ms: int) -> tuple:
    """Return (who, when) of a stop."""
    return who, iso8601(at_ms // 1000)


def task_row(
    task_id: str, description: str, state: str, sender: str, tries: int, at_ms: int
) -> dict:
    """Return one row of ``TaskRecords.tasks``."""
    return {
        "task_id": task_id,
        "description": description,
        "state": state,
        "sender": sender,
        "tries": tries,
        "time": iso8601(at_ms // 1000),
    }

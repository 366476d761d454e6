"""Which role of a person may use which method of an operator, on lines beyond stdio (docs/page.md).
Loaded where there is such a line.
"""

from clawlite.core.base.errors import PolicyDenied
from clawlite.core.policy.access import ADMIN, ROLE_NAMES, USER, VIEWER

FRESH_MS = 300000  # after a login: what takes a fresh one is refused later
# the methods that a viewer and a user may use, and those of any admin, without "claw."
_VIEWERS = (
    " initialize status memory.query pin.list reading.history reading.list rule.list rule.why "
    "swarm.discover usage.get "
)
_USERS = (
    " memory.store rule.draft rule.rehearse swarm.broadcast swarm.delegate task.cancel task.create "
    "task.get task.list task.subscribe tool.call log.subscribe "
)
_ADMINS = (
    " approval.answer approval.subscribe memory.compact rule.answer rule.forget rule.switch "
    "rule.teach swarm.report tool.approve tool.deny "
)


def least(method: str) -> tuple:
    """Return (the least role that may use *method*, or send it as a notification; whether it takes
    a login that was a moment ago, as each method that is not listed does).
    """
    name = " %s " % method[5:]
    if method[:5] == "claw." and " " not in method:
        for names, role in ((_VIEWERS, VIEWER), (_USERS, USER), (_ADMINS, ADMIN)):
            if name in names:
                return role, False
    return ADMIN, True


def check(method: str, name: str, role: int, least_role: int, is_late: bool):
    """Raise ``PolicyDenied`` unless the person *name* with *role* may use *method*, which takes
    *least_role*; *is_late*: it takes a login of a moment ago, and theirs is older.
    """
    told = {"actor": name, "role": ROLE_NAMES[role]}
    if role < least_role:
        raise PolicyDenied(
            "%s: %s has the role %s, and it takes %s"
            % (method[:60], name, ROLE_NAMES[role], ROLE_NAMES[least_role]),
            "ask somebody who may",
            told,
        )
    if is_late:
        raise PolicyDenied(
            "%s: it takes a login of the last %d minutes" % (method[:60], FRESH_MS // 60000),
            "log in again, and send it then",
            told,
        )


def without_actor(params: dict, name: str) -> dict:
    """Return *params* without ``actor``.  Raises ``PolicyDenied`` when that is not *name*: nobody
    acts in another name.
    """
    if params.get("actor", name) != name:
        raise PolicyDenied(
            "actor: %s acts in no other name" % name, "leave actor out", {"actor": name}
        )
    return {key: params[key] for key in params if key != "actor"}

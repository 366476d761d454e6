"""``clawlite swarm acl``: the configuration of an engine that gives each member of a swarm its own
login, so that the engine proves who sent a message (CKP 0.2.0, 10).  docs/swarm-machines.md says
how far each engine can.

A login speaks for one identity, or for several: those of the boards behind one gateway whose
clawlite.toml names the same ``user`` (docs/adr/0133).  It may do what each of them may.
"""

import re

from clawlite.core.base.errors import ClawError
from clawlite.linux.swarm_engines.engine import OPERATOR
from clawlite.protocols.swarm.swarm import Swarm

ONE_OF = "redis or nats"
PASSWORD = "PASSWORD"  # stands for one: none is made here
_LOGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_REDIS = (
    "ACL SETUSER %s on >" + PASSWORD + " ~claw:{%s}:* &claw:{%s}:* -@all +@stream +@hash +@pubsub "
    "+@transaction +@connection +info +config|get"
)
# what every member asks of the stream and of the object store that holds its state
_STREAMS = (
    "$JS.API.STREAM.INFO.%s",
    "$JS.API.STREAM.CREATE.%s",
    "$JS.API.STREAM.PURGE.%s",
    "$JS.API.STREAM.MSG.GET.%s",
    "$JS.API.DIRECT.GET.%s.>",
    "$JS.API.CONSUMER.*.%s",
    "$JS.API.CONSUMER.*.%s.>",
)
_AUTHORIZATION = "authorization {\n  users: [\n%s  ]\n}"
_NAMES = "$JS.API.STREAM.NAMES"
_USER = """\
    {
      user: "%s", password: "%s"
      permissions {
        publish { allow: [%s] }
        subscribe { allow: ["claw.v1.%s.here.*", "_INBOX.%s.%s.>"] }
        allow_responses: true
      }
    }
"""


def acl(engine: str, swarm: Swarm, users=None) -> str:
    """Return the text for *engine*: a command of Redis, or a block for the configuration of
    NATS.

    users  {identity of a member: its login}, where that has another name than the member
    Raises ``ClawError``: there is no such engine, or a login cannot have that name.
    """
    logins = _logins(swarm, users or {})
    if engine == "redis":
        return _REDIS % ((swarm.name,) * 3)
    if engine == "nats":
        return _AUTHORIZATION % "".join([_nats_user(swarm.name, *login) for login in logins])
    raise ClawError(
        "acl: expected %s, got %s" % (ONE_OF, engine[:40]),
        "a swarm on sqlite-wal needs none: its folder is its user's alone",
    )


def _logins(swarm: Swarm, users: dict) -> list:
    """Return [(login, identities for which it speaks), ...]; the last one is a person's."""
    found: dict = {}
    for one in swarm.members:
        login = users.get(one.identity) or one.identity
        if login == OPERATOR or not _LOGIN.fullmatch(login):
            raise ClawError(
                "acl: %s cannot be the login of %s" % (repr(login)[:80], one.identity),
                "name another user in [swarm] of its clawlite.toml: letters, digits, _, . and -",
            )
        found.setdefault(login, []).append(one.identity)
    return [*found.items(), (OPERATOR, [OPERATOR])]


def _quote(texts) -> list:
    return ['"%s"' % one for one in texts]


def _nats_user(swarm: str, login: str, names: list) -> str:
    stream = "CLAW_" + swarm.replace(".", "_")
    store = "OBJ_" + stream
    allowed = ["claw.v1.%s.log.%s" % (swarm, name) for name in names]
    allowed += ["claw.v1.%s.here.*" % swarm, _NAMES]
    allowed += [one % each for each in (stream, store) for one in _STREAMS]
    allowed.append("$O.%s.>" % stream)
    return _USER % (login, PASSWORD, ", ".join(_quote(allowed)), swarm, swarm, login)

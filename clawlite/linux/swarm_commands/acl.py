"""``clawlite swarm acl``: what an engine is to be told of the logins of a swarm, so that it proves
who speaks (CKP 0.2.0, 10).  docs/swarm.md says how far each engine can.
"""

from clawlite.core.base.errors import ClawError
from clawlite.core.swarm.swarm import Swarm
from clawlite.linux.swarm.engine import OPERATOR

ENGINES = ("redis", "nats")
PASSWORD = "PASSWORD"  # stands for one: none is made here
_REDIS = (
    "ACL SETUSER %s on >" + PASSWORD + " ~claw:{%s}:* &claw:{%s}:* -@all +@stream +@hash +@pubsub "
    "+@transaction +@connection +info"
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


def acl(engine: str, swarm: Swarm) -> str:
    """Return the text for *engine*: a command of Redis, or a block for the configuration of NATS.
    Raises ``ClawError``: there is no such engine.
    """
    if engine == "redis":
        return _REDIS % ((swarm.name,) * 3)
    if engine == "nats":
        names = [one.identity for one in swarm.members]
        users = [_nats_user(swarm.name, name) for name in (*names, OPERATOR)]
        return "authorization {\n  users: [\n%s  ]\n}" % "".join(users)
    raise ClawError(
        "acl: expected %s, got %s" % (" or ".join(ENGINES), engine[:40]),
        "a swarm on sqlite-wal needs none: its folder is its user's alone",
    )


def _nats_user(swarm: str, name: str) -> str:
    stream = "CLAW_" + swarm.replace(".", "_")
    store = "OBJ_" + stream
    allowed = ["claw.v1.%s.log.%s" % (swarm, name), "claw.v1.%s.here.*" % swarm, _NAMES]
    allowed += [one % each for each in (stream, store) for one in _STREAMS]
    allowed.append("$O.%s.>" % stream)
    return _USER % (name, PASSWORD, ", ".join('"%s"' % one for one in allowed), swarm, swarm, name)

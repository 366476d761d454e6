"""``clawlite swarm acl``: the configuration of an engine that gives each member of a swarm its own
login, so that the engine proves who sent a message (CKP 0.2.0, 10).  docs/swarm.md says how far
each engine can.
"""

from clawlite.core.base.errors import ClawError
from clawlite.core.swarm.swarm import Swarm
from clawlite.linux.swarm.engine import OPERATOR
from clawlite.linux.swarm.mqtt_log import base
from clawlite.linux.swarm.replicated_bus import keeper_of

ENGINES = ("redis", "nats", "mqtt")
_ONE_OF = " or ".join((", ".join(ENGINES[:-1]), ENGINES[-1]))
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
# mosquitto: the text is a file for acl_file, so all else is a comment there
_MQTT = """\
# mosquitto.conf:
#   allow_anonymous false
#   password_file /etc/mosquitto/{0}.passwd
#   acl_file /etc/mosquitto/{0}.acl
#   persistence true
#   autosave_on_changes true
#   autosave_interval 1
#   set_tcp_nodelay true
# A login for each agent, and one for a person's commands:
{1}
# This text is {0}.acl.  Only {2} writes the log: it keeps it.
"""
_MEMBER = (
    ("write", "log/%s"),
    ("write", "ask/%s/+"),
    ("read", "say/%s/+"),
    ("readwrite", "here/%s/+"),
    ("read", "here/+/+"),
    ("readwrite", "ping/+"),
    ("read", "keeper"),
    ("read", "out"),
    # a board, and the process that speaks for it
    ("readwrite", "status/%s"),
    ("readwrite", "up/%s"),
    ("readwrite", "down/%s"),
    ("read", "estop"),
)
_KEEPER = (
    ("read", "log/+"),
    ("read", "ask/+/+"),
    ("write", "say/+/+"),
    ("write", "keeper"),
    ("write", "out"),
    ("write", "estop"),
)


def acl(engine: str, swarm: Swarm) -> str:
    """Return the text for *engine*: a command of Redis, a block for the configuration of NATS, or
    an ACL file of mosquitto.  Raises ``ClawError``: there is no such engine.
    """
    if engine == "mqtt":
        return _mqtt(swarm)
    if engine == "redis":
        return _REDIS % ((swarm.name,) * 3)
    if engine == "nats":
        names = [one.identity for one in swarm.members]
        users = [_nats_user(swarm.name, name) for name in (*names, OPERATOR)]
        return "authorization {\n  users: [\n%s  ]\n}" % "".join(users)
    raise ClawError(
        "acl: expected %s, got %s" % (_ONE_OF, engine[:40]),
        "a swarm on sqlite-wal needs none: its folder is its user's alone",
    )


def _mqtt(swarm: Swarm) -> str:
    names, keeper = [*(one.identity for one in swarm.members), OPERATOR], keeper_of(swarm)
    add = "#   mosquitto_passwd -b /etc/mosquitto/%s.passwd %s " + PASSWORD
    lines = [_MQTT.format(swarm.name, "\n".join(add % (swarm.name, one) for one in names), keeper)]
    for name in names:
        lines.append("user " + name)
        for may, topic in (*_MEMBER, *(_KEEPER if name == keeper else ())):
            topic = topic % name if "%s" in topic else topic
            lines.append("topic %s %s%s" % (may, base(swarm.name), topic))
        lines.append("")
    return "\n".join(lines).rstrip()


def _nats_user(swarm: str, name: str) -> str:
    stream = "CLAW_" + swarm.replace(".", "_")
    store = "OBJ_" + stream
    allowed = ["claw.v1.%s.log.%s" % (swarm, name), "claw.v1.%s.here.*" % swarm, _NAMES]
    allowed += [one % each for each in (stream, store) for one in _STREAMS]
    allowed.append("$O.%s.>" % stream)
    return _USER % (name, PASSWORD, ", ".join('"%s"' % one for one in allowed), swarm, swarm, name)

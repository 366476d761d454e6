"""``clawlite swarm acl``: the configuration of an engine that gives each member of a swarm its own
login, so that the engine proves who sent a message (CKP 0.2.0, 10).  docs/swarm-machines.md says
how far each engine can.

A login speaks for one identity, or for several: those of the boards behind one gateway whose
clawlite.toml names the same ``user`` (docs/adr/0205).  It may do what each of them may.
"""

import re

from clawlite.core.base.errors import ClawError
from clawlite.core.swarm.swarm import Swarm
from clawlite.linux.swarm.replicated_bus import keeper_of
from clawlite.linux.swarm_engines.engine import OPERATOR
from clawlite.linux.swarm_engines.mqtt_log import base

ENGINES = ("redis", "nats", "mqtt", "emqx", "nats-mqtt")
ONE_OF = " or ".join((", ".join(ENGINES[:-1]), ENGINES[-1]))
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
# EMQX 5: the text is a file of authorization rules, so all else is a comment there
_EMQX = """\
%% emqx.conf:
%%   authorization {{
%%     no_match = deny
%%     sources = [{{ type = file, enable = true, path = "etc/{0}.acl.conf" }}]
%%   }}
%%   authentication = [{{ mechanism = password_based, backend = built_in_database }}]
%% A login for each agent, and one for a person's commands, in that database (Dashboard, Access
%% Control, Authentication, Users), each with a password of its own in place of PASSWORD:
%%   {1}
%% This text is {0}.acl.conf.  Only {2} writes the log: it keeps it.
"""
# nats-server with an MQTT listener: levels are tokens there, and what is delivered with QoS 1 comes
# over subjects of the server's own
_NATS_MQTT = """\
    {
      user: "%s", password: "%s"
      permissions {
        publish { allow: [%s] }
        subscribe { allow: [%s, "$MQTT.sub.>"] }
      }
    }
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


def acl(engine: str, swarm: Swarm, users=None) -> str:
    """Return the text for *engine*: a command of Redis, a block for the configuration of NATS (for
    "nats-mqtt" of its MQTT listener), or an ACL file of mosquitto or EMQX.

    users  {identity of a member: its login}, where that has another name than the member
    Raises ``ClawError``: there is no such engine, or a login cannot have that name.
    """
    logins = _logins(swarm, users or {})
    if engine == "mqtt":
        return _mqtt(swarm, logins)
    if engine == "emqx":
        return _emqx(swarm, logins)
    if engine == "nats-mqtt":
        return _AUTHORIZATION % "".join([_nats_mqtt_user(swarm, *login) for login in logins])
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


def _topics(swarm: Swarm, names: list) -> list:
    """Return [(read, write or readwrite, topic), ...] of the login that speaks for *names*."""
    found: dict = {}  # in order, each once
    for name in names:
        for may, topic in (*_MEMBER, *(_KEEPER if name == keeper_of(swarm) else ())):
            found[may, base(swarm.name) + (topic % name if "%s" in topic else topic)] = None
    return list(found)


def _may(swarm: Swarm, names: list, what: str) -> list:
    """Return the topics that the login for *names* may *what*, "read" or "write"."""
    return [topic for may, topic in _topics(swarm, names) if what in may]


def _mqtt(swarm: Swarm, those: list) -> str:
    add = "#   mosquitto_passwd -b /etc/mosquitto/%s.passwd %s " + PASSWORD
    logins = "\n".join(add % (swarm.name, login) for login, _ in those)
    lines = [_MQTT.format(swarm.name, logins, keeper_of(swarm))]
    for login, names in those:
        lines.append("user " + login)
        lines += ["topic %s %s" % rule for rule in _topics(swarm, names)]
        lines.append("")
    return "\n".join(lines).rstrip()


def _emqx(swarm: Swarm, logins: list) -> str:
    all_logins = " ".join(login for login, _ in logins)
    lines = [_EMQX.format(swarm.name, all_logins, keeper_of(swarm))]
    for login, names in logins:
        for what, action in (("write", "publish"), ("read", "subscribe")):
            topics = ", ".join(_quoted(_may(swarm, names, what)))
            lines.append('{allow, {username, "%s"}, %s, [%s]}.' % (login, action, topics))
    return "\n".join(lines)


def _nats_mqtt_user(swarm: Swarm, login: str, names: list) -> str:
    subjects = [
        _quoted(one.replace("/", ".").replace("+", "*") for one in _may(swarm, names, what))
        for what in ("write", "read")
    ]
    return _NATS_MQTT % (login, PASSWORD, *(", ".join(some) for some in subjects))


def _quoted(texts) -> list:
    return ['"%s"' % one for one in texts]


def _nats_user(swarm: str, login: str, names: list) -> str:
    stream = "CLAW_" + swarm.replace(".", "_")
    store = "OBJ_" + stream
    allowed = ["claw.v1.%s.log.%s" % (swarm, name) for name in names]
    allowed += ["claw.v1.%s.here.*" % swarm, _NAMES]
    allowed += [one % each for each in (stream, store) for one in _STREAMS]
    allowed.append("$O.%s.>" % stream)
    return _USER % (login, PASSWORD, ", ".join(_quoted(allowed)), swarm, swarm, login)

"""What clawlite.toml says of the engine of a swarm: the section [swarm]."""

import urllib.parse
from typing import Literal

from clawlite.core.net.netaddress import address_of, is_loopback
from clawlite.host.base.problems import quoted
from clawlite.host.models.common import Strict, Text

# scheme -> (backend of the manifest, whether it is TLS, port)
SCHEMES = {
    "redis": ("redis", False, 6379),
    "rediss": ("redis", True, 6379),
    "nats": ("nats", False, 4222),
    "tls": ("nats", True, 4222),
    "mqtt": ("mqtt", False, 1883),
    "mqtts": ("mqtt", True, 8883),
}
MQTT = "mqtt"
KINDS = ("redis", "nats", MQTT)  # in the order of the numbers in linux/swarm/engine.py
BACKENDS = KINDS[:2]  # of a manifest: MQTT is a transport, beside the backend nats


class SwarmSettings(Strict):
    """Where the engine is, and who this agent is there.

    address     redis:// or nats:// HOST:PORT, rediss:// and tls:// over TLS; mqtt:// and, over TLS,
                mqtts:// with the transport mqtt; of this machine, where nothing is said
    transport   "mqtt": the engine of the backend nats is an MQTT broker
    user        of its login;  credential: the name of the secret that is its password
    operator_credential
                the name of the secret that is the password of the login "operator", with which
                commands of a person give tasks, stop and resume
    plain       the passwords may go over a line without TLS
    """

    address: Text | None = None
    transport: Literal["mqtt"] | None = None
    user: Text | None = None
    credential: Text | None = None
    operator_credential: Text | None = None
    plain: bool = False

    @staticmethod
    def more(value: dict, report) -> None:
        address = value.get("address")
        if not isinstance(address, str):
            return
        try:
            _, secure, host, _ = place(address)
        except ValueError as e:
            report(("address",), "", str(e), quoted(address))
            return
        own = host == "localhost" or address_of(host) and is_loopback(address_of(host))
        if secure or own or value.get("plain"):
            return
        for name in ("credential", "operator_credential"):
            if name in value:
                report(
                    (name,),
                    "its password would go over a line that others may read",
                    key=True,
                    hint="write an address with TLS, or plain = true, where that line is your own",
                )


def place(address: str) -> tuple:
    """Return (backend, secure, host, port).  Raises ``ValueError``."""
    known = " or ".join(scheme + "://" for scheme in SCHEMES)
    try:
        url = urllib.parse.urlsplit(address)
        port = url.port
    except ValueError:
        raise ValueError("%s HOST, and perhaps :PORT" % known) from None
    if (
        url.scheme not in SCHEMES
        or not url.hostname
        or url.username is not None
        or url.path not in ("", "/")
        or url.query
        or url.fragment
        or port == 0
    ):
        raise ValueError("%s HOST, and perhaps :PORT" % known)
    backend, secure, usual = SCHEMES[url.scheme]
    return backend, secure, url.hostname, port or usual


def problems(said, backend: str) -> list:
    """Return [(path in clawlite.toml, message, expected, found), ...] of a [swarm], or None, that
    does not fit the *backend* of the manifest.
    """
    if said is None:
        return []
    if backend not in BACKENDS:
        return [((), 'backend "%s" has no engine to be found' % backend, "no section [swarm]", "")]
    if said.transport and backend != "nats":
        message = 'MQTT takes the place of the engine nats, and the backend is "%s"' % backend
        return [(("transport",), message, "backend: nats in the Swarm", "")]
    engine = said.transport or backend
    if said.address is not None and place(said.address)[0] != engine:
        if engine == "nats" and place(said.address)[0] == MQTT:
            message = "an address of MQTT without the transport"
            return [(("address",), message, 'transport = "mqtt" beside it', quoted(said.address))]
        return [(("address",), "", "an address of %s" % engine, quoted(said.address))]
    if said.operator_credential is not None and engine == "redis":
        message = "%s does not know who wrote an entry: one login is for all" % backend
        return [(("operator_credential",), message, "no operator_credential", "")]
    return []


def record(said, backend: str) -> list | None:
    """Return [kind, secure, host, port, user, credential, operator_credential] of the engine; None
    without one.
    """
    if backend not in BACKENDS:
        return None
    said = said or SwarmSettings()
    engine = said.transport or backend
    _, *where = place(said.address or engine + "://127.0.0.1")
    secrets = said.credential or "", said.operator_credential or ""
    return [KINDS.index(engine), *where, said.user or "", *secrets]

"""Settings of a swarm in clawlite.toml: the section [swarm], its engine and its remote agents."""

from typing import Any

from clawlite.core.base.errors import ClawError
from clawlite.host.base.problems import enquote
from clawlite.host.models.common import Strict, Text
from clawlite.host.models.server_address import split_address
from clawlite.protocols.net.netaddress import address_of, is_loopback
from clawlite.protocols.net.netrules import parse_url

# scheme -> (backend of the manifest, whether it is TLS, port)
SCHEMES = {
    "redis": ("redis", False, 6379),
    "rediss": ("redis", True, 6379),
    "nats": ("nats", False, 4222),
    "tls": ("nats", True, 4222),
}
_OPEN = "its password would be sent unencrypted"
_TLS = "write an address with TLS, or plain = true, where that line is your own"
# of a manifest, in the order of the numbers in linux/swarm_engines/engine.py
BACKENDS = ("redis", "nats")
# settings of versions that had MQTT as an engine, and the next step (docs/adr/0137)
_GONE = {
    "transport": "leave it out: the backend nats speaks to a NATS server, redis to Redis or Valkey",
    "board": "leave it out, and add [gateway]: a board is in a swarm through its gateway",
}


class RemoteAgent(Strict):
    """A member that is a remote agent, which speaks A2A.

    url         of JSON-RPC, as its card has it
    credential  the name of the secret that is its bearer token
    plain       the token may go over a line without TLS
    engine_credential
                the name of the secret that is the password of its login at the engine
    """

    url: Text
    credential: Text | None = None
    plain: bool = False
    engine_credential: Text | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        url = value.get("url")
        if not isinstance(url, str):
            return
        try:
            scheme, host, _, _ = parse_url(url)
        except ClawError as e:
            report(("url",), e.message, "https://HOST/PATH", enquote(url))
            return
        if scheme == "http" and not _is_own(host) and "credential" in value:
            if not value.get("plain"):
                report(("credential",), _OPEN, key=True, hint=_TLS)


class SwarmSettings(Strict):
    """The address of the engine, and this agent's login there.

    address     redis:// or nats:// HOST:PORT, rediss:// and tls:// over TLS; this machine
                when it is left out
    user        name of its login;  credential: the name of the secret that is its password
    operator_credential
                the name of the secret that is the password of the login "operator", with which
                commands of a person give tasks, stop and resume
    plain       the passwords may be sent without TLS
    remote      {identity of a member: RemoteAgent}
    transport, board
                refused, with what takes their place
    """

    address: Text | None = None
    user: Text | None = None
    credential: Text | None = None
    operator_credential: Text | None = None
    plain: bool = False
    remote: dict[str, RemoteAgent] | None = None
    transport: Any = None
    board: Any = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        for name, hint in _GONE.items():
            if name in value:
                report((name,), "MQTT is no engine of swarms any more", key=True, hint=hint)
        address = value.get("address")
        if not isinstance(address, str):
            return
        try:
            _, secure, host, _ = parse_address(address)
        except ValueError as e:
            report(("address",), "", str(e), enquote(address))
            return
        if secure or _is_own(host) or value.get("plain"):
            return
        for name in ("credential", "operator_credential"):
            if name in value:
                report((name,), _OPEN, key=True, hint=_TLS)


def _is_own(host: str) -> bool:
    return host == "localhost" or bool(address_of(host) and is_loopback(address_of(host)))


def parse_address(address: str) -> tuple:
    """Return (backend, secure, host, port).  Raises ``ValueError``."""
    known = " or ".join(scheme + "://" for scheme in SCHEMES)
    scheme, host, port = split_address(address, SCHEMES, known + " HOST, and perhaps :PORT")
    backend, secure, usual = SCHEMES[scheme]
    return backend, secure, host, port or usual


def problems(said, backend: str) -> list:
    """Return [(path in clawlite.toml, message, expected, found), ...] of a [swarm], or None, that
    does not fit the *backend* of the manifest.
    """
    if said is None:
        return []
    if backend not in BACKENDS:
        if said == SwarmSettings(remote=said.remote) and said.remote:
            return []
        return [((), 'backend "%s" has no engine to be found' % backend, "no section [swarm]", "")]
    if said.address is not None and parse_address(said.address)[0] != backend:
        return [(("address",), "", "an address of %s" % backend, enquote(said.address))]
    if said.operator_credential is not None and backend == "redis":
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
    _, *where = parse_address(said.address or backend + "://127.0.0.1")
    secrets = said.credential or "", said.operator_credential or ""
    return [BACKENDS.index(backend), *where, said.user or "", *secrets]


def remotes_problems(said, members: list, own: str, backend: str, leads: list) -> list:
    """Return the problems, as ``problems``, of [swarm.remote] in a swarm of *members*, identities,
    of which *leads* hand out what they are given and *own* is the agent of the manifest.
    """
    found = []
    for name, remote in (said and said.remote or {}).items():
        path: tuple = ("remote", name)
        if name not in members:
            known = "one of " + ", ".join(one for one in members if one != own)
            found.append((path, "is no member of the swarm", known, ""))
        elif name == own:
            found.append((path, "is the agent of this manifest", "another member", ""))
        elif name in leads:
            message = "a remote agent does tasks, and divides none"
            found.append((path, message, "another role in the Swarm", ""))
        elif backend == "in-process":
            message = "a remote agent is spoken for by a process of its own"
            found.append((path, message, "another backend than in-process", ""))
        elif remote.engine_credential is not None and backend != "nats":
            path += ("engine_credential",)
            message = "%s has no login for each identity" % backend
            found.append((path, message, "no engine_credential", ""))
    return found


def remote_record(said, name: str) -> list:
    """Return [] for a member that is here, and [[secure, host, port, target, credential,
    engine_credential]] for one that is a remote agent.
    """
    remote = (said and said.remote or {}).get(name)
    if remote is None:
        return []
    scheme, *where = parse_url(remote.url)
    secrets = remote.credential or "", remote.engine_credential or ""
    return [[scheme == "https", *where, *secrets]]

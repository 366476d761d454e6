"""Where a connection may go: the grammar of URLs, a sandbox's list of hosts, and the decisions that
follow from both.

1. There is one decision for every caller: ``decide_host`` before a name is looked up, and
   ``decide_addresses`` before a connection is made.
2. A spelling that two programs could read in two ways is refused, never repaired, so that the check
   and the connection see the same host.
3. Every address of a name is checked; one bad address refuses the name.  The caller connects to a
   checked address, and to nothing else.
4. Messages never contain an address that a name led to: else a model could map a private network.
"""

from clawlite.core.base.errors import SandboxDenied
from clawlite.protocols.net.netaddress import MAPPED, address_of, is_public
from clawlite.protocols.sandbox.profile import ALLOW_ALL, ALLOWLIST

MAX_URL = 8192
MAX_HOST = 253  # RFC 1035, 2.3.4
_MAX_LABEL = 63

PORTS = {"http": 80, "https": 443}
_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_")


class OwnAddress:
    """The rules of *profile* for an address that stands in the manifest, or in its settings: it may
    be private.
    """

    block_private = False

    def __init__(self, profile) -> None:
        self.name, self.network, self.hosts = profile.name, profile.network, profile.hosts


def parse_url(text: str) -> tuple:
    """Return (scheme, host, port, target) of an http or https URL.

    text    at most 8192 characters
    scheme  "http" or "https"; port 1..65535
    host    lower-case name, address a.b.c.d, or IPv6 address without its brackets
    target  path and query, with all but ASCII percent-encoded; the fragment is dropped
    Raises ``SandboxDenied`` for anything else; the grammar is in docs/network.md.
    """
    if not isinstance(text, str) or not 0 < len(text) <= MAX_URL:
        _refuse("expected a URL of 1 to %d characters" % MAX_URL)
    if min(text) <= " " or "\x7f" in text or "\\" in text:
        _refuse("a space, a control character or a backslash in a URL", "write it as %XX")
    scheme, mark, rest = text.partition("://")
    scheme = scheme.lower()
    if not mark or scheme not in PORTS:
        _refuse("expected a URL that begins with http:// or https://")
    end = len(rest)
    for mark in "/?#":
        at = rest.find(mark)
        if 0 <= at < end:
            end = at
    host, port = parse_authority(rest[:end], PORTS[scheme])
    target = rest[end:].partition("#")[0]
    return scheme, host, port, _encode(target if target.startswith("/") else "/" + target)


def parse_authority(text: str, port: int | None) -> tuple:
    """Return (host, port) of ``host`` or ``host:port``.

    port  int, used when *text* has none; None: *text* must have one

    Raises ``SandboxDenied``.
    """
    if "@" in text:
        _refuse("a user name or password (@) in a URL", "give credentials in a header")
    if text.startswith("["):
        host, mark, rest = text[1:].partition("]")
        address = address_of(host)
        if not mark or address is None or len(address) == 4:
            _refuse("expected an IPv6 address in brackets")
        if address is not None and address.startswith(MAPPED):
            _refuse("an IPv4 address inside an IPv6 address", "write the IPv4 address")
        host = host.lower()
        mark, digits = rest[:1], rest[1:]
        if mark not in ("", ":"):
            _refuse("expected a port after the brackets, or nothing")
    else:
        host, mark, digits = text.partition(":")
        host = parse_host(host)
    if mark or port is None:
        if (
            not 0 < len(digits) <= 5
            or digits.strip("0123456789")
            or digits[0] == "0"
            or int(digits) > 65535
        ):
            _refuse("expected a port from 1 to 65535 after the host %s" % host)
        port = int(digits)
    return host, port


def parse_host(text: str) -> str:
    """Return the host *text* in lower case: a name of 1..253 ASCII characters in labels of 1..63,
    or a.b.c.d.

    Raises ``SandboxDenied``, also for every other spelling of an IPv4 address (0x7f.1, 0177.0.0.1,
    2130706433, 127.1)."""
    if not 0 < len(text) <= MAX_HOST:
        _refuse("expected a host name of 1 to %d characters" % MAX_HOST)
    # before lower(): the Kelvin sign's lower case is an ASCII k
    if not _NAME.issuperset(text):
        _refuse(
            "a host name holds something other than letters, digits, '-', '_' and '.'",
            "a name with other letters is written as xn--...",
        )
    host = text.lower()
    labels = host.split(".")
    for label in labels:
        if not 0 < len(label) <= _MAX_LABEL or label[0] == "-" or label[-1] == "-":
            _refuse(
                "%r is no host name: its labels have 1 to %d characters, and no '-' at an end"
                % (host[:60], _MAX_LABEL)
            )
    if (labels[-1].isdigit() or labels[-1].startswith("0x")) and address_of(host) is None:
        _refuse(
            "%r is no host: an IPv4 address is written as four numbers from 0 to 255" % host[:60]
        )
    return host


def authority(scheme: str, host: str, port: int) -> str:
    """Return *host* and *port* as the value of the header Host."""
    if ":" in host:
        host = "[%s]" % host
    return host if PORTS[scheme] == port else "%s:%d" % (host, port)


def is_listed(profile, host: str) -> bool:
    """Return whether the sandbox *profile* lists *host*, of ``parse_url``.

    ``*.example.com`` covers every name below example.com, and never an address.
    Cost    one search of ``profile.hosts`` for each label.
    """
    if profile.network != ALLOWLIST:
        return profile.network == ALLOW_ALL
    if host in profile.hosts:
        return True
    address = address_of(host)
    if address is not None:  # an IPv6 address has many spellings
        for listed in profile.hosts:
            if ":" in listed and address_of(listed.strip("[]")) == address:
                return True
        return False
    at = host.find(".")
    while at >= 0:
        if "*" + host[at:] in profile.hosts:
            return True
        at = host.find(".", at + 1)
    return False


def decide_host(profile, host: str) -> None:
    """Refuse a *host* (from ``parse_url``) that *profile* does not let a tool reach, before its
    name is looked up.

    Raises ``SandboxDenied``.
    """
    if not is_listed(profile, host):
        if profile.network == ALLOWLIST:
            raise refusal(
                profile,
                host,
                "host",
                "%s is not among the sandbox's allowed_hosts" % host,
                "list it there, if tools may reach it",
            )
        raise refusal(
            profile,
            host,
            "network",
            "the sandbox allows no network",
            "capabilities.network.mode of the sandbox can allow it",
        )
    address = address_of(host)
    if address is not None or host[host.rfind(".") + 1 :] in ("localhost", "local", "internal"):
        decide_addresses(profile, host, [address or bytes(4)])  # such a name is never public


def decide_addresses(profile, host: str, addresses: list) -> list:
    """Return *addresses*, which are all addresses of *host*, when they may be connected to.

    addresses  list of 4 or 16 bytes
    Raises ``SandboxDenied`` when one is not public and the sandbox blocks private addresses.
    """
    if profile.block_private:
        for address in addresses:
            if not is_public(address):
                raise refusal(
                    profile,
                    host,
                    "private address",
                    "%s is, or leads to, an address that is not public" % host,
                    "ssrf_protection.block_private_ips of the sandbox keeps tools from "
                    "private networks",
                )
    return addresses


def refusal(profile, host: str, reason: str, sentence: str, hint: str = "") -> SandboxDenied:
    """Return the error of a connection to *host* that the sandbox *profile* forbids."""
    return SandboxDenied(
        "network refused: " + sentence,
        hint,
        {"sandbox": profile.name or None, "reason": reason, "host": host},
    )


def _refuse(sentence: str, hint: str = "") -> None:
    raise SandboxDenied("network refused: " + sentence, hint, {"reason": "url"})


def _encode(target: str) -> str:
    if max(target) <= "~":
        return target
    try:
        data = target.encode()
    except UnicodeError:
        _refuse("a URL is no text that has a UTF-8 form")
    return "".join([chr(byte) if byte < 128 else "%%%02X" % byte for byte in data])

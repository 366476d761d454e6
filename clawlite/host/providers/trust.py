"""What a device connects to, and by whose word: ``[gateway]`` and ``[tls]`` of clawlite.toml,
section 21 of an image.

1. A board has no list of certificate authorities.  ``[tls] ca`` names files with those whose
   signature counts for this device's providers, or for its gateway on the LAN; a Linux machine goes
   by them in place of its own list then.
2. A file holds certificates as PEM, or one as DER.  A private key in it is refused: settings are
   compiled into images.
"""

import binascii
import re
from typing import Annotated, Literal

from msgspec import Meta

from clawlite.host.base.problems import enquote, value_text
from clawlite.host.documents.sources import Refused
from clawlite.host.models.common import Name, Strict, Text
from clawlite.host.providers import provider_order

MAX_FILE = 65536  # bytes
# of all, as DER: a board reads them at each connection
MAX_AUTHORITIES, MAX_BYTES = 8, 16384
# a watchdog must wait so long for a board with TLS: in one step it does sums for seconds
HANDSHAKE_MS = 8000
_PEM = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----\s*([A-Za-z0-9+/=\s]*?)-----END \1-----")
_ADDRESS = re.compile(r"(?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}")


class Gateway(Strict):
    """The gateway that asks the remote providers for this device, so that the device holds no key.
    It is at the other end of the device's line, or on the LAN.

    obeys_stop_of  the name of a swarm: while a person has stopped it, the gateway tells this device
                   so, and no tool with side effects begins here
    roles          for whom it may speak, on the channels that it carries and at its page: for
                   users, if nothing is said
    """

    wire: Literal["line", "tcp"] = "line"
    address: Text | None = None
    tls: bool | None = None
    obeys_stop_of: Name | None = None
    roles: list[Literal["user", "admin"]] | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        is_tcp = value.get("wire") == "tcp"
        roles = value.get("roles")
        if isinstance(roles, list) and "user" not in roles:
            wanted = '["user"], or ["user", "admin"]'
            report(("roles",), "", wanted, value_text(roles))
        address = value.get("address")
        if is_tcp and address is None:
            report(
                (),
                'the field "address" is missing',
                hint='where clawlite gateway --listen listens: address = "192.168.1.2:7420"',
            )
        for field in ("address", "tls"):
            if field in value and not is_tcp:
                report(
                    (field,),
                    f'only a gateway with wire = "tcp" has {field}',
                    hint=f"remove {field}, or set the wire to tcp",
                    key=True,
                )
        if (
            isinstance(address, str)
            and address
            and not (_ADDRESS.fullmatch(address) and 0 < int(address.rpartition(":")[2]) < 65536)
        ):
            report(("address",), "", "HOST:PORT, such as 192.168.1.2:7420", enquote(address))


class TLS(Strict):
    """ca: files with the certificate authorities of what this device connects to."""

    ca: Annotated[list[Text], Meta(min_length=1)]


def authorities(sources, names: list, place, problems) -> list:
    """Return the certificates (DER) in the files *names*; other contents become *problems*."""
    found = []
    for index, name in enumerate(names):
        try:
            ders = certificates(sources.read(name, MAX_FILE))
        except Refused as e:
            problems.add(place, ("tls", "ca", index), e.message, hint=e.hint)
            continue
        except ValueError as e:
            problems.add(
                place,
                ("tls", "ca", index),
                f"{enquote(name)}: {e}",
                hint="name a PEM file that is there",
            )
            continue
        found += [der for der in ders if der not in found]
    if len(found) > MAX_AUTHORITIES or sum(map(len, found)) > MAX_BYTES:
        problems.add(
            place,
            ("tls", "ca"),
            f"{len(found)} certificates of {sum(map(len, found)):,} bytes",
            f"at most {MAX_AUTHORITIES}, of {MAX_BYTES:,} bytes in all",
            hint="name only those that sign for the hosts of this agent",
        )
    return found


def certificates(data: bytes) -> list:
    """Return the certificates (DER) in *data*, PEM or DER.  Raises ``ValueError`` that says what
    is wrong.
    """
    if b"PRIVATE KEY" in data:
        raise ValueError("a private key has no place here; name the certificate alone")
    if data[:1] == b"\x30":
        found = [data]
    else:
        try:
            found = [
                binascii.a2b_base64(body, strict_mode=False)
                for label, body in _PEM.findall(data)
                if label == b"CERTIFICATE"
            ]
        except binascii.Error:
            found = []
    if not found or any(_length(der) != len(der) for der in found):
        raise ValueError(
            "expected certificates, as PEM (-----BEGIN CERTIFICATE-----) or one as DER"
        )
    return found


def _length(der: bytes) -> int:
    """Return how long *der*, a sequence, says that it is (X.690, 8.1.3)."""
    if len(der) < 4 or der[0] != 0x30 or not 0x81 <= der[1] <= 0x83:
        return -1
    count = der[1] - 0x80
    return 2 + count + int.from_bytes(der[2 : 2 + count], "big")


def hosts(manifest) -> list:
    """Return [(place, path, endpoint)] of what this device itself reaches by https."""
    settings = manifest.settings
    if settings.gateway:
        return (
            [(settings.place, ("gateway", "tls"), settings.gateway.address)]
            if settings.gateway.tls
            else []
        )
    found = [
        (provider.place, ("endpoint",), provider.spec.endpoint)
        for provider in provider_order.providers(manifest)
        if provider_order.is_remote(provider)
    ]
    found += [
        (settings.place, ("oauth2", name, "endpoint"), server.endpoint)
        for name, server in settings.oauth2.items()
    ]
    return [
        (place, path, endpoint)
        for place, path, endpoint in found
        if endpoint.partition(":")[0].lower() == "https"
    ]


def section(manifest):
    """Return section 21: [where the gateway is or None, [DER]]; None when there is nothing to
    say.  Mistakes go to the manifest's problems.
    """
    settings = manifest.settings
    gateway, ders = settings.gateway, settings.authorities
    if ders and not hosts(manifest):
        manifest.problems.add(
            settings.place,
            ("tls",),
            "nothing that this agent connects to speaks TLS",
            hint="remove it",
            key=True,
        )
    if gateway and gateway.tls and not ders:
        manifest.problems.add(
            settings.place,
            ("gateway", "tls"),
            "no certificate authority is named",
            hint="name the certificate of the gateway, or its authority: [tls] "
            'ca = ["gateway.pem"]',
            key=True,
        )
    where = None
    if gateway and gateway.wire == "tcp":
        host, _, port = gateway.address.rpartition(":")
        where = [host.strip("[]"), int(port), bool(gateway.tls)]
    return [where, ders] if where or ders else None

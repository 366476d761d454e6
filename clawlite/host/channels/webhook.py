"""Channels of type webhook: where they listen, and the section [webhook] of clawlite.toml."""

from typing import Annotated

from clawlite.host.base.problems import enquote
from clawlite.host.channels.channel_type import ChannelType, Via
from clawlite.host.models.common import Strict, text_like
from clawlite.protocols.net.netaddress import address_of


class Webhook(Strict):
    """Where channels of type webhook listen: an address of this machine and a port; via "gateway":
    of the machine of a board's gateway.
    """

    address: Annotated[
        str,
        text_like(
            r"([0-9.]+|\[[0-9A-Fa-f:]+\]):[0-9]{1,5}\Z", "an address and a port", "127.0.0.1:8787"
        ),
    ] = "127.0.0.1:8787"
    via: Via = None


def refuse(manifest, channel, problem) -> None:
    """Add a problem for every webhook but the first."""
    first = next(one for one in manifest.channels if one.spec.type == "webhook")
    if channel is not first:
        problem(
            ("type",),
            "an agent has one webhook",
            hint="remove this one: its callers say who they are",
        )


def check(manifest) -> None:
    """Add a problem for an address that cannot be listened at."""
    address = manifest.settings.channels["webhook"].address
    host, _, port = address.rpartition(":")
    if address_of(host.strip("[]")) is None or int(port) > 65535:
        manifest.problems.add(
            manifest.settings.place,
            ("webhook", "address"),
            "",
            "an address of this machine and a port",
            enquote(address),
        )


def record(manifest, channel) -> list:
    """Return the record for linux/channels/webhook.py."""
    host, _, port = manifest.settings.channels["webhook"].address.rpartition(":")
    return [host.strip("[]"), int(port), channel.spec.auth.secret_ref]


TYPE = ChannelType(
    "webhook",
    ("webhook",),
    is_remote=True,
    settings=Webhook,
    refuse=refuse,
    check=check,
    record=record,
    relays="listen",
)

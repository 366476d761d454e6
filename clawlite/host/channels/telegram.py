"""Channels of type telegram: the server of the Bot API, and the section [telegram] of
clawlite.toml.
"""

from typing import Annotated

from clawlite.core.base.errors import SandboxDenied
from clawlite.core.net.netaddress import address_of, is_loopback
from clawlite.core.net.netrules import parse_url
from clawlite.host.channels.channel_type import ChannelType
from clawlite.host.models.common import Strict, text_like


class Telegram(Strict):
    """Where the Bot API is asked: another server of it than Telegram's own."""

    base_url: Annotated[
        str,
        text_like(
            r"https?://[^\s?#@/]+(/[^\s?#]*)?\Z",
            "a URL without a query",
            "https://api.telegram.org",
        ),
    ] = "https://api.telegram.org"


def check(manifest) -> None:
    """Add a problem for a server that cannot be asked."""
    place, path = manifest.settings.place, ("telegram", "base_url")
    try:
        scheme, host, _, _ = parse_url(manifest.settings.channels["telegram"].base_url)
        if scheme != "https" and not is_loopback(address_of(host)):
            manifest.problems.add(
                place,
                path,
                "a token goes over https alone, or to this machine",
                hint="write https://, or leave base_url out",
            )
    except SandboxDenied as e:
        manifest.problems.add(place, path, e.message, hint=e.hint)


def record(manifest, channel) -> list | None:
    """Return what linux/channels/telegram.py is given, None for what ``check`` has refused."""
    try:
        scheme, host, port, target = parse_url(manifest.settings.channels["telegram"].base_url)
    except SandboxDenied:
        return None
    return [scheme, host, port, target.rstrip("/"), channel.spec.auth.secret_ref]


TYPE = ChannelType(
    "telegram",
    ("polling",),
    later=("webhook",),
    is_remote=True,
    features=("typing_indicator", "read_receipts", "threads"),
    settings=Telegram,
    check=check,
    record=record,
)

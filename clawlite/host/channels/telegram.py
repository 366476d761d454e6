"""Channels of type telegram: the server of the Bot API, and the section [telegram] of
clawlite.toml.
"""

from typing import Annotated

from clawlite.core.base.errors import SandboxDenied
from clawlite.host.base.problems import enquote
from clawlite.host.channels.channel_type import ChannelType, Interrupted, Via
from clawlite.host.models.common import Duration, Strict, seconds_of, text_like
from clawlite.protocols.net.netaddress import address_of, is_loopback
from clawlite.protocols.net.netrules import parse_url


class Telegram(Strict):
    """Channels of type telegram.

    base_url     where the Bot API is asked: another server of it than Telegram's own
    max_age      older messages do not act, and their senders are told
    interrupted  "repeat": a message is begun again although a tool with side effects had begun for
                 it when the agent ended
    via          "gateway": the gateway of a board speaks to Telegram
    """

    base_url: Annotated[
        str,
        text_like(
            r"https?://[^\s?#@/]+(/[^\s?#]*)?\Z",
            "a URL without a query",
            "https://api.telegram.org",
        ),
    ] = "https://api.telegram.org"
    max_age: Duration = "1h"
    interrupted: Interrupted = "give-up"
    via: Via = None


def refuse(manifest, channel, problem) -> None:
    """Add a problem for each group that is to have a role: a role belongs to a person."""
    control = channel.spec.access_control
    for field in ("allowed_ids", "roles"):
        for index, one in enumerate(control and getattr(control, field) or ()):
            id = one if isinstance(one, str) else one.id
            if id.startswith("-"):
                problem(
                    ("access_control", field, index),
                    "this is a group, and everybody in it would have that role",
                    "the id of a person",
                    enquote(id[:40]),
                    hint="name the people: the log has the id of whoever was refused "
                    "(channel.refused)",
                )


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
    said = manifest.settings.channels["telegram"]
    return [
        scheme,
        host,
        port,
        target.rstrip("/"),
        channel.spec.auth.secret_ref,
        seconds_of(said.max_age),
        said.interrupted == "give-up",
    ]


TYPE = ChannelType(
    "telegram",
    ("polling",),
    later=("webhook",),
    is_remote=True,
    features=("typing_indicator", "read_receipts", "threads"),
    settings=Telegram,
    refuse=refuse,
    check=check,
    record=record,
    relays="speak to Telegram",
)

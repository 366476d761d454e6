"""Channels of type cli: the console."""

from clawlite.host.channels.channel_type import ChannelType


def refuse(manifest, channel, problem) -> None:
    """Add a problem for each part of *channel* that cannot be kept."""
    control = channel.spec.access_control
    if control and control.mode == "pairing":
        problem(
            ("access_control", "mode"),
            "whoever holds the wire is trusted: nobody is paired there",
            '"open", "allowlist" or "role-based"',
            '"pairing"',
        )


TYPE = ChannelType("cli", ("stdio",), refuse=refuse)

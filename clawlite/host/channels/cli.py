"""Channels of type cli: the console."""

from clawlite.host.channels.channel_type import ChannelType


def refuse(manifest, channel, problem) -> None:
    """Add a problem for each part of *channel* that cannot be kept."""
    control = channel.spec.access_control
    if control and control.mode == "pairing":
        problem(
            ("access_control", "mode"),
            "whoever can reach the wire is trusted; there is no pairing",
            '"open", "allowlist" or "role-based"',
            '"pairing"',
        )


TYPE = ChannelType("cli", ("stdio",), refuse=refuse)

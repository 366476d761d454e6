"""Channels, and who is asked for approvals, as the compiler sees them."""

from clawlite.core.image.image import CHANNELS
from clawlite.host.channels import approvals, channels
from clawlite.host.channels.model import ChannelSpec
from clawlite.host.models.feature import Feature
from clawlite.host.policy.secret_refs import check_secret_ref
from clawlite.protocols.image.features import APPROVALS


def check(manifest, at_use: bool) -> None:
    channels.refuse(manifest)
    approvals.check(manifest)
    for channel in manifest.channels:
        check_secret_ref(manifest, channel)
    for tool in manifest.tools:
        if tool.origin == "registry" and tool.name == "message" and not at_use:
            channels.check_message(manifest, tool)


def compile_sections(manifest, work) -> dict:
    return {CHANNELS: channels.section(manifest), APPROVALS: approvals.section(manifest)}


def fit(manifest, board, other, problems) -> None:
    for channel in manifest.channels:
        if channel.spec.processing:
            problems.add_excess(
                channel.place,
                ("processing", "max_message_length"),
                channel.spec.processing.max_message_length,
                board.messages.max_message_bytes,
                board.name,
            )
    if board.runtime == "micropython" and manifest.settings.approvals.notify:
        problems.add(
            manifest.settings.place,
            ("approvals", "notify"),
            f"{board.name} sends no notices",
            hint="remove it; a gateway tells the admins of its channels",
            key=True,
        )


def find_notes(manifest, board, free_bytes) -> list:
    """Return notes on the Channels of which *board* runs one turn at a time."""
    return [
        (
            channel.where("trigger", "max_parallel"),
            f"{board.name} runs the turns of {channel.name} one after the other: "
            f"max_parallel: {channel.spec.trigger.max_parallel} is without effect",
        )
        for channel in manifest.channels
        if board.runtime == "micropython"
        and channel.spec.type in channels.TYPES
        and channels.TYPES[channel.spec.type].kind.board
        and channel.spec.trigger
        and channel.spec.trigger.max_parallel > 1
    ]


FEATURE = Feature(
    "Channel",
    ChannelSpec,
    check=check,
    compile=compile_sections,
    needs=channels.find_needs,
    fit=fit,
    note=find_notes,
)

"""Channels of type cron: schedules, and the section [cron] of clawlite.toml with time_zone."""

import re
from typing import Literal

from clawlite.core.teach import cron_fields
from clawlite.host.base.problems import did_you_mean, enquote
from clawlite.host.channels import zone_changes
from clawlite.host.channels.channel_type import ChannelType, Interrupted
from clawlite.host.models.common import Strict, Text

MISSED = ("skip", "once", "all")
_ZONE = re.compile(r"UTC|[A-Za-z]+(?:/[A-Za-z0-9_+-]+){1,2}")


class Cron(Strict):
    """Channels of type cron.

    missed    how runs that were due while no agent ran are made up: one for all, none, or each
    messages  {name of a Channel: the text that begins its turns}
    interrupted  "give-up": a run is not begun again once a tool with side effects had begun in it
                 when the agent ended; it is the default of boards
    """

    missed: Literal["once", "skip", "all"] = "once"
    messages: dict[str, Text] | None = None
    interrupted: Interrupted | None = None


def refuse(manifest, channel, problem) -> None:
    """Add a problem for each part of *channel* that cannot be kept."""
    spec, control = channel.spec, channel.spec.access_control
    if control and control.mode != "open":
        problem(
            ("access_control", "mode"),
            "nobody speaks through a cron channel",
            '"open"',
            enquote(control.mode),
            hint="remove access_control",
        )
    if spec.trigger is None:
        problem((), "nothing says when it runs", hint='add trigger: { schedule: "0 7 * * *" }')
        return
    try:
        cron_fields.parse(spec.trigger.schedule)
    except ValueError as e:
        problem(
            ("trigger", "schedule"),
            str(e),
            found=enquote(spec.trigger.schedule),
            hint="write five fields for minute, hour, day of the month, month and day of the week",
        )


def check(manifest) -> None:
    """Add a problem for each part of [cron], and for a time zone, that cannot be kept."""
    settings = manifest.settings
    zone = settings.time_zone
    wrong = _zone_problem(zone) if zone else ""
    if wrong:
        manifest.problems.add(
            settings.place,
            ("time_zone",),
            wrong,
            found=enquote(zone),
            hint="name a zone of the IANA data base, such as Europe/Berlin",
        )
    names = [channel.name for channel in manifest.channels if channel.spec.type == "cron"]
    for policy in manifest.policies if names else ():
        for number, rule in enumerate(policy.spec.rules):
            if rule.approval and rule.approval.default_if_timeout == "allow":
                manifest.note(
                    policy,
                    ("rules", number, "approval", "default_if_timeout"),
                    f"what turns of {', '.join(names)} call runs when nobody answers in time",
                )
    for name in settings.channels["cron"].messages or ():
        if name not in names:
            manifest.problems.add(
                settings.place,
                ("cron", "messages", name),
                f"there is no Channel {enquote(name)} of type cron",
                key=True,
                hint=did_you_mean(name, names),
            )


def record(manifest, channel) -> list | None:
    """Return the record for core/rules/cron.py; None for a Channel that ``refuse`` refused."""
    settings, said = manifest.settings, manifest.settings.channels["cron"]
    schedule = channel.spec.trigger.schedule if channel.spec.trigger else ""
    try:
        masks = cron_fields.parse(schedule)
    except ValueError:
        return None
    zone = settings.time_zone or "UTC"
    return [
        schedule,
        masks,
        zone,
        MISSED.index(said.missed),
        (said.messages or {}).get(channel.name, ""),
        None if said.interrupted is None else said.interrupted == "give-up",
        zone_changes.changes_or_none(zone),
    ]


def _zone_problem(name: str) -> str:
    """Return what is wrong with the name of a time zone, "" for nothing that is known here."""
    if not _ZONE.fullmatch(name):
        return "expected the name of a time zone, such as Europe/Berlin or UTC"
    from zoneinfo import ZoneInfo, available_timezones

    if name == "UTC" or not available_timezones():  # without that list a name cannot be checked
        return ""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return "there is no such time zone"
    return ""


TYPE = ChannelType(
    "cron",
    ("polling",),
    trigger="schedule",
    settings=Cron,
    refuse=refuse,
    check=check,
    record=record,
)

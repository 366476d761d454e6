"""The Channels of a manifest (CKP 0.2.0, 5.3) to the section of the image that
linux/channels/channels.py reads.

1. What this version speaks: cli, cron, webhook, telegram, queue.  Other types are refused by name.
2. A pair of type and transport that makes no sense, a block that the type has no use for, and a
   feature that it has not, is a mistake: it would promise what nothing keeps.
3. A remote channel says who may speak to it: the default is an allowlist with nobody on it, so a
   channel without ``access_control`` would hear nobody.
"""

from clawlite.core.base.errors import SandboxDenied
from clawlite.core.net.netaddress import address_of, is_loopback
from clawlite.core.net.netrules import parse_url
from clawlite.host.base.problems import did_you_mean, quoted
from clawlite.host.channels import cron_fields, queues
from clawlite.host.channels.channel_settings import zone_problem

LATER = "not supported by this version of clawlite"
KINDS = {"cli": 0, "cron": 1, "webhook": 2, "telegram": 3, "queue": 4}
TRANSPORTS = {
    "cli": ("stdio",),
    "cron": ("polling",),
    "webhook": ("webhook",),
    "telegram": ("polling",),
    "queue": ("polling",),
}
SENSIBLE = {"telegram": ("polling", "webhook"), "queue": ("polling", "websocket")}
ABILITY = {"cron": "cron", "webhook": "webhook", "telegram": "telegram", "queue": "mqtt"}
# types whose messages come from people and programs elsewhere
REMOTE = ("webhook", "telegram", "queue")
TRIGGERED = {"cron": "schedule", "queue": "queue_name"}
WRITTEN_TO = ("cli", "telegram", "queue")  # where the tool message may write
DOES = {"telegram": ("typing_indicator", "read_receipts", "threads")}  # of processing and features
OVERLAPS = ("skip", "queue", "allow")
MISSED = ("skip", "once", "all")
MODES = ("open", "allowlist", "pairing", "role-based")
ROLES = ("viewer", "user", "admin")
MAX_MESSAGE = 4096  # characters, unless the channel says
MAX_IDS, MAX_ID = 1000, 128


def refuse(manifest) -> None:
    """Add a problem for every part of a Channel that this version does not keep, and every
    setting that belongs to none.
    """
    for channel in manifest.channels:

        def problem(path, *args, **named):
            manifest.problem(channel, path, *args, **named)

        if channel.spec.type not in KINDS:
            problem(
                ("type",),
                f'channels of type "{channel.spec.type}" are {LATER}',
                " or ".join(map(quoted, KINDS)),
            )
            continue
        _transport(channel.spec, problem)
        _access(channel.spec, problem)
        _trigger(channel.spec, problem)
        _features(channel.spec, problem)
        if channel.spec.type == "queue":
            queues.refuse(manifest, channel, problem)
        rate = channel.spec.processing and channel.spec.processing.rate_limit
        if rate and rate.burst and not rate.messages_per_minute:
            problem(
                ("processing", "rate_limit", "burst"), "a burst needs messages_per_minute", key=True
            )
    for later in [channel for channel in manifest.channels if channel.spec.type == "webhook"][1:]:
        manifest.problem(
            later,
            ("type",),
            "an agent has one webhook",
            hint="remove this one: its callers say who they are",
        )
    _settings(manifest)


def _transport(spec, problem) -> None:
    taken = TRANSPORTS[spec.type]
    if spec.transport not in taken:
        later = spec.transport in SENSIBLE.get(spec.type, ())
        problem(
            ("transport",),
            f'transport "{spec.transport}" of a {spec.type} channel is {LATER}' if later else "",
            f'{" or ".join(map(quoted, taken))} for type "{spec.type}"',
            quoted(spec.transport),
        )


def _access(spec, problem) -> None:
    control = spec.access_control
    if control is None:
        if spec.type in REMOTE:
            problem(
                (),
                "nothing says who may speak to it, and the default is an allowlist with "
                "nobody on it",
                hint="add access_control",
            )
        return
    if spec.type == "cron" and control.mode != "open":
        problem(
            ("access_control", "mode"),
            f"nobody speaks through a {spec.type} channel",
            '"open"',
            quoted(control.mode),
            hint="remove access_control",
        )
    if spec.type == "cli" and control.mode == "pairing":
        problem(
            ("access_control", "mode"),
            "whoever holds the wire is trusted: nobody is paired there",
            '"open", "allowlist" or "role-based"',
            '"pairing"',
        )
    ids = control.allowed_ids or [role.id for role in control.roles or ()]
    field = "allowed_ids" if control.allowed_ids else "roles"
    if len(ids) > MAX_IDS:
        problem(("access_control", field), "", f"at most {MAX_IDS}", str(len(ids)))
    for index, id in enumerate(ids):
        if not 0 < len(id) <= MAX_ID:
            problem(
                ("access_control", field, index),
                "",
                f"an id of 1 to {MAX_ID} characters",
                quoted(id[:40]),
            )
        elif ids.index(id) < index:
            problem(("access_control", field, index), f"{quoted(id)} is there already")


def _trigger(spec, problem) -> None:
    if spec.type not in TRIGGERED:
        if spec.trigger:
            problem(
                ("trigger",), f"a {spec.type} channel is not triggered", hint="remove it", key=True
            )
        return
    for field in ("schedule", "queue_name", "mailbox", "table", "events") if spec.trigger else ():
        if field != TRIGGERED[spec.type] and getattr(spec.trigger, field) is not None:
            problem(
                ("trigger", field),
                f"a {spec.type} channel has no {field}",
                hint="remove it",
                key=True,
            )
    if spec.type != "cron":
        return
    if spec.trigger is None:
        problem((), "nothing says when it runs", hint='add trigger: { schedule: "0 7 * * *" }')
        return
    try:
        cron_fields.parse(spec.trigger.schedule)
    except ValueError as e:
        problem(("trigger", "schedule"), str(e), found=quoted(spec.trigger.schedule))


def _features(spec, problem) -> None:
    """Refuse what is switched on and not there: a flag that is false asks for nothing."""
    does = DOES.get(spec.type, ())
    for block, fields in (
        ("processing", ("typing_indicator", "read_receipts")),
        ("features", ("voice", "files", "reactions", "threads", "inline_images")),
    ):
        for field in fields:
            if getattr(getattr(spec, block), field, None) and field not in does:
                problem(
                    (block, field),
                    f"a {spec.type} channel of this version has no {field}",
                    hint="remove it" + (f"; it has {', '.join(does)}" if does else ""),
                    key=True,
                )


def _settings(manifest) -> None:
    settings = manifest.settings
    zone = settings.time_zone
    wrong = zone_problem(zone) if zone else ""
    if wrong:
        manifest.problems.add(settings.place, ("time_zone",), wrong, found=quoted(zone))
    host, _, port = settings.webhook.address.rpartition(":")
    if address_of(host.strip("[]")) is None or int(port) > 65535:
        manifest.problems.add(
            settings.place,
            ("webhook", "address"),
            "",
            "an address of this machine and a port",
            quoted(settings.webhook.address),
        )
    try:
        scheme, host, _, _ = parse_url(settings.telegram.base_url)
        if scheme != "https" and not is_loopback(address_of(host)):
            manifest.problems.add(
                settings.place,
                ("telegram", "base_url"),
                "a token goes over https alone, or to this machine",
            )
    except SandboxDenied as e:
        manifest.problems.add(settings.place, ("telegram", "base_url"), e.message, hint=e.hint)
    queues.settings(manifest)
    names = [channel.name for channel in manifest.channels if channel.spec.type == "cron"]
    for name in settings.cron.messages or ():
        if name not in names:
            manifest.problems.add(
                settings.place,
                ("cron", "messages", name),
                f"there is no Channel {quoted(name)} of type cron",
                key=True,
                hint=did_you_mean(name, names),
            )


def section(manifest) -> list | None:
    """Return the record of each channel that is more than a plain console; None when there is
    none.
    """
    # by which a plain console is written to
    named = any(tool.name == "message" and tool.origin == "registry" for tool in manifest.tools)
    return [
        _record(manifest, channel)
        for channel in manifest.channels
        if _counts(channel) or named and channel.spec.type == "cli"
    ] or None


def abilities(manifest) -> set:
    """Return what a device needs for them."""
    return {ability(channel) for channel in manifest.channels} - {None}


def ability(channel) -> str | None:
    """Return what a device needs for *channel*: "access" for a console that is more than a plain
    one.
    """
    return ABILITY.get(channel.spec.type, "access") if _counts(channel) else None


def written_to(manifest) -> list:
    """Return the names of the Channels that the tool ``message`` may write to."""
    said = manifest.settings.mqtt.replies or {}
    return [
        channel.name
        for channel in manifest.channels
        if channel.spec.type in WRITTEN_TO
        and (channel.spec.type != "queue" or channel.name in said)
    ]


def max_message(manifest) -> int:
    """Return the characters that a line of the console has at most."""
    return min(
        [
            channel.spec.processing.max_message_length or MAX_MESSAGE
            for channel in manifest.channels
            if channel.spec.type == "cli" and channel.spec.processing
        ],
        default=MAX_MESSAGE,
    )


def _counts(channel) -> bool:
    spec = channel.spec
    if spec.type not in KINDS:
        return False
    restricts = spec.access_control and spec.access_control.mode != "open"
    return spec.type != "cli" or bool(
        restricts
        or spec.processing
        and spec.processing.rate_limit
        and spec.processing.rate_limit.messages_per_minute
    )


def _record(manifest, channel) -> list:
    spec = channel.spec
    processing, trigger = spec.processing, spec.trigger
    rate = processing and processing.rate_limit
    per_minute = rate and rate.messages_per_minute
    limits = [
        processing and processing.max_message_length or MAX_MESSAGE,
        per_minute or None,
        per_minute and (rate.burst or per_minute) or None,
        bool(processing and processing.typing_indicator),
        bool(processing and processing.read_receipts),
        bool(spec.features and spec.features.threads),
    ]
    return [
        channel.name,
        KINDS[spec.type],
        _access_record(spec.access_control),
        limits,
        [trigger.max_parallel, OVERLAPS.index(trigger.overlap_policy)] if trigger else [1, 0],
        _own(manifest, channel),
    ]


def _access_record(control) -> list:
    mode = MODES.index(control.mode) if control else 0
    return [
        mode,
        [
            None,
            control and control.allowed_ids,
            control
            and control.pairing
            and [control.pairing.code_expiry_minutes, control.pairing.max_pending],
            control and [[role.id, ROLES.index(role.role)] for role in control.roles or ()],
        ][mode],
    ]


def _own(manifest, channel):
    settings = manifest.settings
    if channel.spec.type == "cron":
        schedule = channel.spec.trigger.schedule if channel.spec.trigger else ""
        try:
            masks = cron_fields.parse(schedule)
        except ValueError:  # which ``refuse`` has said
            return None
        return [
            schedule,
            masks,
            settings.time_zone or "UTC",
            MISSED.index(settings.cron.missed),
            (settings.cron.messages or {}).get(channel.name, ""),
        ]
    if channel.spec.type == "webhook":
        host, _, port = settings.webhook.address.rpartition(":")
        return [host.strip("[]"), int(port), channel.spec.auth.secret_ref]
    if channel.spec.type == "queue":
        return queues.own(manifest, channel)
    if channel.spec.type == "telegram":
        try:
            scheme, host, port, target = parse_url(settings.telegram.base_url)
        except SandboxDenied:  # which ``refuse`` has said
            return None
        return [scheme, host, port, target.rstrip("/"), channel.spec.auth.secret_ref]
    return None

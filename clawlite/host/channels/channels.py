"""The Channels of a manifest (CKP 0.2.0, 5.3) to the section of the image that
linux/channels/channels.py reads.

1. ``TYPES`` has the types that this version supports; each is declared in a module of this room
   that has its name (channel_type.py).  Other types are refused by name.
2. Three things are mistakes, because they promise what no code does: a transport that does not
   belong to the type, a block that the type does not use, and a feature that it does not have.
3. With ``via = "gateway"`` in its section of clawlite.toml, the gateway of a board speaks to the
   platform, and the board decides who may speak to it (docs/gateway.md).
4. A remote channel must declare who may speak to it.  The default is an empty allowlist, so without
   ``access_control`` the channel would accept messages from nobody.
"""

import importlib

from clawlite.host.base.problems import LATER, enquote
from clawlite.host.models.feature import Requirement
from clawlite.protocols.image.features import KINDS

TYPES = {kind.type: importlib.import_module(f"{__package__}.{kind.type}").TYPE for kind in KINDS}
OVERLAPS = ("skip", "queue", "allow")
MODES = ("open", "allowlist", "pairing", "role-based")
ROLES = ("viewer", "user", "admin")
MAX_MESSAGE = 4096  # characters, unless the channel says
MAX_IDS, MAX_ID = 1000, 128
_POWERLESS = (
    "an admin who comes by the gateway is a user, and approves nothing: "
    'roles = ["user", "admin"] below [gateway] lets the gateway speak for admins'
)
RELAYED = "relayed"  # what a device needs for channels that its gateway carries
_SPEAKS_ITSELF = "its gateway is to carry this channel, and %s speaks to the platform itself"


def refuse(manifest) -> None:
    """Add a problem for every part of a Channel that this version does not keep, and every
    setting that belongs to none.
    """
    for channel in manifest.channels:

        def problem(path, *args, **named):
            manifest.problem(channel, path, *args, **named)

        if channel.spec.type not in TYPES:
            problem(
                ("type",),
                f'channels of type "{channel.spec.type}" are {LATER}',
                " or ".join(map(enquote, TYPES)),
            )
            continue
        _transport(channel.spec, problem)
        _access(channel.spec, problem)
        _trigger(channel.spec, problem)
        _features(channel.spec, problem)
        TYPES[channel.spec.type].refuse(manifest, channel, problem)
        rate = channel.spec.processing and channel.spec.processing.rate_limit
        if rate and rate.burst and not rate.messages_per_minute:
            problem(
                ("processing", "rate_limit", "burst"),
                "a burst needs messages_per_minute",
                hint="add messages_per_minute, or remove burst",
                key=True,
            )
    for one in TYPES.values():
        one.check(manifest)
    _gateway(manifest)


def _gateway(manifest) -> None:
    """Add a problem for each setting about the gateway's channels that is without effect."""
    gateway, place = manifest.settings.gateway, manifest.settings.place
    may_admin = "admin" in (gateway and gateway.roles or ())
    for channel in manifest.channels:
        control = channel.spec.access_control
        if is_relayed(manifest, channel) and not may_admin and control:
            for index, role in enumerate(control.roles or ()):
                if role.role == "admin":
                    manifest.note(channel, ("access_control", "roles", index), _POWERLESS)
    named = {one.kind.ability: one.type for one in TYPES.values()}
    for section, said in manifest.settings.channels.items():
        if not getattr(said, "via", None):
            continue
        if not any(channel.spec.type == named[section] for channel in manifest.channels):
            problem = f"there is no Channel of type {named[section]}"
            manifest.problems.add(place, (section, "via"), problem, key=True, hint="remove it")
        elif gateway is None:
            problem = "nothing says that this device has a gateway"
            hint = "add [gateway] to clawlite.toml"
            manifest.problems.add(place, (section, "via"), problem, key=True, hint=hint)


def _transport(spec, problem) -> None:
    taken = TYPES[spec.type].transports
    if spec.transport not in taken:
        later = spec.transport in TYPES[spec.type].later
        problem(
            ("transport",),
            f'transport "{spec.transport}" of a {spec.type} channel is {LATER}' if later else "",
            f'{" or ".join(map(enquote, taken))} for type "{spec.type}"',
            enquote(spec.transport),
        )


def _access(spec, problem) -> None:
    control = spec.access_control
    if control is None:
        if TYPES[spec.type].is_remote:
            problem(
                (),
                "nothing says who may speak to it, and the default is an allowlist with "
                "nobody on it",
                hint="add access_control",
            )
        return
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
                enquote(id[:40]),
            )
        elif ids.index(id) < index:
            problem(
                ("access_control", field, index),
                f"{enquote(id)} is there already",
                hint="remove one of them",
            )


def _trigger(spec, problem) -> None:
    own = TYPES[spec.type].trigger
    if own is None:
        if spec.trigger:
            problem(
                ("trigger",), f"a {spec.type} channel is not triggered", hint="remove it", key=True
            )
        return
    for field in ("schedule", "queue_name", "mailbox", "table", "events") if spec.trigger else ():
        if field != own and getattr(spec.trigger, field) is not None:
            problem(
                ("trigger", field),
                f"a {spec.type} channel has no {field}",
                hint="remove it",
                key=True,
            )


def _features(spec, problem) -> None:
    """Refuse features that are switched on but missing.  A flag that is false asks for nothing."""
    does = TYPES[spec.type].features
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


def find_needs(manifest) -> list[Requirement]:
    """Return what a device needs for these Channels."""
    found = []
    for channel in manifest.channels:
        at = channel.place, ("type",)
        if is_relayed(manifest, channel):
            found.append(Requirement(RELAYED, *at, "remove via", _SPEAKS_ITSELF))
        elif _counts(channel):
            one = TYPES[channel.spec.type]
            found.append(Requirement(one.kind.ability, *at, one.without()))
    return found


def is_relayed(manifest, channel) -> bool:
    """Return whether the gateway of the device speaks to the platform of *channel*."""
    if channel.spec.type not in TYPES:
        return False
    said = manifest.settings.channels.get(TYPES[channel.spec.type].kind.ability)
    return getattr(said, "via", None) is not None


def check_message(manifest, tool) -> None:
    """Add a problem where no Channel carries what *tool*, ``message``, would send."""
    for channel in manifest.channels:
        one = TYPES.get(channel.spec.type)
        if one and one.kind.carries and one.answers(manifest, channel):
            return
    carriers = [one for one in TYPES.values() if one.kind.carries]
    hint = "declare a Channel of type " + " or ".join(
        one.type for one in carriers if not one.answers_with
    )
    for one in carriers:
        hint += f", or of type {one.type} with {one.answers_with}" if one.answers_with else ""
    manifest.problem(tool, (), "no channel carries what message would send", hint=hint)


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
    if spec.type not in TYPES:
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
    record = [
        channel.name,
        TYPES[spec.type].number,
        _access_record(spec.access_control),
        limits,
        [trigger.max_parallel, OVERLAPS.index(trigger.overlap_policy)] if trigger else [1, 0],
        TYPES[spec.type].record(manifest, channel),
    ]
    if is_relayed(manifest, channel):
        gateway = manifest.settings.gateway
        record.append("admin" in (gateway and gateway.roles or ()))
    return record


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

"""Channels of type queue: compile the topics of an MQTT broker, from clawlite.toml and the
manifest, to the record that linux/channels/mqtt.py reads.

1. The topic is the only part of a message that a reader can trust to name its sender, because
   brokers restrict who may publish where.  To distinguish senders, the topic needs a "+".
2. overlap_policy "queue" promises that no message is lost, so it refuses all settings that lose
   some: QoS 0, a clean session, a rate limit.
3. A password is sent only over TLS, to this machine, or where the settings allow a plain line.
"""

from typing import Annotated

from msgspec import Meta

from clawlite.host.base.problems import did_you_mean, enquote
from clawlite.host.channels.channel_type import ChannelType, Interrupted, Via
from clawlite.host.models.common import Strict, Text, text_like
from clawlite.host.models.server_address import split_address
from clawlite.protocols.net.netaddress import address_of, is_loopback

PORTS = {"mqtt": 1883, "mqtts": 8883}
MAX_TOPIC = 256  # bytes


class Mqtt(Strict):
    """The broker of channels of type queue.  The Channel's secret_ref names the password of *user*.

    plain          the password may be sent without TLS
    client_id      the beginning of the name of each Channel's session at the broker
    clean_session  messages that come while no agent runs are not kept
    replies        {name of a Channel: the topic of its turns' answers}
    interrupted    "give-up": a message is not begun again once a tool with side effects had begun
                   for it when the agent ended
    via            "gateway": the gateway of a board speaks to the broker
    """

    address: Annotated[
        str,
        text_like(
            r"^mqtts?://[^\s?#@/]+\Z",
            "mqtt://HOST or mqtts://HOST, and perhaps :PORT",
            "mqtts://broker.example.com",
        ),
    ] = "mqtt://127.0.0.1"
    user: Text | None = None
    plain: bool = False
    client_id: (
        Annotated[
            str,
            text_like(
                r"^[0-9A-Za-z_.-]{1,64}\Z", "1 to 64 letters, digits, - . and _", "greenhouse"
            ),
        ]
        | None
    ) = None
    qos: Annotated[int, Meta(ge=0, le=1)] = 1
    clean_session: bool = False
    replies: dict[str, Text] | None = None
    interrupted: Interrupted = "repeat"
    via: Via = None


def refuse(manifest, channel, problem) -> None:
    """Add a problem for each part of *channel* that cannot be kept; ``problem(path, ...)`` is
    about it.
    """
    spec, settings = channel.spec, manifest.settings.channels["mqtt"]
    if spec.trigger is None:
        problem((), "nothing says what it reads", hint='add trigger: { queue_name: "agents/jobs" }')
        return
    topic = spec.trigger.queue_name or ""
    wrong = topic_problem(topic)
    if wrong:
        problem(
            ("trigger", "queue_name"),
            wrong,
            found=enquote(topic),
            hint="write a topic such as agents/jobs",
        )
    control, reply = spec.access_control, (settings.replies or {}).get(channel.name, "")
    if control and control.mode != "open" and "+" not in topic:
        problem(
            ("access_control", "mode"),
            "only its topic can name the sender of a message",
            '"open", or a "+" in queue_name that stands for who speaks',
            enquote(control.mode),
        )
    for field in ("allowed_ids", "roles"):
        for index, one in enumerate(control and getattr(control, field) or ()):
            if not set("/+#").isdisjoint(one if isinstance(one, str) else one.id):
                problem(
                    ("access_control", field, index),
                    "",
                    "an id that is one level of a topic, without / + #",
                    enquote(one if isinstance(one, str) else one.id),
                )
    if control and control.mode == "pairing" and not reply:
        problem(
            ("access_control", "mode"),
            "strangers get a pairing code, and there is no topic to send it to",
            hint=f'add replies = {{ {channel.name} = "agents/said/+" }} to [mqtt] in clawlite.toml',
        )
    rate = spec.processing and spec.processing.rate_limit
    if spec.trigger.overlap_policy == "queue":
        if rate and rate.messages_per_minute:
            problem(
                ("processing", "rate_limit"),
                'a rate_limit drops messages, and overlap_policy "queue" must not lose any',
                hint="remove one of them",
                key=True,
            )
        if not settings.qos or settings.clean_session:
            problem(
                ("trigger", "overlap_policy"),
                '"queue" must not lose a message',
                "qos = 1 and clean_session = false in [mqtt]",
                "qos = 0" if not settings.qos else "clean_session = true",
            )


def check(manifest) -> None:
    """Add a problem for each setting of [mqtt] that cannot be honoured."""
    said = manifest.settings.channels["mqtt"]
    problems, place = manifest.problems, manifest.settings.place
    try:
        secure, host, _ = broker(said.address)
    except ValueError as e:
        problems.add(
            place,
            ("mqtt", "address"),
            str(e),
            found=enquote(said.address),
            hint="write no path, user or password into it: [mqtt] has fields for those",
        )
        return
    address = address_of(host)
    if (
        said.user
        and not secure
        and not said.plain
        and host != "localhost"
        and not (address and is_loopback(address))
    ):
        problems.add(
            place,
            ("mqtt", "user"),
            "its password would be sent unencrypted",
            hint='write address = "mqtts://..."; or plain = true, where that line is your own',
        )
    queues = {
        channel.name: channel.spec.trigger
        for channel in manifest.channels
        if channel.spec.type == "queue"
    }
    for name, topic in (said.replies or {}).items():
        wrong = topic_problem(topic)
        if name not in queues:
            problems.add(
                place,
                ("mqtt", "replies", name),
                f"there is no Channel {enquote(name)} of type queue",
                key=True,
                hint=did_you_mean(name, list(queues)),
            )
        elif wrong:
            problems.add(
                place,
                ("mqtt", "replies", name),
                wrong,
                found=enquote(topic),
                hint="shorten or change it: MQTT takes no other topics",
            )
        elif "+" in topic and "+" not in (queues[name] and queues[name].queue_name or ""):
            problems.add(
                place,
                ("mqtt", "replies", name),
                'its "+" stands for who spoke, and queue_name has none',
                found=enquote(topic),
                hint="write a topic without +, or put + into queue_name",
            )


def broker(address: str) -> tuple:
    """Return (secure, host, port) of ``mqtt[s]://HOST[:PORT]``.  Raises ``ValueError``."""
    expected = "expected mqtt://HOST or mqtts://HOST, and perhaps :PORT"
    scheme, host, port = split_address(address, PORTS, expected)
    return scheme == "mqtts", host, port or PORTS[scheme]


def topic_problem(topic: str) -> str:
    """Return the problem of a topic, in which one level may be "+"; "" when there is none."""
    levels = topic.split("/")
    if not 0 < len(topic.encode("utf-8", "replace")) <= MAX_TOPIC or not topic.isprintable():
        return f"expected a topic of 1 to {MAX_TOPIC} bytes without control characters"
    if topic[0] == "$":
        return "a topic that begins with $ is the broker's own"
    if (
        "#" in topic
        or levels.count("+") > 1
        or any("+" in level and level != "+" for level in levels)
    ):
        return 'expected a topic in which at most one level is "+", and none is "#"'
    return ""


def record(manifest, channel) -> list | None:
    """Return the record for linux/channels/mqtt.py; None for a Channel that ``check`` or
    ``refuse`` has refused.
    """
    said, trigger = manifest.settings.channels["mqtt"], channel.spec.trigger
    try:
        secure, host, port = broker(said.address)
    except ValueError:
        return None
    name = "%s-%s" % (said.client_id or "claw-" + manifest.name, channel.name)
    return [
        secure,
        host,
        port,
        said.user or "",
        channel.spec.auth.secret_ref,
        name,
        said.qos,
        said.clean_session,
        trigger and trigger.queue_name or "",
        (said.replies or {}).get(channel.name, ""),
        said.interrupted == "give-up",
    ]


def answers(manifest, channel) -> bool:
    """Return whether the settings name a topic for the answers of *channel*."""
    return channel.name in (manifest.settings.channels["mqtt"].replies or {})


TYPE = ChannelType(
    "queue",
    ("polling",),
    later=("websocket",),
    is_remote=True,
    trigger="queue_name",
    settings=Mqtt,
    refuse=refuse,
    check=check,
    record=record,
    answers=answers,
    answers_with="a topic in [mqtt] replies",
    relays="speak to the broker",
)

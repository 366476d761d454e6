"""Channel (CKP 5.3): how people and events reach the agent."""

from typing import Annotated, Literal

from msgspec import Meta

from clawlite.host.base.problems import enquote
from clawlite.host.models.common import Count, Need, Strict, Text

# the one field that each access control mode takes (5.3, normative: a field of another mode is an
# error)
MODE_FIELD = {"open": None, "allowlist": "allowed_ids", "pairing": "pairing", "role-based": "roles"}
# the trigger field that an event-driven type needs, when the channel has a trigger block (which is
# a SHOULD)
TRIGGER_FIELD = {
    "cron": "schedule",
    "queue": "queue_name",
    "imap": "mailbox",
    "db-trigger": "table",
}


class ChannelAuth(Strict):
    secret_ref: Text


class Pairing(Strict):
    code_expiry_minutes: Count
    max_pending: Count


class Role(Strict):
    id: str
    role: Literal["admin", "user", "viewer"]


class AccessControl(Strict):
    mode: Literal["open", "allowlist", "pairing", "role-based"]
    allowed_ids: list[str] | None = None
    pairing: Pairing | None = None
    roles: list[Role] | None = None
    needs = tuple(
        Need(own, "mode", mode, f'; mode "{mode}" needs it', f"add {own}, or choose another mode")
        for mode, own in MODE_FIELD.items()
        if own
    )

    @staticmethod
    def check_rules(value: dict, report) -> None:
        mode = value.get("mode")
        if not isinstance(mode, str) or mode not in MODE_FIELD:
            return
        for other in ("allowed_ids", "pairing", "roles"):
            if other in value and other != MODE_FIELD[mode]:
                fits = [name for name, field in MODE_FIELD.items() if field == other][0]
                report(
                    (other,),
                    f'this field is for mode "{fits}"; the mode here is "{mode}"',
                    key=True,
                    hint=f"remove it, or write mode: {fits}",
                )


class ChannelRate(Strict):
    messages_per_minute: Count | None = None
    burst: Count | None = None


class Processing(Strict):
    max_message_length: Count | None = None
    rate_limit: ChannelRate | None = None
    typing_indicator: bool | None = None
    read_receipts: bool | None = None


class Features(Strict):
    voice: bool | None = None
    files: bool | None = None
    reactions: bool | None = None
    threads: bool | None = None
    inline_images: bool | None = None


class Trigger(Strict):
    schedule: Text | None = None
    queue_name: Text | None = None
    mailbox: Text | None = None
    table: Text | None = None
    events: Annotated[list[Literal["INSERT", "UPDATE", "DELETE"]], Meta(min_length=1)] | None = None
    max_parallel: Count = 1
    overlap_policy: Literal["skip", "queue", "allow"] = "skip"


class ChannelSpec(Strict):
    type: Literal[
        "telegram",
        "discord",
        "whatsapp",
        "slack",
        "email",
        "webhook",
        "cli",
        "voice",
        "web",
        "lark",
        "matrix",
        "line",
        "wechat",
        "qq",
        "dingtalk",
        "cron",
        "queue",
        "imap",
        "db-trigger",
        "custom",
    ]
    transport: Literal["polling", "webhook", "websocket", "stdio"]
    auth: ChannelAuth
    access_control: AccessControl | None = None
    processing: Processing | None = None
    features: Features | None = None
    trigger: Trigger | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        kind, trigger = value.get("type"), value.get("trigger")
        needed = TRIGGER_FIELD.get(kind) if isinstance(kind, str) else None
        if needed and isinstance(trigger, dict) and needed not in trigger:
            if any(key not in Trigger.__struct_fields__ for key in trigger):
                return  # perhaps it is the one that is misspelt
            report(
                ("trigger",),
                f'{enquote(needed)} is missing; type "{kind}" needs it',
                hint=f"add {needed} to the trigger",
            )

"""Provider (CKP 5.2): where completions come from."""

from typing import Literal

from clawlite.host.base.problems import value_text
from clawlite.host.models.common import URI, Amount, Count, Need, Ratio, Strict, Text
from clawlite.protocols.image.features import PROTOCOLS

Backoff = Literal["exponential", "linear", "constant"]


class ProviderAuth(Strict):
    type: Literal["bearer", "api-key-header", "oauth2", "none"]
    secret_ref: Text | None = None
    needs = tuple(
        Need(
            "secret_ref",
            "type",
            kind,
            f'; auth.type "{kind}" needs it',
            hint="name the secret; its value never stands in a manifest",
        )
        for kind in ("bearer", "api-key-header", "oauth2")
    )


class Hints(Strict):
    cost_priority: Ratio | None = None
    speed_priority: Ratio | None = None
    intelligence_priority: Ratio | None = None


class Fallback(Strict):
    provider_ref: str


class ProviderLimits(Strict):
    tokens_per_day: Amount | None = None
    tokens_per_request: Amount | None = None
    requests_per_minute: Amount | None = None
    max_context_window: Amount | None = None


class ProviderRetry(Strict):
    max_attempts: Count | None = None
    backoff: Backoff | None = None
    initial_delay_ms: Amount | None = None


class ProviderSpec(Strict):
    protocol: Literal[PROTOCOLS]  # type: ignore[valid-type]
    endpoint: URI
    model: Text
    auth: ProviderAuth
    streaming: bool | None = None
    hints: Hints | None = None
    fallback: list[Fallback] | None = None
    limits: ProviderLimits | None = None
    retry: ProviderRetry | None = None
    capabilities: list[Literal["text", "image", "audio", "video", "realtime"]] | None = None
    transport: Literal["http", "websocket", "webrtc", "grpc"] = "http"

    @staticmethod
    def check_rules(value: dict, report) -> None:
        items = value.get("capabilities")
        for index, item in enumerate(items if isinstance(items, list) else ()):
            if item in items[:index]:
                report(
                    ("capabilities", index),
                    f"{value_text(item)} is in the list twice",
                    hint="remove one",
                )

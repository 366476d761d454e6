"""Identity (CKP 5.1): who the agent is."""

from typing import Literal

from clawlite.host.models.common import Strict, Text


class IdentitySpec(Strict):
    personality: Text
    context_files: dict[str, str] | None = None
    locale: str | None = None
    capabilities: list[str] | None = None
    autonomy: Literal["observer", "supervised", "autonomous"] = "supervised"

"""[local] of clawlite.toml: how an agent uses the local model (docs/local.md)."""

from typing import Annotated

from msgspec import Meta

from clawlite.host.models.common import Strict, Text


class Local(Strict):
    """examples    the file of example sentences
    warm        whether the engine starts with the first turn, before its first sentence comes
    idle_s      seconds without a sentence, after which engine and process end; 0: never
    timeout_ms  of one answer of the engine, which is killed then
    say         {tool: what is said after its call, with {field} for fields of the result}
    """

    examples: Text = "sentences.jsonl"
    warm: bool = False
    idle_s: Annotated[int, Meta(ge=0, le=86400)] = 600
    timeout_ms: Annotated[int, Meta(ge=1000, le=600000)] = 5000
    say: dict[str, Text] | None = None

"""Claw (CKP 6): the root document, and the envelope that every document has."""

from typing import Annotated, Any

from msgspec import Meta

from clawlite.host.models.common import Metadata, ProtocolVersion, Strict


class Envelope(Strict):
    """The four fields of every document.  *kind* and *spec* are checked by the caller, who knows
    which it wants.
    """

    claw: ProtocolVersion
    kind: Any
    metadata: Metadata
    spec: dict[str, Any]


class ClawSpec(Strict):
    """References, in the order of the dependency graph (4.2); an entry is text or {"inline":
    {...}}.
    """

    identity: Any
    providers: Annotated[list[Any], Meta(min_length=1)]
    channels: list[Any] | None = None
    tools: list[Any] | None = None
    skills: list[Any] | None = None
    memory: Any = None
    sandbox: Any = None
    policies: list[Any] | None = None
    swarm: Any = None
    telemetry: Any = None
    world_models: list[Any] | None = None

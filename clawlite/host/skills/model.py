"""Skill (CKP 5.5): a workflow of several tools, in words."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from clawlite.host.models.common import Amount, Strict, Text


class Permissions(Strict):
    network: bool | None = None
    filesystem: Literal["none", "read-only", "write-workspace", "full"] | None = None
    approval_required: bool | None = None


class Estimates(Strict):
    avg_tokens: Amount | None = None
    avg_duration_seconds: Amount | None = None
    avg_tool_calls: Amount | None = None


class SkillSpec(Strict):
    description: Text
    tools_required: Annotated[list[str], Meta(min_length=1)]
    instruction: Text
    input_schema: dict[str, Any] | None = None
    output_schema: dict[str, Any] | None = None
    permissions: Permissions | None = None
    estimates: Estimates | None = None
    world_model_ref: Text | None = None

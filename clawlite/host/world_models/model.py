"""WorldModel (CKP 0.3.0): a predictive planning surface."""

from typing import Literal

from clawlite.host.models.common import Strict, Text


class Backend(Strict):
    type: Literal["tool", "provider", "custom"]
    ref: Text


class Predicts(Strict):
    state: bool | None = None
    observation: bool | None = None
    risk: bool | None = None
    cost: bool | None = None


class Planning(Strict):
    horizon: Literal["adaptive", "bounded", "fixed"] | None = None
    uncertainty_mode: Literal["none", "bounded", "calibrated"] | None = None
    fallback: Literal["conservative", "retry", "escalate"] | None = None


class Update(Strict):
    mode: Literal["online", "batch", "hybrid"] | None = None
    evidence: Literal["observations", "observations+outcomes"] | None = None


class Constraints(Strict):
    policy_ref: Text | None = None


class WorldModelSpec(Strict):
    paradigm: Literal["implicit", "explicit", "simulator", "hybrid"]
    backend: Backend
    scope: Literal["agent-wide", "task-scoped"] | None = None
    memory_ref: Text | None = None
    predicts: Predicts | None = None
    planning: Planning | None = None
    update: Update | None = None
    constraints: Constraints | None = None

"""The WorldModels of a manifest (CKP 0.3.0) to the section of the image that
linux/tools/world_model.py reads (docs/skills.md).

1. An agent asks only the world models that its skills name, and only on Linux.  Boards work without
   them, and a build for a board says so.
2. A model that could never answer is refused here.  When a model fails at run time, its fallback
   decides.
"""

from clawlite.core.image.image import WORLDS
from clawlite.host.base.problems import LATER, enquote
from clawlite.host.models.feature import Feature
from clawlite.host.providers import provider_order
from clawlite.host.skills import feature as skills
from clawlite.host.world_models.model import WorldModelSpec

GIVEN = {
    "tool": "string",
    "arguments": "object",
    "skill": "string",
    "predicts": "array",
    "horizon": "string",
}
PREDICTS = ("state", "observation", "risk", "cost")
# the place of each is its number in the image
FALLBACKS = ("conservative", "retry", "escalate")
UNCERTAINTIES = ("none", "bounded", "calibrated")
_HORIZON = {None: 0, "adaptive": 0, "bounded": 1, "fixed": 2}


def find_named(manifest) -> list[tuple]:
    """Return (WorldModel, names of the skills that name it) of each that some skill does, in the
    manifest's order.
    """
    of = {}
    for skill in manifest.skills:
        if skill.spec.world_model_ref is not None:
            of.setdefault(
                manifest.resolve("WorldModel", skill.spec.world_model_ref).name, []
            ).append(skill.name)
    return [(model, of[model.name]) for model in manifest.world_models if model.name in of]


def check(manifest, at_use: bool) -> None:
    """Add a problem for each model that a skill names, and that could not answer."""
    for model, _ in find_named(manifest):
        backend = model.spec.backend
        if backend.type == "custom":
            manifest.problem(
                model,
                ("backend", "type"),
                f"custom backends are {LATER}",
                '"tool" or "provider"',
                '"custom"',
            )
        elif backend.type == "provider":
            _provider(manifest, model, manifest.resolve("Provider", backend.ref))
        else:
            _tool(manifest, model, manifest.resolve("Tool", backend.ref))


def _provider(manifest, model, provider) -> None:
    if not provider_order.is_remote(provider):
        manifest.problem(
            model,
            ("backend", "ref"),
            f"{provider.name} is a built-in provider, and those predict nothing",
            hint="name one that is a model",
        )
    elif provider not in provider_order.providers(manifest):
        manifest.problem(
            model,
            ("backend", "ref"),
            f"this agent never asks {provider.name}",
            hint=f"add {{ provider_ref: {provider.name} }} to the fallback of "
            f"{provider_order.providers(manifest)[0].name}",
        )


def _tool(manifest, model, tool) -> None:
    spec = tool.spec
    if (spec.annotations or {}).get("readOnlyHint") is not True:
        manifest.problem(
            model,
            ("backend", "ref"),
            f"{tool.name} may have side effects, which would have to be predicted first",
            hint="add annotations: { readOnlyHint: true } to it if it has none",
        )
    if spec.composite or spec.mcp_source is not None:
        manifest.problem(
            model,
            ("backend", "ref"),
            f"{tool.name} is a {'composite' if spec.composite else 'server'}'s tool".replace(
                "composite's", "composite"
            ),
            "a tool of tools.py or of the registry",
        )
    schema = spec.input_schema or {}
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    strict = schema.get("additionalProperties") is False
    for name, kind in GIVEN.items():
        part = properties.get(name)
        if part is None and name in ("tool", "arguments") and strict:
            manifest.problem(
                model,
                ("backend", "ref"),
                f"{tool.name} takes no argument {enquote(name)}",
                f"its input_schema to take {_list_kinds()}",
            )
        elif isinstance(part, dict) and kind not in skills.types(part, kind):
            manifest.problem(
                model,
                ("backend", "ref"),
                f"{tool.name} takes another kind of {enquote(name)} than it is given",
                enquote(kind),
                enquote(str(part.get("type"))),
            )
    for name in schema.get("required") or ():
        if name not in GIVEN:
            manifest.problem(
                model,
                ("backend", "ref"),
                f"{tool.name} requires {enquote(name)}, which a world model is not given",
                _list_kinds(),
            )


def _list_kinds() -> str:
    return ", ".join(f"{name} ({kind})" for name, kind in GIVEN.items())


def compile_sections(manifest, work) -> dict:
    """Compile the rows of ``world_model.Model``; None where no skill names a model that could
    answer.
    """
    rows, asked = [], [provider.name for provider in provider_order.providers(manifest)]
    for model, names in find_named(manifest):
        spec = model.spec
        backend, planning = spec.backend, spec.planning
        place, takes, policy = 0, [], spec.constraints and spec.constraints.policy_ref
        if backend.type == "custom":
            continue
        ref = manifest.resolve(backend.type.capitalize(), backend.ref)
        if backend.type == "tool":
            properties = (ref.spec.input_schema or {}).get("properties") or {}
            takes = [
                name for name in GIVEN if name in properties and name not in ("tool", "arguments")
            ]
        elif ref.name in asked:
            place = asked.index(ref.name)
        rows.append(
            [
                model.name,
                ("tool", "provider").index(backend.type),
                ref.name,
                place,
                _predicts(spec),
                _HORIZON[planning and planning.horizon],
                UNCERTAINTIES.index(planning and planning.uncertainty_mode or "none"),
                FALLBACKS.index(planning and planning.fallback or "conservative"),
                policy and manifest.resolve("Policy", policy).name,
                takes,
                names,
            ]
        )
    return {WORLDS: rows or None}


def _predicts(spec) -> list[str]:
    """Return the fields that an answer must have: the declared ones, risk when none is declared,
    and uncertainty when it has a mode.
    """
    found = (
        ["risk"]
        if spec.predicts is None
        else [name for name in PREDICTS if getattr(spec.predicts, name)]
    )
    return found + (
        ["uncertainty"]
        if spec.planning and spec.planning.uncertainty_mode in ("bounded", "calibrated")
        else []
    )


def warn(manifest, work) -> list[tuple]:
    """Return (where, message) of what is valid and has no effect."""
    asked = [model.name for model, _ in find_named(manifest)]
    found = []
    for model in manifest.world_models:
        if model.name not in asked:
            found.append(
                (
                    model.where(),
                    f"no skill names the world model {model.name}: it is "
                    f"never asked (world_model_ref in a Skill)",
                )
            )
            continue
        if not {"risk", "uncertainty"} & set(_predicts(model.spec)):
            found.append(
                (
                    model.where("predicts"),
                    f"{model.name} predicts neither risk nor, with planning.uncertainty_mode, "
                    "uncertainty: only no answer makes it doubt",
                )
            )
        for field, said in (
            ("memory_ref", "reads no store by itself"),
            ("update", "is told of no outcomes"),
        ):
            if getattr(model.spec, field) is not None:
                found.append(
                    (
                        model.where(field),
                        f"{field} changes nothing: in this version a world model {said}",
                    )
                )
    return found


def find_notes(manifest, board, free_bytes) -> list:
    if board.runtime != "micropython":
        return []
    return [
        (
            model.where(),
            f"{board.name} asks no world model: {', '.join(names)} acts without {model.name}",
        )
        for model, names in find_named(manifest)
    ]


FEATURE = Feature(
    "WorldModel", WorldModelSpec, check=check, compile=compile_sections, warn=warn, note=find_notes
)

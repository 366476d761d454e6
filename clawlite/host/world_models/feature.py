"""World models, as the compiler sees them."""

from clawlite.core.image.image import WORLDS
from clawlite.host.models.feature import Feature
from clawlite.host.world_models import world_models


def check(manifest, at_use: bool) -> None:
    world_models.refuse(manifest)


def compile_sections(manifest, work) -> dict:
    return {WORLDS: world_models.section(manifest)}


def warn(manifest, work) -> list:
    return world_models.notes(manifest)


def find_notes(manifest, board, free_bytes) -> list:
    if board.runtime != "micropython":
        return []
    return [
        (
            model.where(),
            f"{board.name} asks no world model: {', '.join(names)} acts without {model.name}",
        )
        for model, names in world_models.find_named(manifest)
    ]


FEATURE = Feature("world model", check=check, compile=compile_sections, warn=warn, note=find_notes)

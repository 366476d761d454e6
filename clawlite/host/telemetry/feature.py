"""Telemetry, as the compiler sees it."""

from clawlite.core.image.image import TELEMETRY
from clawlite.host.models.feature import Feature, Requirement
from clawlite.host.telemetry import telemetries


def check(manifest, at_use: bool) -> None:
    if manifest.telemetry:
        telemetries.refuse(manifest)


def compile_sections(manifest, work) -> dict:
    return {TELEMETRY: telemetries.section(manifest)}


def find_needs(manifest) -> list[Requirement]:
    if not telemetries.section(manifest):
        return []
    return [Requirement("telemetry", manifest.telemetry.place)]


FEATURE = Feature("telemetry", check=check, compile=compile_sections, needs=find_needs)

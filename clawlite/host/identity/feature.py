"""The identity of an agent, as the compiler sees it, and the numbers of all its parts."""

from clawlite.core.image import image as layout
from clawlite.host.base.document import LinePlace
from clawlite.host.base.kinds import LEVELS
from clawlite.host.channels import channels
from clawlite.host.identity.model import IdentitySpec
from clawlite.host.image.image_file import AUTONOMY
from clawlite.host.models.feature import Feature, Requirement
from clawlite.host.policy import folding
from clawlite.host.providers import provider_order
from clawlite.host.sandbox import sandboxes
from clawlite.host.swarm import feature as swarms

MAX_ROUNDS = 20  # rounds of a turn (clawft: max_tool_iterations)
# of a turn, what waits for a person not counted: a model on a small board takes minutes
TURN_MS = 600000
# of an agent that reaches services (Clawdapus ADR-020: max_rounds, total_timeout_ms)
SERVICE_ROUNDS, SERVICE_TURN_MS = 8, 120000


def compile_sections(manifest, work) -> dict:
    identity = manifest.identity
    budget = manifest.settings.budget
    section = [
        manifest.name,
        manifest.version or "",
        identity.name,
        AUTONOMY.index(identity.spec.autonomy or "supervised"),
        find_level(manifest),
        manifest.heartbeat_interval_ms,
        provider_order.numbers(manifest),
        budget.max_rounds or (SERVICE_ROUNDS if manifest.services else MAX_ROUNDS),
        channels.max_message(manifest),
        manifest.sandbox.name if manifest.sandbox else "",
        sandboxes.level(manifest) if manifest.tools else 0,
        work.prose.add(identity.spec.personality),
        manifest.settings.console.prompt,
        budget.total_timeout_ms or (SERVICE_TURN_MS if manifest.services else TURN_MS),
        *provider_order.limits(manifest),
        folding.calls_per_minute(manifest.policies),
        folding.rates(manifest.policies),
    ]
    return {layout.AGENT: section}


def find_level(manifest) -> int:
    """Return the highest level of conformance of which *manifest* declares every primitive, and
    this version builds them.
    """
    declared = {primitive.kind for primitive in manifest.primitives()}
    if not swarms.is_built(manifest):
        declared.discard("Swarm")
    return [int(name[-1]) for name, needed in LEVELS if set(needed) <= declared][0]


def find_needs(manifest) -> list[Requirement]:
    if not manifest.settings.page:
        return []
    instead = "remove [page]: with [gateway], the page of its gateway shows a board"
    return [Requirement("page", LinePlace(manifest.file, 1), (), instead)]


def fit(manifest, board, other, problems) -> None:
    problems.add_excess(
        manifest.settings.place,
        ("budget", "max_tool_result_bytes"),
        manifest.settings.budget.max_tool_result_bytes,
        board.messages.max_result_bytes,
        board.name,
    )


FEATURE = Feature("Identity", IdentitySpec, compile=compile_sections, needs=find_needs, fit=fit)

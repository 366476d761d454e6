"""The Swarm of a manifest (CKP 5.9) to the section of the image that
protocols/swarm/swarm.py reads, and what of it this version does not do yet.
"""

from clawlite.core.base import uri as claw_uri
from clawlite.core.base.errors import InvalidParams
from clawlite.core.image.image import STOPPED_WITH, SWARM
from clawlite.host.base.problems import LATER, enquote
from clawlite.host.models.feature import Feature, Requirement
from clawlite.host.providers import provider_order, remotes
from clawlite.host.swarm import swarm_settings
from clawlite.host.swarm.model import SwarmSpec
from clawlite.protocols.swarm.swarm import LEADER, ROOT, SOURCE

# in the order of the numbers in protocols/swarm/swarm.py
TOPOLOGIES = ("leader-worker", "peer-to-peer", "pipeline", "broadcast", "hierarchical")
STRATEGIES = ("leader-decides", "merge", "majority-vote", "best-of-n", "chain")
FITTING = {  # topology -> the strategies that it has
    "leader-worker": STRATEGIES,
    "peer-to-peer": STRATEGIES[1:],
    "pipeline": ("chain",),
    "broadcast": STRATEGIES,
    "hierarchical": STRATEGIES,
}
TO_ALL = ("majority-vote", "best-of-n", "chain")  # one report would be nothing to compare
BACKENDS = ("in-process", "sqlite-wal", *swarm_settings.BACKENDS)
SHARED = "shared-memory"
PASSING = ("queue", "direct", "event-bus", SHARED)
FAILURES, RESET_MS = 3, 60000  # of a circuit breaker that does not say
AT_ONCE = 4  # tasks of one process at once, where it need not do one after the other
OPERATOR = "operator"  # as linux/swarm_engines/engine.py has it
RETRIES = 2  # of a task whose process ended, where the manifest says nothing


def _refuse(manifest) -> None:
    """Add a problem for each part of the Swarm that this version cannot honour."""
    for path, message, *more in _find_problems(manifest):
        manifest.problem(manifest.swarm, path, message, *more)
    settings = manifest.settings
    backend = manifest.swarm.spec.coordination.backend
    for path, message, *more in swarm_settings.problems(settings.swarm, backend):
        manifest.problems.add(settings.place, ("swarm", *path), message, *more)
    members = [identity_of(agent.identity_ref) for agent in manifest.swarm.spec.agents]
    leads = [name for name in members if _leads(manifest.swarm.spec, name)]
    for path, message, *more in swarm_settings.remotes_problems(
        settings.swarm, members, manifest.identity.name, backend, leads
    ):
        manifest.problems.add(settings.place, ("swarm", *path), message, *more)
    if settings.gateway and settings.gateway.obeys_stop_of:
        message = "a member of a swarm obeys the stop of that one"
        path = ("gateway", "obeys_stop_of")
        manifest.problems.add(settings.place, path, message, key=True, hint="remove it")


def _leads(spec, name: str) -> bool:
    """Return whether the member *name* passes on the tasks that it gets."""
    [role] = [one.role for one in spec.agents if identity_of(one.identity_ref) == name][:1]
    if spec.topology == "hierarchical":
        return any(one.role.startswith(role + "/") for one in spec.agents)
    return role == {"leader-worker": LEADER, "broadcast": SOURCE}.get(spec.topology)


def _find_problems(manifest) -> list:
    """Return [(path, message, expected, found), ...] of what keeps the Swarm from being built;
    message alone where nothing is expected.
    """
    spec, found = manifest.swarm.spec, []

    def one_of(path: tuple, value: str, known: tuple, what: str):
        if value not in known:
            expected = " or ".join(f'"{one}"' for one in known)
            found.append((path, f'{what} "{value}" is {LATER}', expected))

    coordination, aggregation = spec.coordination, spec.aggregation
    passing, backend = coordination.message_passing, coordination.backend
    one_of(("coordination", "message_passing"), passing, PASSING, "message_passing")
    one_of(("coordination", "backend"), backend, BACKENDS, "backend")
    if passing == SHARED:
        found += _check_shared(manifest)
    fitting = FITTING[spec.topology]
    if aggregation.strategy not in fitting:
        found.append(
            (
                ("aggregation", "strategy"),
                f'topology "{spec.topology}" has no strategy "{aggregation.strategy}"',
                " or ".join(f'"{one}"' for one in fitting),
            )
        )
    if spec.topology == "pipeline" and passing == "event-bus":
        message = "a pipeline hands each result to the next agent alone"
        found.append((("coordination", "message_passing"), message, '"queue" or "direct"'))
    _note_prices(manifest)
    return found + _members_problems(manifest) + _limits_problems(manifest)


def _find_shared(manifest) -> list:
    """Return the stores of the Memory that all agents of the swarm share, with their places."""
    if manifest.swarm.spec.coordination.message_passing != SHARED or not manifest.memory:
        return []
    stores = enumerate(manifest.memory.spec.stores)
    return [(index, store) for index, store in stores if store.isolation == "shared"]


def _check_shared(manifest) -> list:
    """Return the problems of a swarm whose agents share stores."""
    path, settings = ("coordination", "message_passing"), manifest.settings
    if settings.gateway or settings.swarm and settings.swarm.board:
        return [(path, "a board keeps its stores to itself", "another message_passing")]
    keeper, backend = _keeper(manifest.swarm.spec), manifest.swarm.spec.coordination.backend
    remotes = settings.swarm and settings.swarm.remote or {}
    if backend in swarm_settings.BACKENDS and keeper in remotes:
        message = f"{keeper}, which would keep the shared stores, is a remote agent"
        return [(path, message, "another agent that leads, or is first")]
    stores = [store for _, store in _find_shared(manifest)]
    if not stores:
        message = "no store of the Memory is shared by the swarm's agents"
        return [(path, message, "a store with isolation: shared in the Memory")]
    saving = manifest.settings.memory.wear_saving or ()
    for store in stores:
        wrong = (
            "lies in files"
            if store.type == "workspace" or store.backend == "filesystem"
            else "is encrypted, with a key of one agent"
            if store.encryption
            else "has a journal of one agent (wear_saving)"
            if store.name in saving
            else ""
        )
        if wrong:
            message = f"the shared store {enquote(store.name)} {wrong}: others cannot read it"
            return [(path, message, "a store in SQLite without that")]
    return []


def _keeper(spec) -> str:
    """Return the member that keeps what an engine cannot (linux/swarm/replicated_bus.py)."""
    leads = [one for one in spec.agents if one.role in (LEADER, SOURCE, ROOT)]
    return identity_of((leads or spec.agents)[0].identity_ref)


def _limits_problems(manifest) -> list:
    """Return the problems of limits that cannot be enforced."""
    spec, limits = manifest.swarm.spec, manifest.swarm.spec.resource_limits
    found: list[tuple] = []
    counted = [name for name in ("max_total_tokens", "max_total_cost_usd") if _limit(limits, name)]
    for path, ms in (
        (("aggregation", "timeout_ms"), spec.aggregation.timeout_ms),
        (("resource_limits", "max_duration_ms"), _limit(limits, "max_duration_ms")),
    ):
        if ms == 0:
            found.append((path, "no task ends within 0 ms", "at least 1, or none"))
    if counted and manifest.settings.gateway:
        message = "a gateway asks the providers, and does not know of the swarm"
        found.append((("resource_limits", counted[0]), message))
    if counted and manifest.settings.swarm and manifest.settings.swarm.remote:
        message = "nobody counts what a remote agent uses"
        found.append((("resource_limits", counted[0]), message))
    return found


def _note_prices(manifest) -> None:
    """Warn of models that a comparison or a limit of money does not count."""
    spec = manifest.swarm.spec
    if spec.aggregation.cost_aware:
        priced, what = ("aggregation", "cost_aware"), "asks it last"
    elif _limit(spec.resource_limits, "max_total_cost_usd"):
        priced, what = ("resource_limits", "max_total_cost_usd"), "does not count it"
    else:
        return
    for provider in provider_order.providers(manifest):
        model = provider.spec.model
        if provider_order.is_remote(provider) and model not in manifest.settings.prices:
            manifest.note(
                manifest.swarm,
                priced,
                f"nobody knows what {enquote(model)} costs, so {priced[-1]} {what} - add "
                f"[prices.{enquote(model)}] to clawlite.toml",
            )


def _limit(limits, name: str):
    return None if limits is None else getattr(limits, name)


def _members_problems(manifest) -> list:
    spec, names = manifest.swarm.spec, []
    found: list[tuple] = []
    for index, agent in enumerate(spec.agents):
        name = identity_of(agent.identity_ref)
        path = ("agents", index, "identity_ref")
        if name in names:
            found.append((path, f"{name} is in this swarm already", "each identity once"))
        names.append(name)
        if name == OPERATOR and spec.coordination.backend in swarm_settings.BACKENDS:
            message = f"{name} is reserved for the commands of a person"
            found.append((path, message, "another name"))
        if name == manifest.identity.name and agent.provider_ref is not None:
            first = manifest.providers[0].name
            if identity_of(agent.provider_ref) != first:
                path = ("agents", index, "provider_ref")
                found.append(
                    (path, "an agent asks its providers in their order", f'"{first}", its first')
                )
    own = manifest.identity.name
    if own not in names:
        found.append((("agents",), f"the agent of this manifest, {own}, is not in its swarm"))
    return found + _roles_problems(spec)


def _roles_problems(spec) -> list:
    """Return the problem of roles that do not fit the topology, if there is one."""
    roles, path = [agent.role for agent in spec.agents], ("agents",)
    one = {"leader-worker": LEADER, "broadcast": SOURCE, "hierarchical": ROOT}.get(spec.topology)
    if one and roles.count(one) != 1:
        return [(path, f"{roles.count(one)} agents have the role {one}", f"one {one}")]
    if one and len(roles) == 1:
        return [(path, f"a {one} without another agent", "at least one more")]
    if spec.topology == "pipeline" and len(roles) == 1:
        return [(path, "a pipeline of one agent", "at least two")]
    if spec.topology == "hierarchical":
        for index, role in enumerate(roles):
            above = role.rpartition("/")[0]
            if role != ROOT and (above not in roles or not role.rpartition("/")[2]):
                message = f'the role "{role}" is below no other agent'
                return [((*path, index, "role"), message, f'a path such as "{ROOT}/garden"')]
    return []


def is_built(manifest) -> bool:
    """Return whether the manifest has a Swarm that this version builds."""
    return manifest.swarm is not None and not _find_problems(manifest)


def _section(manifest) -> list | None:
    """Return the record of the swarm; None without one that is built."""
    if not is_built(manifest):
        return None
    spec = manifest.swarm.spec
    members = [
        [
            name,
            f"claw://local/identity/{name}",
            agent.role,
            agent.count or 1,
            *swarm_settings.remote_record(manifest.settings.swarm, name),
        ]
        for agent in spec.agents
        for name in (identity_of(agent.identity_ref),)
    ]
    concurrency, failure = spec.coordination.concurrency, spec.failure
    dead = failure and failure.dead_letter
    cost = _limit(spec.resource_limits, "max_total_cost_usd")
    return [
        manifest.swarm.name,
        [row[0] for row in members].index(manifest.identity.name),
        TOPOLOGIES.index(spec.topology),
        members,
        spec.coordination.backend != "in-process",
        concurrency.max_parallel,
        AT_ONCE if concurrency.sequential_within_agent is False else 1,
        _timeout_ms(spec),
        _retries(failure, dead),
        dead is None or dead.enabled is not False,
        STRATEGIES.index(spec.aggregation.strategy),
        # a task goes to all agents that may do it, not to the first free one
        spec.coordination.message_passing == "event-bus" or spec.aggregation.strategy in TO_ALL,
        _breaker(failure and failure.circuit_breaker),
        _limit(spec.resource_limits, "max_total_tokens"),
        None if cost is None else remotes.nano(cost),
        swarm_settings.record(manifest.settings.swarm, spec.coordination.backend),
        *([[store.name for _, store in _find_shared(manifest)]] if _find_shared(manifest) else []),
    ]


def _retries(failure, dead) -> int | list:
    """Return how often a task begins again, or that in all and with one agent."""
    each, most = failure and failure.retry_per_agent, dead and dead.max_retries
    if each is not None and most is not None:
        return [most, each]
    given = each if most is None else most
    return RETRIES if given is None else given


def _timeout_ms(spec) -> int | None:
    """Return the time that a task may take from its delegation to its end."""
    longest = _limit(spec.resource_limits, "max_duration_ms")
    given = [ms for ms in (spec.aggregation.timeout_ms, longest) if ms is not None]
    return min(given, default=None)


def _breaker(declared) -> list | None:
    if declared is None:
        return None
    reset_ms = declared.reset_timeout_ms
    return [declared.failure_threshold or FAILURES, RESET_MS if reset_ms is None else reset_ms]


def identity_of(reference: str) -> str:
    """Return the name that *reference*, a name or a claw:// URI, stands for."""
    try:
        return claw_uri.parse(reference, alias=True).name
    except InvalidParams:
        return reference


def check(manifest, at_use: bool) -> None:
    if at_use:
        return
    if manifest.swarm:
        _refuse(manifest)
    for tool in manifest.tools:
        if tool.origin == "registry" and tool.name == "delegate" and not is_built(manifest):
            message = "this agent is in no swarm that could do what delegate asks"
            manifest.problem(tool, (), message, hint="add a Swarm")


def compile_sections(manifest, work) -> dict:
    gateway = manifest.settings.gateway
    stopped_with = gateway.obeys_stop_of if gateway else None
    return {SWARM: _section(manifest), STOPPED_WITH: stopped_with}


def find_needs(manifest) -> list[Requirement]:
    found = []
    if is_built(manifest):
        found.append(Requirement("swarm", manifest.swarm.place))
    gateway = manifest.settings.gateway
    if gateway and gateway.obeys_stop_of:
        path = ("gateway", "obeys_stop_of")
        found.append(Requirement("stop-of-swarm", manifest.settings.place, path))
    return found


def fit(manifest, board, other, problems) -> None:
    """A board is a member of a swarm through its gateway, which speaks to the engine."""
    if board.runtime != "micropython" or not is_built(manifest):
        return
    if not manifest.settings.gateway:
        message = f"{board.name} is in a swarm through its gateway"
        hint = "add [gateway] to clawlite.toml"
        problems.add(manifest.swarm.place, (), message, hint=hint)
    elif manifest.swarm.spec.coordination.backend == "in-process":
        path, message = ("coordination", "backend"), "no gateway can speak for one process alone"
        problems.add(manifest.swarm.place, path, message, '"sqlite-wal"', '"in-process"')


FEATURE = Feature(
    "Swarm", SwarmSpec, check=check, compile=compile_sections, needs=find_needs, fit=fit
)

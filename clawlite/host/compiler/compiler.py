"""The back end: a checked manifest to an image.

    manifest -> refuse what is not built -> tool records, rules, automata, prose, settings ->
    sections -> bytes

Everything that can be known before a device boots is decided here.  All problems are raised
together."""

import dataclasses
import hashlib
import inspect

from clawlite import __version__
from clawlite.core.buses import bustable, pulses
from clawlite.core.image import image as layout
from clawlite.core.image.pins import KINDS as PIN_KINDS
from clawlite.core.image.pins import OPEN_DRAIN, PULL_DOWN, PULL_UP
from clawlite.core.rules import table as rule_table
from clawlite.core.teach.draft import TEACH
from clawlite.core.teach.row_text import parse_duration
from clawlite.core.turns.builtin import HANDLERS
from clawlite.host.channels import channels
from clawlite.host.compiler import schemas
from clawlite.host.compiler.features import FEATURES
from clawlite.host.compiler.work import Work
from clawlite.host.documents import registry
from clawlite.host.image.image_file import AUTONOMY, SECTION_NAMES, encode, table, write
from clawlite.host.manifest import conformance, lint_errors, unsupported
from clawlite.host.mcp import image_section
from clawlite.host.memory import memories
from clawlite.host.models.feature import Requirement
from clawlite.host.policy import folding, scan_config
from clawlite.host.providers import provider_order, trust
from clawlite.host.providers.reflexes import compile_reflex
from clawlite.host.providers.remotes import BACKOFF, MAX_ATTEMPTS
from clawlite.host.providers.replays import compile_replay
from clawlite.host.providers.rule_calls import find_callables
from clawlite.host.rules import confirms
from clawlite.host.rules import rules as own_rules
from clawlite.host.schema.automata import PatternError
from clawlite.host.schema.compile import SchemaError, compile_schema
from clawlite.host.services import context as service_context
from clawlite.host.services import image_section as services
from clawlite.host.swarm import swarms
from clawlite.host.telemetry import telemetries
from clawlite.host.tools import buses, sandboxes, skills, world_models
from clawlite.protocols.mcp.tool_definitions import SCHEMAS
from clawlite.protocols.mcp.tool_provider import is_provided
from clawlite.protocols.services.service_call import MAX_RESULT, TIMEOUT_MS

MAX_OUTPUT = 65536  # bytes of a tool's result (clawft: results are truncated to 64 KB)
_BYTES = 2 << 5  # the mark of a string of bytes in CBOR
_SIMPLER = "change the schema here, or remove this keyword from it"
MAX_ROUNDS = 20  # rounds of a turn (clawft: max_tool_iterations)
# of a turn, what waits for a person not counted: a model on a small board takes minutes
TURN_MS = 600000
# of an agent that reaches services (Clawdapus ADR-020: max_rounds, total_timeout_ms)
SERVICE_ROUNDS, SERVICE_TURN_MS = 8, 120000


@dataclasses.dataclass
class Built:
    """An image, and what the build knows of it.

    data      the image's bytes
    sections  [(name, bytes), ...] in the file's order
    """

    data: bytes
    sections: list


def build(manifest, key: bytes = None, at_use: bool = False) -> Built:
    """Compile *manifest* (``manifest.load``); *key* signs the image.

    at_use  also compile features that this version lacks, if an error at use reports them
            (host/manifest/unsupported.py): for an operator
    Raises ``ManifestErrors`` with every problem.
    """
    unsupported.refuse(manifest, at_use)
    for feature in FEATURES:
        feature.check(manifest, at_use)
    lint_errors.refuse(manifest)
    provider_order.check(manifest)
    manifest.check_handlers()
    skills.check(manifest)
    rules = folding.flatten(manifest.policies, sandboxes.workspace(manifest))
    work = Work()
    pool, prose = work.pool, work.prose
    records, index, entries = b"", [], []
    tools = manifest.tools + skills.as_tools(manifest)
    timeouts = {skills.called(tool): _timeout_ms(manifest, tool) for tool in tools}
    for tool in tools:
        record, entry = _tool(manifest, tool, rules, pool, prose, timeouts)
        entries.append(entry)
        index.append([skills.called(tool), len(records), len(record), entry])
        records += record
    names = [skills.called(tool) for tool in tools]
    sections = {
        layout.AGENT: _agent(manifest, prose),
        layout.TOOLS: index,
        layout.RECORDS: records,
        layout.RULES: table([encode(rule.record()) for rule in rules]),
        layout.REFLEX: _compiled(
            manifest, "reflex", compile_reflex, find_callables(list(zip(names, tools)))
        ),
        layout.REPLAY: _compiled(manifest, "replay", compile_replay, names),
        layout.PINS: _pins(manifest),
        layout.SANDBOX: sandboxes.section(manifest, pool),
        layout.TELEMETRY: telemetries.section(manifest),
        layout.LOCAL: sandboxes.local(manifest),
        bustable.BUSES: buses.section(manifest),
        bustable.SIMULATED: buses.make_simulated_section(manifest),
        layout.GUARD: scan_config.section(manifest, pool),
        layout.MEMORY: memories.section(manifest),
        layout.CONTEXT: memories.context(manifest),
        layout.SKILLS: skills.section(
            manifest, lambda *what: _schema(manifest, *what, pool), prose
        ),
        layout.WORLDS: world_models.section(manifest),
        layout.NETWORK: trust.section(manifest),
        layout.MCP: image_section.section(manifest),
        layout.SWARM: swarms.section(manifest),
        layout.SERVICES: services.section(manifest),
        layout.STOPPED_WITH: _stopped_with(manifest),
        rule_table.SECTION: own_rules.section(manifest, list(zip(names, tools))),
        TEACH: own_rules.teach_section(manifest, list(zip(names, tools))),
    }
    for feature in FEATURES:
        sections.update(feature.compile(manifest, work))
    sections[rule_table.CONFIRMS] = _confirms(
        manifest, list(zip(names, tools)), sections[rule_table.SECTION], timeouts
    )
    sections[layout.AUTOMATA] = table(pool.tables)
    manifest.raise_problems()
    sections[layout.PROSE] = prose.data
    sections[layout.PROVIDERS], sections[layout.WIRE] = provider_order.tables(
        manifest,
        [dataclasses.replace(tool, name=services.alias(skills.called(tool))) for tool in tools],
        _shown(manifest, tools, entries),
        _system,
    )
    manifest.raise_problems()
    head = (
        f"clawlite {__version__}",
        requires(manifest),
        _digest(manifest.sources),
        _companions(manifest),
        key,
    )
    data = write(sections, *head)
    if tools:
        written = {
            skills.called(tool): (tool.spec.input_schema or {}, tool.spec.output_schema)
            for tool in tools
        }
        sections[SCHEMAS] = schemas.section(written, data)
        data = data if sections[SCHEMAS] is None else write(sections, *head)
    return Built(data, _sizes(data))


def _shown(manifest, tools: list, entries: list) -> list:
    """Return *entries* without those of internal tools that no skill needs: no model is shown
    them.
    """
    needed = {one.name for skill in manifest.skills for one in skills.required(manifest, skill)}
    return [
        None if tool.is_internal and tool.name not in needed else entry
        for tool, entry in zip(tools, entries)
    ]


def _system(manifest, offered: list) -> str:
    """Return the system prompt: personality and skills, and what is known of services."""
    said = [skills.system(manifest, offered), service_context.text(manifest, offered)]
    return "\n\n".join(part.rstrip() for part in said if part) if said[1] else said[0]


def _requires(manifest) -> set[str]:
    needed = {
        provider.spec.endpoint.partition(":")[0 if provider_order.is_remote(provider) else 2]
        for provider in provider_order.providers(manifest)
    }
    if manifest.settings.reflex_first:
        needed.add("reflex")
    needed |= {
        provider.spec.endpoint.partition(":")[0 if provider_order.is_remote(provider) else 2]
        for provider, _ in provider_order.embedders(manifest)
    }
    if manifest.settings.gateway:  # who that is has both, whatever the device has
        needed = needed - {"http", "https", "local"} | (
            {"gateway", "lan"} if manifest.settings.gateway.wire == "tcp" else {"gateway"}
        )
        if manifest.settings.gateway.obeys_stop_of:
            needed.add("stop-of-swarm")
    if own_rules.is_declared(manifest):
        needed.add(own_rules.ABILITY)
    if manifest.tools:
        needed.add("tools")
    if any(tool.function for tool in manifest.tools):
        needed.add("tools.py")
    if any(tool.function and is_provided(tool.function.function) for tool in manifest.tools):
        needed.add("tool-providers")
    if manifest.settings.page:
        needed.add("page")
    if manifest.settings.pins:
        needed.add("pins")
    if buses.section(manifest):
        needed |= {bustable.ABILITY, "pins"}
    if manifest.memory or memories.context(manifest):
        needed.add("memory")
    needed.update(registry.ability(tool.name) for tool in manifest.tools if _is_builtin(tool))
    if any(tool.served and not tool.served.server.is_mediated for tool in manifest.tools):
        needed.add("mcp")
    needed |= services.abilities(manifest)
    if swarms.is_built(manifest):
        needed.add("swarm")
    if telemetries.section(manifest):
        needed.add("telemetry")
    if manifest.tools and sandboxes.level(manifest):
        needed.add("process")
    if any(
        rule.action == "audit-only" for policy in manifest.policies for rule in policy.spec.rules
    ):
        needed.add("log")
    return needed | scan_config.abilities(manifest)


def requires(manifest) -> list[str]:
    """Return the abilities that a device must have to run *manifest*, sorted."""
    return sorted({one.ability for one in find_needs(manifest)} | _requires(manifest))


def find_needs(manifest) -> list[Requirement]:
    """Return what a device must have, each ability once: with the feature to blame first."""
    return [one for feature in FEATURES for one in feature.needs(manifest)]


def _stopped_with(manifest):
    """Return the name of the swarm whose stop holds for this device too, or None."""
    gateway = manifest.settings.gateway
    return gateway.obeys_stop_of if gateway else None


def _is_builtin(tool) -> bool:
    return not (tool.function or tool.spec.composite or tool.served or tool.service)


def _agent(manifest, prose) -> list:
    identity = manifest.identity
    budget = manifest.settings.budget
    return [
        manifest.name,
        manifest.version or "",
        identity.name,
        AUTONOMY.index(identity.spec.autonomy or "supervised"),
        conformance.level(manifest),
        manifest.heartbeat_interval_ms,
        provider_order.numbers(manifest),
        budget.max_rounds or (SERVICE_ROUNDS if manifest.services else MAX_ROUNDS),
        channels.max_message(manifest),
        manifest.sandbox.name if manifest.sandbox else "",
        sandboxes.level(manifest) if manifest.tools else 0,
        prose.add(identity.spec.personality),
        manifest.settings.console.prompt,
        budget.total_timeout_ms or (SERVICE_TURN_MS if manifest.services else TURN_MS),
        *provider_order.limits(manifest),
        folding.calls_per_minute(manifest.policies),
        folding.rates(manifest.policies),
    ]


def _tool(manifest, tool, rules, pool, prose, timeouts: dict) -> tuple[bytes, object]:
    spec = tool.spec
    schema = spec.input_schema or {"type": "object"}
    program = _schema(manifest, tool, "input_schema", schema, pool)
    output = (
        _schema(manifest, tool, "output_schema", spec.output_schema, pool)
        if spec.output_schema
        else None
    )
    entry, alone, bound = folding.entries(rules, manifest, tool)
    limits = manifest.sandbox.spec.resource_limits if manifest.sandbox else None
    budget = manifest.settings.budget
    handler = skills.handler(manifest, tool)
    is_mediated = tool.service or tool.served and tool.served.server.is_mediated
    record = [
        skills.called(tool),
        _flags(tool, handler)
        | (
            layout.ASKS
            if skills.asks(manifest, tool) or tool.service and tool.service.confirms
            else 0
        ),
        (tool.labels or {}).get("category"),
        program,
        output,
        timeouts[skills.called(tool)],
        min(
            limits and limits.max_output_bytes or MAX_OUTPUT,
            budget.max_tool_result_bytes or (MAX_RESULT if is_mediated else MAX_OUTPUT),
            MAX_OUTPUT,
        ),
        handler or _handler(tool),
        folding.path_arguments(schema),
        alone,
        bound,
        prose.add(spec.description or ""),
        _retry(manifest, tool),
    ]
    return encode(record), entry


def _timeout_ms(manifest, tool) -> int:
    """Return when *tool* is ended: as it says, and not later than the budget; 0 for never."""
    most = manifest.settings.budget.timeout_per_tool_ms
    if tool.service:
        return most or TIMEOUT_MS
    own = tool.spec.timeout_ms or 0
    if most and not unsupported.can_end(manifest, tool):
        manifest.problems.add(
            manifest.settings.place,
            ("budget", "timeout_per_tool_ms"),
            f"{tool.function.name} in tools.py runs in one piece, so nothing could stop it in time",
            hint=unsupported.MENDS,
            key=True,
        )
    return (
        min(own or most, most)
        if most
        and (
            tool.function
            or tool.served
            or tool.spec.composite
            or registry.ability(tool.name) != "pins"
        )
        else own
    )


def _retry(manifest, tool) -> list | None:
    """Return [attempts, backoff] (core/turns/retry.py), None for one attempt.  Only what may run
    twice is run again (5.4).
    """
    retry, hints = tool.spec.retry, tool.spec.annotations or {}
    if retry is None:
        return None
    if hints.get("readOnlyHint") is not True and hints.get("idempotentHint") is not True:
        manifest.note(
            tool,
            ("retry",),
            f"{tool.name} is never tried again: it does not say that it may run twice "
            "(annotations: { idempotentHint: true } does)",
        )
        return None
    attempts = MAX_ATTEMPTS if retry.max_attempts is None else retry.max_attempts
    return [attempts, BACKOFF[retry.backoff or "exponential"]] if attempts > 1 else None


def _schema(manifest, tool, field: str, schema: dict, pool):
    is_foreign = tool.served is not None and schema is tool.served.definition.get("inputSchema")
    try:
        return compile_schema(schema, pool, is_foreign)
    except SchemaError as e:
        manifest.problem(tool, (field, *e.path), e.message, hint=_SIMPLER)
    except PatternError as e:
        manifest.problem(tool, (field,), str(e), hint=_SIMPLER)
    return None


def _flags(tool, handler) -> int:
    hints = tool.spec.annotations or {}
    read_only = hints.get("readOnlyHint") is True
    # no annotation means side effects (MCP's default)
    flags = 0 if read_only else layout.HAS_SIDE_EFFECTS
    for name, flag in (
        ("readOnlyHint", layout.READ_ONLY),
        ("destructiveHint", layout.DESTRUCTIVE),
        ("idempotentHint", layout.IDEMPOTENT),
        ("openWorldHint", layout.OPEN_WORLD),
    ):
        flags |= flag if hints.get(name) is True else 0
    if tool.served is not None:
        # a stranger's hint may make it stricter, never looser
        theirs = tool.served.definition.get("annotations")
        if isinstance(theirs, dict) and theirs.get("destructiveHint") is True and not read_only:
            flags |= layout.DESTRUCTIVE
        return flags
    if handler is not None or tool.service is not None:
        return flags
    if tool.function is None:
        stepped = inspect.isgeneratorfunction(HANDLERS.get(tool.name)) or registry.ability(
            tool.name
        ) in ("buses", "delegate")
        return (
            flags
            | (layout.HAS_BOARD if registry.ability(tool.name) in ("pins", "buses") else 0)
            | (layout.GENERATOR if stepped else 0)
        )
    return (
        flags
        | (layout.GENERATOR if tool.function.is_generator else 0)
        | (layout.HAS_BOARD if tool.function.has_board else 0)
    )


def _handler(tool) -> list:
    if tool.served is not None:
        server = tool.served.server
        if server.is_mediated:
            return [layout.SERVICE, f"{server.name}.{tool.served.tool}"]
        return [layout.SERVED, f"{server.name}/{tool.served.tool}"]
    if tool.service is not None:
        return [layout.SERVICE, tool.name]
    return (
        [layout.BUILTIN, tool.name]
        if tool.function is None
        else [layout.MAKER, tool.function.function]
    )


def _compiled(manifest, name: str, compiler, tools):
    text = getattr(manifest.settings, name + "_text")
    wanted = [p for p in manifest.providers if p.spec.endpoint == f"builtin:{name}"]
    if text is None:
        for provider in wanted:
            manifest.problem(
                provider,
                ("endpoint",),
                f"{provider.spec.endpoint} needs a file",
                hint=f"name a file in clawlite.toml: {name} = "
                f'"{name}.{"toml" if name == "reflex" else "jsonl"}"',
            )
        return None
    compiled, problems = compiler(text, getattr(manifest.settings, name + "_file"), tools)
    manifest.problems.found.extend(problems)
    return compiled or None


def _confirms(manifest, tools: list, triggers, timeouts: dict):
    readings = triggers[rule_table.READINGS] if triggers else []
    return confirms.section(manifest, tools, readings, timeouts)


_PWM_HZ = 1000
_PULLS = {"up": PULL_UP, "down": PULL_DOWN}


def _pins(manifest):
    pins = []
    for pin in manifest.settings.pins:
        simulate = pin.simulate
        is_quantity = simulate is not None and "." in (simulate.raises or "")
        safe = pin.safe or 0
        if pin.pulse_us and pin.safe is not None:
            safe = pulses.duty_of(pin.safe, *pin.pulse_us, pin.degrees)
        pins.append(
            [
                pin.name,
                pin.pin,
                OPEN_DRAIN if pin.open_drain else _PULLS.get(pin.pull, PIN_KINDS.index(pin.kind)),
                (simulate.start if simulate else 0) or safe,
                None if is_quantity else simulate.raises if simulate else None,
                int(simulate.per_second) if simulate and not is_quantity else 0,
                parse_duration(pin.settle) or 0,
                safe,
                pulses.SERVO_HZ if pin.pulse_us else _PWM_HZ if pin.kind == "pwm" else 0,
            ]
        )
    return pins or None


def _digest(sources: list) -> bytes:
    """Return the SHA-256 of ``encode([name, bytes])`` of all *sources*, without a copy of them."""
    digest = hashlib.sha256()
    for name, data in sources:
        head = bytearray(encode(len(data)))
        head[0] |= _BYTES  # the head of a string of bytes is its length, marked as that of one
        digest.update(encode([name, 0])[:-1] + head)
        digest.update(data)
    return digest.digest()


def _companions(manifest) -> list:
    if not any(tool.function for tool in manifest.tools):
        return []
    names = ["tools.py", *(manifest.imports.modules if manifest.imports else [])]
    return [
        [name, hashlib.sha256(data).digest()] for name, data in manifest.sources if name in names
    ]


def _sizes(data: bytes) -> list:
    opened = layout.Image(lambda offset, length: data[offset : offset + length], len(data), 1)
    return [(SECTION_NAMES[number], opened.size_of(number)) for number in opened.sections()]

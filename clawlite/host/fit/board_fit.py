"""Compare a manifest with a board: each thing that the manifest wants and the board lacks becomes a
problem with file, line, field and a way out.

1. The board's profile decides; nothing is tried on a board.
2. Another board is suggested as a way out only if it is known to have the thing.
3. manifest/unsupported.py lists what this version builds on no board.  When both report the same
   field, the board's message is kept.
"""

import dataclasses
import functools
import typing

from clawlite.core.image.memories import FILES
from clawlite.host.base.document import LinePlace
from clawlite.host.base.problems import ManifestErrors, Problem, Problems, quoted
from clawlite.host.boards import boards
from clawlite.host.boards.profile import Ability, Profile
from clawlite.host.compiler import compiler
from clawlite.host.compiler.features import FEATURES
from clawlite.host.documents import registry
from clawlite.host.firmware import firmware, slot
from clawlite.host.fit import audit, pins, samples, stores
from clawlite.host.fit import heap as board_heap
from clawlite.host.memory.store_type import TYPES
from clawlite.host.policy import scan_config
from clawlite.host.providers import provider_order, trust
from clawlite.host.rules import confirms
from clawlite.host.rules import rules as own_rules
from clawlite.host.swarm import swarms
from clawlite.host.tools import imports, sandbox_warnings, world_models
from clawlite.protocols.mcp import tool_provider

_SHOWN_BOARDS = 6
_INSTEAD = {
    "guard-model": "detection: pattern, which looks without a model",
    "tool-providers": "write them as plain functions of tools.py",
    "page": "remove [page]: with [gateway], the page of its gateway shows a board",
    "mcp": 'let a gateway call it: mode = "mediated" under [mcp.NAME], and [gateway]',
}
_ABILITIES = set(typing.get_args(Ability)) - {"http", "https", "process"}


class Need:
    """What an image takes on MicroPython, in bytes (heap.py); *board*: its profile, or None:
    any, with 32-bit words.
    """

    def __init__(self, manifest, data: bytes):
        source = b""
        if any(tool.function for tool in manifest.tools):
            source = dict(manifest.sources)["tools.py"]
        self._data, self._source = data, source.decode()
        modules = manifest.imports.modules if source and manifest.imports else []
        self._modules = [dict(manifest.sources)[name].decode() for name in modules]
        self._known = {}  # boards differ in little

    def _measure(self, function, board, *more) -> int:
        key = function, *more, slot.is_packed(board), *slot.of_board(board)
        if key not in self._known:
            self._known[key] = function(self._data, self._source, *more, board)
        return self._known[key]

    def held(self, board=None) -> int:
        bits = board.word_bits if board else 32
        return self._measure(board_heap.heap_after_calls, board, bits) + self._beside(bits)

    def _beside(self, bits: int) -> int:
        """Return the heap that the modules beside tools.py take."""
        heap = board_heap.Heap(bits)
        return sum(board_heap.functions(heap, text) for text in self._modules)

    def swarm(self, board=None) -> int:
        return self._measure(board_heap.swarm, board, board.word_bits if board else 32)

    def heap(self, board=None) -> int:
        bits = board.word_bits if board else 32
        return self._measure(board_heap.needed, board, bits) + self._beside(bits)

    def flash(self, board=None) -> int:
        # compiled they are smaller than their text
        beside = board_heap.on_flash([len(text.encode()) for text in self._modules])
        return self._measure(board_heap.flash, board) + 2 * beside


def demand(manifest, board: Profile, build) -> tuple:
    """Return (what ``build()`` returns: ``compiler.build`` of *manifest*, the ``Need`` of its
    image).

    Raises ``ManifestErrors`` with all problems: what *board* cannot give, and those of the build.
    """
    try:
        built = build()
    except ManifestErrors as e:
        found = board_problems(manifest, board, boards.load_all(manifest.folder))
        known_problems = {(problem.file, problem.line, problem.path) for problem in found}
        raise ManifestErrors(
            found + [p for p in e.problems if (p.file, p.line, p.path) not in known_problems]
        ) from None
    need = Need(manifest, built.data)
    refuse(manifest, board, need)
    return built, need


def refuse(manifest, board: Profile, need: Need = None) -> None:
    """Raise ``ManifestErrors`` with all that *board* cannot give; *need*: of its image, where
    there is one.
    """
    known = boards.load_all(manifest.folder)
    found = board_problems(manifest, board, known) + (
        sizes(manifest, board, need, known) if need else []
    )
    if found:
        raise ManifestErrors(found)


def notes(manifest, board: Profile, need: Need = None) -> list[dict]:
    """Return what a maker should know of *board* (or None) and *manifest* that is no problem:
    [{file, line, message}]; *need*: of its image, where there is one.
    """
    if board is None:
        return []
    free_bytes = board.flash_bytes - need.flash(board) if need and board.flash_bytes else None
    found = [one for feature in FEATURES for one in feature.note(manifest, board, free_bytes)]
    if board.pins.simulated and manifest.settings.pins:
        found.append(
            (
                manifest.settings.where("pins", 0),
                f"this version drives no pin of {board.name}: they are simulated",
            )
        )
    if board.runtime == "cpython" and not board.pins.simulated and manifest.imports:
        found += imports.kernel_notes(manifest.imports, board)
    if board.name.startswith("rpi-"):
        found += pins.overlays(manifest)
    if board.runtime == "micropython":
        found += [
            (
                model.where(),
                f"{board.name} asks no world model: {', '.join(names)} acts without {model.name}",
            )
            for model, names in world_models.named_models(manifest)
        ]
        if need and board.flash_bytes is not None:
            found += samples.notes(manifest, board, board.flash_bytes - need.flash(board))
        found += stores.notes(manifest, board)
        found += audit.notes(manifest, board)
    return [{"file": file, "line": line, "message": message} for (file, line), message in found]


def fitting_boards(manifest, need: Need) -> tuple[list[str], dict[str, str]]:
    """Return (names of the boards on which an image of this need can run, {name of each other
    one: the first reason why not}).
    """
    fits, why_not = [], {}
    for board in boards.load_all(manifest.folder):
        problems = board_problems(manifest, board) or sizes(manifest, board, need)
        if problems:
            # check --board has the hint, and all others
            why_not[board.name] = dataclasses.replace(problems[0], hint="").text()
        else:
            fits.append(board.name)
    return fits, why_not


def board_problems(manifest, board: Profile, known: list = ()) -> list[Problem]:
    """Return a problem for each thing that *manifest* asks of *board* in vain; *known*: profiles
    that hints may name.
    """
    problems = Problems()
    _abilities(manifest, board, known, problems)
    other = functools.partial(_other_board_hint, known)
    for feature in FEATURES:
        feature.fit(manifest, board, other, problems)
    _network(manifest, board, known, problems)
    _sandbox(manifest, board, known, problems)
    _messages(manifest, board, problems)
    _stores(manifest, board, known, problems)
    if manifest.imports:
        imports.add_board_problems(
            manifest.imports, dict(manifest.sources), board, firmware.sources(), problems
        )
    _swarm(manifest, board, problems)
    _confirms(manifest, board, problems)
    _crons(manifest, board, problems)
    pins.add_problems(manifest, board, other, problems)
    return problems.found


def sizes(manifest, board: Profile, need: Need, known: list = ()) -> list[Problem]:
    """Return a problem when the image takes more heap or flash than *board* has; *known* as
    above.
    """
    problems = Problems()
    place = LinePlace(manifest.file, 1)
    if board.runtime == "micropython":
        wanted = _heap(manifest, board, need)
        if wanted > board.heap_bytes:
            tls = (
                f" ({board.network.tls_bytes:,} of them for TLS)"
                if wanted > need.heap(board)
                else ""
            )
            problems.add(
                place,
                (),
                f"the agent needs about {wanted:,} bytes of heap{tls}, and "
                f"{board.name} has {board.heap_bytes:,}",
                hint=_other_board_hint(
                    known,
                    lambda b: (
                        (not tls or "https" in b.abilities)
                        and (not b.heap_bytes or _heap(manifest, b, need) <= b.heap_bytes)
                    ),
                    "[gateway] in clawlite.toml" if tls else "fewer tools or rules",
                ),
            )
        if board.flash_bytes is not None and need.flash(board) > board.flash_bytes:
            problems.add(
                place,
                (),
                f"the agent needs about {need.flash(board):,} bytes of flash, "
                f"and {board.name} has {board.flash_bytes:,}",
                hint=_other_board_hint(
                    known,
                    lambda b: b.flash_bytes is None or need.flash(b) <= b.flash_bytes,
                    "fewer entries: retention.max_entries"
                    if manifest.memory
                    else "a smaller agent",
                ),
            )
    return problems.found


def _heap(manifest, board: Profile, need: Need) -> int:
    """Return the bytes of heap that the agent needs on *board*, with those of a TLS connection."""
    return need.heap(board) + (board.network.tls_bytes or 0 if trust.hosts(manifest) else 0)


# -- what is wanted, and where that stands


def _abilities(manifest, board: Profile, known: list, problems: Problems) -> None:
    """But for those of the network.  What is no ability (of a provider that this version does
    not have) is refused anyway.
    """
    needs = {}
    for feature in FEATURES:
        own = {}
        for one in feature.needs(manifest):
            own.setdefault(one.ability, []).append(one)
        needs = own | needs
    for ability, wanted in needs.items():
        if ability in _ABILITIES and ability not in board.abilities:
            for one in wanted:
                problems.add(
                    one.place,
                    one.path,
                    (one.message or f"this needs {ability}, which %s does not have") % board.name,
                    hint=_other_board_hint(known, lambda b: ability in b.abilities, one.instead),
                )
    for ability in compiler._requires(manifest):
        if ability in _ABILITIES and ability not in board.abilities:
            hint = _other_board_hint(
                known, lambda b: ability in b.abilities, _INSTEAD.get(ability, "leave it out")
            )
            tools = [
                tool
                for tool in manifest.tools
                if tool.origin == "registry" and registry.ability(tool.name) == ability
            ]
            for place, path in [(tool.report_place, ()) for tool in tools] or [
                _place_of_ability(manifest, ability)
            ]:
                problems.add(
                    place,
                    path,
                    f"this needs {ability}, which {board.name} does not have",
                    hint=hint,
                )


def _place_of_ability(manifest, ability: str) -> tuple:
    """Return (place, path) of the part that needs an ability, other than a built-in tool."""
    for provider in manifest.providers:
        if provider.spec.endpoint == f"builtin:{ability}":
            return provider.place, ("endpoint",)
    if ability == "memory":
        return (
            (manifest.memory.place, ())
            if manifest.memory
            else (manifest.identity.place, ("context_files",))
        )
    for needed, primitive, path in scan_config.wanted_abilities(manifest):
        if ability == needed:
            return primitive.place, path
    if ability == "telemetry":
        return manifest.telemetry.place, ()
    for tool in manifest.tools:
        if ability == "mcp" and tool.served and not tool.served.server.is_mediated:
            return tool.report_place, ("mcp_source",)
        if ability in ("mediated", "mediated-line") and tool.served and not tool.service:
            return tool.report_place, ("mcp_source",)
    for service in manifest.services:
        if ability in ("services", "mediated", "mediated-line"):
            return service.place, ("mode",)
    if ability == "gateway":
        return manifest.settings.place, ("gateway",)
    if ability == "rules":
        return manifest.settings.place, ("reflex",)
    if ability == "stop-of-swarm":
        return manifest.settings.place, ("gateway", "obeys_stop_of")
    if ability == "lan":
        return manifest.settings.place, ("gateway", "wire")
    if ability == "pins" and manifest.settings.pins:
        return manifest.settings.place, ("pins", 0)
    if ability == "swarm":
        return manifest.swarm.place, ()
    for tool in manifest.tools:
        if ability == "tools" or ability == "tools.py" and tool.function:
            return tool.report_place, ()
        if ability == "tool-providers" and tool.function:
            if tool_provider.is_provided(tool.function.function):
                return tool.place, ()
    for policy in manifest.policies:
        for index, rule in enumerate(policy.spec.rules):
            if ability == "log" and rule.action == "audit-only":
                return policy.place, ("rules", index, "action")
    return LinePlace(manifest.file, 1), ()


def _swarm(manifest, board: Profile, problems: Problems) -> None:
    """A board is a member of a swarm through its gateway, which speaks to the engine."""
    if board.runtime != "micropython" or not swarms.is_built(manifest):
        return
    if not manifest.settings.gateway:
        message = f"{board.name} is in a swarm through its gateway"
        hint = "add [gateway] to clawlite.toml"
        problems.add(manifest.swarm.place, (), message, hint=hint)
    elif manifest.swarm.spec.coordination.backend == "in-process":
        path, message = ("coordination", "backend"), "no gateway can speak for one process alone"
        problems.add(manifest.swarm.place, path, message, '"sqlite-wal"', '"in-process"')


def _tls(manifest, board: Profile, known: list, problems: Problems) -> None:
    """A board checks every certificate, so it must know whose signature counts; and no watchdog
    may bite while it does its sums.
    """
    hosts = trust.hosts(manifest)
    if board.runtime != "micropython" or not hosts or not board.network.tls:
        return
    place, path, _ = hosts[0]
    if _tls_missing(manifest, board):
        problems.add(
            place,
            path,
            f"{board.name} has no list of certificate authorities",
            hint="name "
            "the "
            "one "
            "of "
            "this "
            "host: "
            "[tls] "
            "ca "
            "= "
            '["FILE.pem"] '
            "in "
            "clawlite.toml; or let a gateway check it: [gateway]",
        )
    boot = manifest.settings.boot
    if boot and boot.watchdog_ms and boot.watchdog_ms < trust.HANDSHAKE_MS:
        problems.add(
            manifest.settings.place,
            ("boot", "watchdog_ms"),
            "a TLS handshake keeps a board's processor for seconds",
            f"{trust.HANDSHAKE_MS} or more",
            str(boot.watchdog_ms),
            hint="or ask through a gateway: [gateway]",
        )


def _tls_missing(manifest, board: Profile) -> bool:
    """Return whether this board would have to accept any certificate.  For a gateway,
    host/providers/trust.py reports it.
    """
    return (
        board.runtime == "micropython"
        and bool(trust.hosts(manifest))
        and not manifest.settings.authorities
        and not manifest.settings.gateway
    )


def _network(manifest, board: Profile, known: list, problems: Problems) -> None:
    _tls(manifest, board, known, problems)
    gateway = manifest.settings.gateway
    if gateway:
        if gateway.tls and board.network.links and not board.network.tls:
            problems.add(
                manifest.settings.place,
                ("gateway", "tls"),
                f"{board.name} has no TLS",
                key=True,
                hint="remove it, on a LAN that you trust",
            )
        return
    asked = [
        (provider.place, ("endpoint",), provider.spec.endpoint)
        for provider in provider_order.providers(manifest)
        if provider_order.is_remote(provider)
    ]
    asked += [
        (manifest.settings.place, ("oauth2", name, "endpoint"), server.endpoint)
        for name, server in manifest.settings.oauth2.items()
    ]
    for place, path, endpoint in asked:
        scheme = endpoint.partition(":")[0].lower()
        if scheme not in ("http", "https") or scheme in board.abilities and board.network.links:
            continue  # another scheme is refused whatever the board
        if not board.network.links:
            message, ways = (
                f"{board.name} has no network",
                "[gateway] in clawlite.toml, a built-in provider",
            )
        elif not board.network.tls:
            message, ways = f"{board.name} has no TLS", "an http endpoint"
        else:
            message = (
                f"this version speaks "
                f"{' and '.join(a for a in board.abilities if a in ('http', 'https')) or 'no http'} "  # noqa: E501
                f"on {board.name}"
            )
            ways = "an http endpoint" if "http" in board.abilities else "a built-in provider"
        problems.add(
            place,
            path,
            message,
            hint=_other_board_hint(
                known,
                lambda b: (
                    scheme in b.abilities
                    and bool(b.network.links)
                    and not _tls_missing(manifest, b)
                ),
                ways,
            ),
        )


def _sandbox(manifest, board: Profile, known: list, problems: Problems) -> None:
    if manifest.sandbox is None:
        if manifest.tools and "process" not in board.sandbox.levels:
            problems.add(
                manifest.tools[0].report_place,
                (),
                "no Sandbox is declared, and that means the "
                "most restrictive one: level process, "
                f"which {board.name} does not have",
                hint="declare sandbox: { inline: { "
                "level: none } } to run tools "
                "in the agent's own process",
            )
        return
    spec, place = manifest.sandbox.spec, manifest.sandbox.place
    if spec.level not in board.sandbox.levels:
        problems.add(
            place,
            ("level",),
            f'{board.name} cannot isolate tools at level "{spec.level}"',
            hint=_other_board_hint(known, lambda b: spec.level in b.sandbox.levels, "level none"),
        )
    if board.sandbox.profiles == ["L"]:
        for path, what, above in sandbox_warnings.find_inexpressible(manifest):
            problems.add(
                place,
                path,
                f"{what} lies in {quoted(above)}, which tools may write to: {board.name} has only "
                "Landlock, which takes no rights away below a folder",
                hint=f"move it out of {quoted(above)}",
            )
    limits = spec.resource_limits
    for name in limits.__struct_fields__ if limits else ():
        if getattr(limits, name) and name not in board.sandbox.limits:
            problems.add(
                place,
                ("resource_limits", name),
                f"{board.name} cannot keep this limit",
                key=True,
                hint=_other_board_hint(
                    known,
                    lambda b: name in b.sandbox.limits,
                    "set timeout_ms on the tools that need one"
                    if name == "timeout_ms"
                    else "remove it",
                ),
            )


def _messages(manifest, board: Profile, problems: Problems) -> None:
    """Only a declared value counts; a default is no promise."""
    limits = manifest.sandbox.spec.resource_limits if manifest.sandbox else None
    most = board.messages
    asked = []
    # else it bounds what a child says, of which an answer holds the first part
    if limits and "process" not in board.sandbox.levels:
        asked.append(
            (
                manifest.sandbox.place,
                ("resource_limits", "max_output_bytes"),
                limits.max_output_bytes,
                most.max_result_bytes,
            )
        )
    asked.append(
        (
            manifest.settings.place,
            ("budget", "max_tool_result_bytes"),
            manifest.settings.budget.max_tool_result_bytes,
            most.max_result_bytes,
        )
    )
    for place, path, value, bound in asked:
        if value and value > bound:
            problems.add(
                place,
                path,
                "",
                f"at most {bound} on {board.name}",
                str(value),
                hint=f"set it to {bound} or less",
            )


def _stores(manifest, board: Profile, known: list, problems: Problems) -> None:
    for index, store in enumerate(manifest.memory.spec.stores if manifest.memory else ()):
        size = (store.max_size_mb or 0) << 20
        if board.flash_bytes is not None and size > board.flash_bytes:
            problems.add(
                manifest.memory.place,
                ("stores", index, "max_size_mb"),
                f"{board.name} has {board.flash_bytes:,} bytes of flash",
                found=f"{size:,} bytes",
                hint=_other_board_hint(
                    known,
                    lambda b: b.flash_bytes is None or size <= b.flash_bytes,
                    "a smaller store",
                )
                if TYPES[store.type].does(FILES)
                else f"retention.max_entries in its place: a {store.type} store is "
                f"counted in entries",
            )
    for ability, wants_of in (("memory", stores.add_problems), ("audit", audit.add_problems)):
        if board.runtime == "micropython" and ability in board.abilities:
            wants_of(manifest, board, functools.partial(_other_board_hint, known), problems)


def _other_board_hint(known: list, can, otherwise: str) -> str:
    """Return a hint: *otherwise*, or the boards of *known* that ``can``."""
    able = [board.name for board in known if can(board)]
    if not able:
        return f"{otherwise}; no board that is known can" if known else ""
    more = len(able) - _SHOWN_BOARDS
    return (
        f"{otherwise}, or another board: "
        f"{', '.join(able[:_SHOWN_BOARDS])}{f' and {more} more' if more > 0 else ''}"
    )


def _crons(manifest, board: Profile, problems: Problems) -> None:
    """A board lists and keeps its Channels of type cron as rules, so each has a name of its own."""
    rules = own_rules.names(manifest) if board.runtime == "micropython" else ()
    for channel in manifest.channels:
        if channel.spec.type == "cron" and channel.name in rules:
            problems.add(
                channel.place,
                ("name",),
                f"a rule is called {quoted(channel.name)}, too, and {board.name} lists and keeps "
                "both alike",
                hint="rename one",
            )


def _confirms(manifest, board: Profile, problems: Problems) -> None:
    """While a function runs in one piece, a board reads nothing."""
    for path, tool in confirms.find_one_piece(manifest) if board.runtime == "micropython" else ():
        problems.add(
            manifest.settings.place,
            path,
            f"{tool.name} runs in one piece, and {board.name} reads nothing meanwhile",
            hint=f"let {tool.name} in tools.py yield while its effect lasts",
            key=True,
        )

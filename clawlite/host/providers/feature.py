"""Providers, and the gateway that asks them, as the compiler sees them."""

from clawlite.core.image.image import NETWORK, PROVIDERS, REFLEX, REPLAY, WIRE
from clawlite.host.base.document import LinePlace
from clawlite.host.base.problems import LATER
from clawlite.host.models.feature import Feature, Requirement
from clawlite.host.policy.secret_refs import check_secret_ref
from clawlite.host.providers import local_model, provider_order, remotes, trust
from clawlite.host.providers.model import ProviderSpec
from clawlite.host.providers.reflexes import compile_reflex
from clawlite.host.providers.replays import compile_replay
from clawlite.host.providers.rule_calls import find_callables


def check(manifest, at_use: bool) -> None:
    for provider in manifest.providers:
        _check_one(manifest, provider)
        check_secret_ref(manifest, provider)
    provider_order.check(manifest)


def _check_one(manifest, provider) -> None:
    spec = provider.spec
    builtin = spec.endpoint.startswith("builtin:")
    if spec.protocol == "custom" and spec.endpoint not in provider_order.ENDPOINTS:
        manifest.problem(
            provider,
            ("endpoint",),
            f"other custom providers are {LATER}",
            '"builtin:reflex", "builtin:replay" or "builtin:local"',
            f'"{spec.endpoint}"',
        )
    elif spec.protocol != "custom" and builtin:
        manifest.problem(
            provider,
            ("protocol",),
            "",
            'protocol "custom" for a built-in provider',
            f'"{spec.protocol}"',
        )
    elif spec.endpoint == local_model.ENDPOINT and spec.model != local_model.MODEL:
        manifest.problem(provider, ("model",), "", f'"{local_model.MODEL}"', f'"{spec.model}"')
    elif not builtin:
        wrong = remotes.endpoint_problem(spec.endpoint, True)
        if wrong:
            manifest.problem(provider, ("endpoint",), wrong, hint=remotes.ENDPOINT)
    if builtin and spec.auth.type != "none":
        manifest.problem(
            provider,
            ("auth", "type"),
            "a built-in provider needs no key",
            '"none"',
            f'"{spec.auth.type}"',
        )
    if spec.auth.type == "oauth2" and provider.name not in manifest.settings.oauth2:
        manifest.problem(
            provider,
            ("auth", "type"),
            "nothing says where its tokens come from",
            hint=f"add [oauth2.{provider.name}] with endpoint and client_id to clawlite.toml",
        )
    if spec.transport != "http":
        manifest.problem(
            provider, ("transport",), f'transport "{spec.transport}" is {LATER}', '"http"'
        )
    for index, modality in enumerate(spec.capabilities or ()):
        if modality != "text":
            manifest.problem(
                provider, ("capabilities", index), f'"{modality}" is {LATER}', '"text"'
            )


def compile_sections(manifest, work) -> dict:
    """Compile the providers, the last of all features: what a model is shown must have no problem
    left.
    """
    tools = find_callables(list(zip(work.names, work.tools)))
    sections = {
        REFLEX: _compile_file(manifest, "reflex", compile_reflex, tools),
        REPLAY: _compile_file(manifest, "replay", compile_replay, work.names),
        NETWORK: trust.section(manifest),
    }
    manifest.problems.raise_all()
    sections[PROVIDERS], sections[WIRE] = provider_order.tables(
        manifest, work.list_aliased(), work.shown, work.system
    )
    return sections


def _compile_file(manifest, name: str, compiler, tools) -> list | None:
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


def find_needs(manifest) -> list[Requirement]:
    asked = [*provider_order.providers(manifest)]
    asked += [provider for provider, _ in provider_order.embedders(manifest)]
    found = []
    for provider in asked:
        scheme, _, builtin = provider.spec.endpoint.partition(":")
        ability = scheme if provider_order.is_remote(provider) else builtin
        found.append(Requirement(ability, provider.place, ("endpoint",)))
    if manifest.settings.reflex_first:
        found.append(Requirement("reflex", LinePlace(manifest.file, 1)))
    gateway, place = manifest.settings.gateway, manifest.settings.place
    if gateway:  # who that is has these, whatever the device has
        found = [one for one in found if one.ability not in ("http", "https", "local")]
        found.append(Requirement("gateway", place, ("gateway",)))
        if gateway.wire == "tcp":
            found.append(Requirement("lan", place, ("gateway", "wire")))
    return found


def warn(manifest, work) -> list:
    found = _find_local(manifest, work)
    if not manifest.settings.prefer:
        found += [
            (
                provider.where("hints"),
                f"the hints of {provider.name} choose nothing "
                f'without prefer = "cost", "speed" or '
                '"intelligence" in clawlite.toml',
            )
            for provider in manifest.providers
            if provider.spec.hints
        ]
    return found


def _find_local(manifest, work) -> list:
    """Return warnings about tools that the local model may call."""
    if not any(local_model.is_local(one) for one in provider_order.providers(manifest)):
        return []
    decided = [
        (tool, work.rules[entry].rule.action if isinstance(entry, int) else "")
        for tool, entry in zip(manifest.tools, work.entries)
        if entry is not None
    ]
    decided = [pair for pair in decided if pair[1] != "deny"]
    return local_model.notes(manifest, decided)


def fit(manifest, board, other, problems) -> None:
    _fit_tls(manifest, board, problems)
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
    asked: list[tuple] = [
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
            hint=other(
                lambda b: (
                    scheme in b.abilities
                    and bool(b.network.links)
                    and not _tls_missing(manifest, b)
                ),
                ways,
            ),
        )


def _fit_tls(manifest, board, problems) -> None:
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
            hint='name the one of this host: [tls] ca = ["FILE.pem"] in clawlite.toml; or let a '
            "gateway check it: [gateway]",
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


def _tls_missing(manifest, board) -> bool:
    """Return whether this board would have to accept any certificate.  For a gateway,
    host/providers/trust.py reports it.
    """
    return (
        board.runtime == "micropython"
        and bool(trust.hosts(manifest))
        and not manifest.settings.authorities
        and not manifest.settings.gateway
    )


FEATURE = Feature(
    "Provider",
    ProviderSpec,
    check=check,
    compile=compile_sections,
    needs=find_needs,
    warn=warn,
    fit=fit,
)

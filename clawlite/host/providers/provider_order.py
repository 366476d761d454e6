"""Which providers an agent asks, in which order, and what all of them together may use (CKP 5.2,
5.8).

1. The first provider is asked, then its fallbacks as declared.  With ``prefer`` in clawlite.toml,
   the provider with the highest hint of that kind is first; among equals, the one declared first.
2. A limit of money does not count a provider without a known price: a warning says so.
"""

from clawlite.core.policy.ledger import COST
from clawlite.core.providers import refusal
from clawlite.core.providers.provider_order import RULES
from clawlite.host.base.problems import did_you_mean, enquote
from clawlite.host.image.image_file import encode, table
from clawlite.host.policy import folding
from clawlite.host.providers import local_model, remotes

BUILTIN_ENDPOINTS = ("builtin:reflex", "builtin:replay")
ENDPOINTS = (*BUILTIN_ENDPOINTS, local_model.ENDPOINT)


def is_builtin(provider) -> bool:
    """Return whether *provider* has no row of its own in the image."""
    return provider.spec.endpoint in BUILTIN_ENDPOINTS


def is_remote(provider) -> bool:
    """Return whether *provider* is a model elsewhere, which writes text."""
    return not is_builtin(provider) and not local_model.is_local(provider)


def providers(manifest) -> list:
    """Return the providers that *manifest* asks, in that order."""
    first = max(manifest.providers, key=lambda provider: _hint(provider, manifest.settings.prefer))
    asked = [first] + [
        manifest.resolve("Provider", fallback.provider_ref)
        for fallback in first.spec.fallback or ()
    ]
    if manifest.swarm and manifest.swarm.spec.aggregation.cost_aware:
        cheapest = iter(sorted((one for one in asked if is_remote(one)), key=_price(manifest)))
        asked = [next(cheapest) if is_remote(one) else one for one in asked]
    return asked


def _price(manifest):
    """Return the key by which providers are sorted: what a million tokens read and a million
    written cost.
    """
    prices = manifest.settings.prices

    def price(provider) -> float:
        known = prices.get(provider.spec.model)
        return known.input + known.output if known else float("inf")

    return price


def embedders(manifest) -> list:
    """Return [(provider, model), ...] of the embeddings of *manifest*'s stores, each once; their
    rows stand behind those of the chain.
    """
    stores = manifest.memory.spec.stores if manifest.memory else ()
    found = [
        (manifest.resolve("Provider", store.embedding.provider_ref), store.embedding.model)
        for store in stores
        if embeds(store)
    ]
    chain = providers(manifest)  # the local model has one row for all that it does
    found = [one for one in found if not (local_model.is_local(one[0]) and one[0] in chain)]
    return [each for number, each in enumerate(found) if each not in found[:number]]


def embeds(store) -> bool:
    """Return whether entries of *store* get vectors: nothing looks at them with fts-only."""
    is_searched = store.search is None or store.search.strategy != "fts-only"
    return store.embedding is not None and is_searched


def embedding(manifest, store) -> list | None:
    """Return [row of PROVIDERS, dimensions] of *store*, None where it has no vectors."""
    if not embeds(store):
        return None
    remote = [provider for provider in providers(manifest) if not is_builtin(provider)]
    asked = manifest.resolve("Provider", store.embedding.provider_ref), store.embedding.model
    if local_model.is_local(asked[0]) and asked[0] in remote:
        return [remote.index(asked[0]), store.embedding.dimensions]
    return [len(remote) + embedders(manifest).index(asked), store.embedding.dimensions]


def _hint(provider, prefer: str) -> float:
    """Return the hint of *provider* for what is preferred, -1 when it has none."""
    hints = provider.spec.hints
    value = getattr(hints, prefer + "_priority") if hints and prefer else None
    return -1 if value is None else value


def check(manifest) -> None:
    """Add a problem for each setting that fits no provider, and each provider that lacks its
    setting.
    """
    settings = manifest.settings
    if settings.prefer and all(
        _hint(provider, settings.prefer) < 0 for provider in manifest.providers
    ):
        manifest.problems.add(
            settings.place,
            ("prefer",),
            f"no provider has hints.{settings.prefer}_priority",
            hint=f"write hints.{settings.prefer}_priority into a provider, or leave prefer out",
        )
    names = [provider.name for provider in manifest.providers if is_remote(provider)]
    for name, fields in settings.dialect.items():
        if name not in names:
            manifest.problems.add(
                settings.place,
                ("dialect", name),
                f"no remote provider is named {enquote(name)}",
                hint=did_you_mean(name, names),
                key=True,
            )
        for field, instead in fields.items():
            wrong = refusal.setting_problem(field, instead)
            if wrong:
                manifest.problems.add(
                    settings.place, ("dialect", name, field), wrong, hint="remove it"
                )
    wanting = [
        provider.name for provider in manifest.providers if provider.spec.auth.type == "oauth2"
    ]
    for name, server in settings.oauth2.items():
        if name not in wanting:
            manifest.problems.add(
                settings.place,
                ("oauth2", name),
                f'no provider {enquote(name)} has auth.type "oauth2"',
                hint=did_you_mean(name, wanting),
                key=True,
            )
        wrong = remotes.endpoint_problem(server.endpoint)
        if wrong:
            manifest.problems.add(
                settings.place,
                ("oauth2", name, "endpoint"),
                wrong,
                hint="write the https:// address of the token endpoint",
            )
    if limits(manifest)[1] is not None or folding.rates(manifest.policies) & COST:
        for provider, model in [
            (provider, provider.spec.model) for provider in providers(manifest)
        ] + embedders(manifest):
            if is_remote(provider) and model not in settings.prices:
                manifest.note(
                    provider,
                    ("model",),
                    f"cost_per_day_usd does not count {enquote(model)}: nobody knows what it costs "
                    f"- add [prices.{enquote(model)}] with input and output to clawlite.toml "
                    "(dollars for a million tokens, 0 where it is free)",
                )


def limits(manifest) -> list:
    """Return [tokens of an hour, nano-dollars of a day] of all providers, None where nothing
    limits them.
    """
    declared = [policy.spec.rate_limits for policy in manifest.policies if policy.spec.rate_limits]
    tokens = [limit.tokens_per_hour for limit in declared if limit.tokens_per_hour is not None]
    cost = [
        remotes.nano(limit.cost_per_day_usd)
        for limit in declared
        if limit.cost_per_day_usd is not None
    ]
    return [min(tokens, default=None), min(cost, default=None)]


def numbers(manifest) -> list[int]:
    """Return the chain as the agent record has it: 0 reflex, 1 replay, n >= 2 row n - 2 of
    PROVIDERS; -1 at the end: rules first.
    """
    asked = providers(manifest)
    remote = [provider for provider in asked if not is_builtin(provider)]
    return [
        BUILTIN_ENDPOINTS.index(provider.spec.endpoint)
        if is_builtin(provider)
        else 2 + remote.index(provider)
        for provider in asked
    ] + ([RULES] if manifest.settings.reflex_first else [])


def tables(manifest, tools: list, entries: list, system) -> tuple:
    """Return (the table PROVIDERS, WIRE), or (None, None) when every provider is built in.

    tools    those of *manifest*, and its skills as such, under the names by which they are called
    system   function(manifest, tools that are offered) -> system prompt
    entries  what policy says of each: those that it always denies are not offered to a model
    """
    offered = [
        tool
        for tool, entry in zip(tools, entries)
        if entry is not None and not _denies(manifest, entry)
    ]
    rows, wire = [], b""
    for provider in providers(manifest):
        if local_model.is_local(provider):
            data = local_model.wire(manifest, provider, offered)
            rows.append(encode(local_model.row(provider, [len(wire), len(data), 0])))
            wire += data
        elif not is_builtin(provider):
            spans = []
            for some in (offered, []):
                begin, end = remotes.wire(provider, system(manifest, some), some)
                if not spans or some != offered:
                    spans.append([len(wire), len(begin), end])
                    wire += begin
            rows.append(encode(remotes.row(provider, manifest.settings, spans[0], spans[-1])))
    for provider, model in embedders(manifest):
        if local_model.is_local(provider):
            data = local_model.wire(manifest, provider, None)
            row = local_model.row(provider, [len(wire), len(data), 0])
            wire += data
        else:
            row = remotes.embedding_row(provider, model, manifest.settings)
        rows.append(encode(row))
    return (table(rows), wire) if rows else (None, None)


def _denies(manifest, entry) -> bool:
    rules = [rule for policy in manifest.policies for rule in policy.spec.rules]
    return isinstance(entry, int) and rules[entry].action == "deny"

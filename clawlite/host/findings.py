"""What is valid in a manifest's policies and yet most likely not meant: for ``clawlite check`` and ``build``.

dead        a rule that matches no tool
shadowed    a rule that an earlier one always beats
warnings    a tool that no rule mentions, only one that is for every tool, or none at all; a permission that rests on what a
            server says of its own tools; a tool that no rule can allow; hints that choose nothing; an allowed host that
            nothing matches; a built-in tool that the sandbox always refuses
"""
from clawlite.core.errors import SandboxDenied
from clawlite.core.netaddress import address_of, is_public
from clawlite.core.netrules import parse_host
from clawlite.core.policy import ACTIONS
from clawlite.host import folding, sandboxes, skills, worlds
from clawlite.host.problems import quoted

_DECIDES = {"deny": "denies", "require-approval": "asks first for", "audit-only": "allows", "allow": "allows"}


def find(manifest) -> dict:
    """Return {dead, shadowed: [{id, file, line}], warnings: [{file, line, message}]} of *manifest*, each in its order.

    It need not be one that this version builds.
    """
    rules = folding.flatten(manifest.policies, sandboxes.workspace(manifest))
    entries, reached = [], []
    for tool in manifest.tools + skills.as_tools(manifest):
        entry, _, bound = folding.entries(rules, manifest, tool)
        entries.append(entry)
        reached += [entry] + (bound or [])
    dead, shadowed = folding.unreached(rules, manifest.tools + skills.as_tools(manifest), reached)
    return {"dead": [_rule(manifest, flat) for flat in dead], "shadowed": [_rule(manifest, flat) for flat in shadowed],
            "warnings": _general(manifest) + _refused(manifest) + _unmentioned(manifest, rules, entries) + _skills(manifest, rules, entries) + _strangers(manifest, rules) + _hosts(manifest)
            + [_warning(*note) for note in worlds.notes(manifest)]}


def _rule(manifest, flat) -> dict:
    file, line = _where(manifest, flat)
    return {"id": flat.rule.id, "file": file, "line": line}


def _warning(where: tuple, message: str) -> dict:
    return {"file": where[0], "line": where[1], "message": message}


def _where(manifest, flat) -> tuple:
    policy = [policy for policy in manifest.policies if policy.name == flat.policy][0]
    return policy.where("rules", flat.place)


def _general(manifest) -> list[dict]:
    found = []
    if manifest.tools and not manifest.policies:
        found.append(_warning((manifest.file, 0), "no Policy is declared: every tool is denied"))
    if not manifest.settings.prefer:
        found += [_warning(provider.where("hints"), f'the hints of {provider.name} choose nothing without prefer = "cost", "speed" or '
                          '"intelligence" in clawlite.toml') for provider in manifest.providers if provider.spec.hints]
    return found


def _hosts(manifest) -> list[dict]:
    """Return a warning for each of ``allowed_hosts`` that no host can match, or that ``block_private_ips`` keeps closed."""
    capabilities = manifest.sandbox.spec.capabilities if manifest.sandbox else None
    network = capabilities.network if capabilities else None
    found = []
    for index, text in enumerate(network.allowed_hosts or [] if network else []):
        address = address_of(text.strip("[]"))
        if address is None:
            if _is_name(text):
                continue
            said = "matches no host: expected a name, *.NAME or an address, without a port"
        elif is_public(address) or not sandboxes.blocks_private(network):
            continue
        else:
            said = "is no public address, and ssrf_protection lets tools reach no other (block_private_ips: false does)"
        found.append(_warning(manifest.sandbox.where("capabilities", "network", "allowed_hosts", index), f"{quoted(text)} {said}"))
    return found


def _is_name(text: str) -> bool:
    try:
        return address_of(parse_host(text[2:] if text.startswith("*.") else text)) is None
    except SandboxDenied:
        return False


def _refused(manifest) -> list[dict]:
    return [_warning(tool.where(), f"the sandbox refuses every call of {tool.name}: capabilities.{block} is deny, which is what is left out, too")
            for tool, block in [(tool, sandboxes.denies(manifest, tool)) for tool in manifest.tools] if block]


def _unmentioned(manifest, rules, entries) -> list[dict]:
    """Return a warning for each rule that stands for every tool and decides some that no rule names, and for tools that none decides."""
    found, general = [], {}
    for tool, entry in zip(manifest.tools, entries):
        matching = [flat for flat in rules if folding.matches(flat.rule, tool)]
        if not matching and rules:
            found.append(_warning(tool.where(), f"no rule mentions {tool.name}, and none is for every tool: it is always denied"))
        elif entry is None and rules:
            found.append(_warning(tool.where(), f"no rule can allow {tool.name}: it is always denied"))
        elif matching and all(folding.is_general(flat.rule) for flat in matching):
            general.setdefault(matching[0].number, []).append(tool.name)
    for number, names in general.items():
        flat = rules[number]
        found.append(_warning(_where(manifest, flat), f"no rule mentions {_listed(names)}: rule {flat.rule.id}, which is for every tool, "
                             f"{_DECIDES[flat.rule.action]} {'it' if len(names) == 1 else 'them'}"))
    return found


def _skills(manifest, rules, entries) -> list[dict]:
    """Return a warning for each skill that no model can begin, and for each tool of one that policy always denies."""
    def is_denied(entry) -> bool:
        return entry is None or isinstance(entry, int) and rules[entry].rule.action == "deny"
    denied = [tool.name for tool, entry in zip(manifest.tools, entries) if is_denied(entry)]
    found = []
    for skill, entry in zip(manifest.skills, entries[len(manifest.tools):]):
        if manifest.policies and is_denied(entry):
            found.append(_warning(skill.where(), f"policy lets no model begin the skill {skill.name}: a person can, with /{skill.name} "
                                 "(a rule of scope skill or all allows it)"))
        for number, reference in enumerate(skill.spec.tools_required):
            name = manifest.resolve("Tool", reference).name
            if manifest.policies and name in denied:
                found.append(_warning(skill.where("tools_required", number), f"the skill {skill.name} needs {name}, which policy always denies"))
    return found


def _strangers(manifest, rules) -> list[dict]:
    """Return a warning for each permission that a server could give its own tools, by what it says of them."""
    found = []
    for flat in rules:
        match = flat.rule.match
        if match and match.annotations and ACTIONS.index(flat.rule.action) >= ACTIONS.index("audit-only"):
            names = [tool.name for tool in manifest.tools if tool.spec.mcp_source and folding.matches(flat.rule, tool, False)]
            if names:
                found.append(_warning(_where(manifest, flat), f"rule {flat.rule.id} would allow {_listed(names)} on the word of an MCP server: "
                                     "what a stranger says of its tools is no ground for a permission"))
    return found


def _listed(names: list) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]

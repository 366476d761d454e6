"""Find settings of a manifest that are valid but most likely not meant: for ``clawlite check`` and
``build``.

dead        a rule that matches no tool
shadowed    a rule that an earlier one always beats; a rule that denies what is left is none, though
            the tools of today leave it nothing
warnings    a tool that no rule mentions, only one that is for every tool, or none at all; a
            permission that rests on what a server says of its own tools; a tool that no rule can
            allow; rules that allow tools to an observer; hints that have no effect; an allowed
            host that the sandbox does not open; a built-in tool that it always refuses; fields that
            another field makes ineffective; a Sandbox that allows more than its maker may want
            (host/tools/sandbox_warnings.py)
"""

import re
from types import SimpleNamespace

from clawlite.core.policy.policy import ACTIONS, is_within
from clawlite.host.base.problems import did_you_mean, quoted
from clawlite.host.compiler.features import FEATURES
from clawlite.host.compiler.work import Work
from clawlite.host.policy import folding
from clawlite.host.providers import local_model, provider_order
from clawlite.host.tools import sandbox_warnings, sandboxes, skills, world_models
from clawlite.protocols.net.netaddress import address_of, is_public
from clawlite.protocols.net.netrules import is_listed, parse_url
from clawlite.protocols.sandbox import profile

_WORD = re.compile(r"[A-Za-z]{2,}(?![A-Za-z]*[|?*{])[^|]*\Z")
_DECIDES = {
    "deny": "denies",
    "require-approval": "asks first for",
    "audit-only": "allows",
    "allow": "allows",
}


# Rules that name no tool and are told one by one.  A policy that has thousands is one for other
# agents, too.  Each takes a third of a millisecond and half a kilobyte, and nobody reads so many.
_TOLD = 100


def find(manifest) -> dict:
    """Return {dead, shadowed: [{id, file, line}], warnings: [{file, line, message}]} of *manifest*:
    rules in their order, warnings by file and line.

    It need not be one that this version builds.
    """
    work = Work()
    rules = folding.flatten(manifest.policies, sandboxes.workspace(manifest))
    entries, reached = [], []
    for tool in manifest.tools + skills.as_tools(manifest):
        entry, _, bound = folding.entries(rules, manifest, tool)
        entries.append(entry)
        reached += [entry] + (bound or [])
    dead, shadowed = folding.unreached(rules, manifest.tools + skills.as_tools(manifest), reached)
    rest = _denies_the_rest(rules)
    return {
        "dead": [_rule(manifest, flat) for flat in dead],
        "shadowed": [_rule(manifest, flat) for flat in shadowed if flat is not rest],
        "warnings": sorted(
            [_warning(*one) for feature in FEATURES for one in feature.warn(manifest, work)]
            + _general(manifest)
            + _refused(manifest)
            + _unmentioned(manifest, rules, entries)
            + _skills(manifest, rules, entries)
            + _strangers(manifest, rules)
            + _hosts(manifest)
            + [_warning(*note) for note in world_models.notes(manifest)]
            + [
                _warning(manifest.sandbox.where(*path), message)
                for path, message in sandbox_warnings.find(manifest)
            ]
            + [_warning(*note) for note in manifest.notes]
            + _local(manifest, rules, entries)
            + _own_pins(manifest)
            + _unused(manifest)
            + _absent(manifest)
            + _pathless(manifest, rules, entries),
            key=lambda one: (one["file"], one["line"]),
        ),
    }


def _denies_the_rest(rules: list):
    """Return the first of *rules* that is for every tool, if it denies it, or None."""
    for flat in rules:
        if flat.rule.scope == "all" and flat.rule.conditions is None:
            return flat if flat.rule.action == "deny" else None
    return None


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
    allowing = [
        (policy, index)
        for policy in manifest.policies
        for index, rule in enumerate(policy.spec.rules)
        if rule.action != "deny"
    ]
    if manifest.identity.spec.autonomy == "observer" and manifest.tools and allowing:
        policy, index = allowing[0]
        found.append(
            _warning(
                manifest.identity.where("autonomy"),
                "an observer runs no tool, whatever a rule allows: rule "
                f"{policy.spec.rules[index].id} has no effect (autonomy: supervised asks a person "
                "first, autonomous leaves it to the rules)",
            )
        )
    if not manifest.settings.prefer:
        found += [
            _warning(
                provider.where("hints"),
                f"the hints of {provider.name} choose nothing "
                f'without prefer = "cost", "speed" or '
                '"intelligence" in clawlite.toml',
            )
            for provider in manifest.providers
            if provider.spec.hints
        ]
    return found


def _hosts(manifest) -> list[dict]:
    """Return a warning for each of ``allowed_hosts`` that ``block_private_ips`` keeps closed.  That
    of a service is open for the service's own tools.
    """
    network = _capability(manifest, "network")
    found, services = [], {service.url[1] for service in manifest.services}
    for index, text in enumerate(network.allowed_hosts or [] if network else []):
        address = address_of(text.strip("[]"))
        is_closed = address is not None and not is_public(address) and text not in services
        if is_closed and sandboxes.blocks_private(network):
            found.append(
                _warning(
                    manifest.sandbox.where("capabilities", "network", "allowed_hosts", index),
                    f"{quoted(text)} is no public address, and ssrf_protection lets "
                    f"tools reach no other (block_private_ips: false does)",
                )
            )
    return found


def _capability(manifest, name: str):
    capabilities = manifest.sandbox.spec.capabilities if manifest.sandbox else None
    return getattr(capabilities, name) if capabilities else None


def _unused(manifest) -> list[dict]:
    """Return a warning for each field of a sandbox or a rule that another one makes say nothing."""
    found = []

    def say(message: str, *path):
        found.append(_warning(manifest.sandbox.where("capabilities", *path), message))

    network, files, shell = [
        _capability(manifest, name) for name in ("network", "filesystem", "shell")
    ]
    if network and network.allowed_hosts and network.mode != "allowlist":
        say(
            f"allowed_hosts say nothing with mode "
            f"{network.mode or 'deny, which is what is left out'}: mode: allowlist keeps to them",
            "network",
            "allowed_hosts",
        )
    elif network and network.mode == "allowlist" and not network.allowed_hosts:
        say("mode allowlist without allowed_hosts lets tools reach no host", "network", "mode")
    if shell and (shell.blocked_commands or shell.blocked_patterns) and shell.mode != "restricted":
        say(
            f"what is blocked says nothing with mode "
            f"{shell.mode or 'deny, which is what is left out'}: mode: restricted keeps to it",
            "shell",
        )
    for index, pattern in enumerate(
        shell.blocked_patterns or [] if shell and shell.mode == "restricted" else []
    ):
        word = _WORD.match(pattern)
        if word:
            say(
                f"{quoted(pattern)} matches inside of longer words too, once their quotation "
                f"marks are gone: {quoted(chr(92) + 'b' + pattern)} begins at a word",
                "shell",
                "blocked_patterns",
                index,
            )
    mode, mounts, denied = sandboxes.files_of(files)
    if files and files.mount_paths and files.mode in (None, "deny", "full"):
        say(
            f"mount_paths say nothing with mode "
            f"{files.mode or 'deny, which is what is left out'}: mode: scoped keeps to them",
            "filesystem",
            "mount_paths",
        )
    elif files and mode == profile.SCOPED and mounts:
        for index, path in enumerate(denied):
            if not any(is_within(path, mount) or is_within(mount, path) for mount, _ in mounts):
                say(
                    f"denied_paths: {quoted(files.denied_paths[index])} lies outside every mount, "
                    f"where nothing can be reached anyway",
                    "filesystem",
                    "denied_paths",
                    index,
                )
    for index, (path, _) in enumerate(
        mounts if mode in (profile.SCOPED, profile.READ_ONLY) else ()
    ):
        if (over := next((one for one in denied if is_within(path, one)), None)) is not None:
            say(
                f"mount_paths: {quoted(path)} lies in {quoted(over)}, which is denied: no tool "
                f"sees it",
                "filesystem",
                "mount_paths",
                index,
            )
    for policy in manifest.policies:
        for index, rule in enumerate(policy.spec.rules):
            if rule.approval and rule.action != "require-approval":
                found.append(
                    _warning(
                        policy.where("rules", index, "approval"),
                        f"approval says "
                        f"nothing with "
                        f"action "
                        f"{rule.action}: "
                        f"action: "
                        f"require-approval "
                        f"asks first",
                    )
                )
    return found


def _absent(manifest) -> list[dict]:
    """Return a warning for each rule that names a tool which there is not, and one for all after
    the first ``_TOLD``.
    """
    names = [tool.name for tool in manifest.tools + skills.as_tools(manifest)] + [
        skill.name for skill in manifest.skills
    ]
    found, more, more_from = [], 0, ()
    for policy in manifest.policies:
        for index, rule in enumerate(policy.spec.rules):
            name = rule.match.name if rule.match else None
            if (
                not name
                or not set("*?[.").isdisjoint(name)
                or "__" in name
                or name.replace("_", "-") in names
            ):
                continue
            if len(found) == _TOLD:
                more_from = more_from or policy.where("rules", index, "match", "name")
                more += 1
                continue
            near = did_you_mean(name, names)
            message = f"rule {rule.id}: there is no tool {quoted(name)} here, so it never matches"
            where = policy.where("rules", index, "match", "name")
            found.append(_warning(where, message + (f": {near}" if near else "")))
    if more:
        count = f"{more:,} more rules name tools" if more > 1 else "1 more rule names a tool"
        found.append(_warning(more_from, f"{count} that there is not here, from this line on"))
    return found


def _pathless(manifest, rules, entries) -> list[dict]:
    """Return a warning for each rule with ``path_within`` and each tool that it names and that
    has no argument with a path.
    """
    found = []
    for flat in rules:
        if (
            flat.rule.conditions
            and flat.rule.conditions.path_within
            and not folding.is_general(flat.rule)
        ):
            names = [
                tool.name
                for tool, entry in zip(manifest.tools, entries)
                if entry is not None
                and folding.matches(flat.rule, tool)
                and not folding.path_arguments(tool.spec.input_schema or {})
            ]
            if names:
                found.append(
                    _warning(
                        _where(manifest, flat),
                        f"rule {flat.rule.id} has "
                        f"path_within, and no argument of "
                        f"{_listed(names)} holds a path: it "
                        f"never matches there",
                    )
                )
    return found


def _refused(manifest) -> list[dict]:
    return [
        _warning(
            tool.where(),
            f"the sandbox refuses every call of {tool.name}: "
            f"capabilities.{block} is deny, which is what is left out, too",
        )
        for tool, block in [(tool, sandboxes.denies(manifest, tool)) for tool in manifest.tools]
        if block
    ] + _far_servers(manifest)


def _far_servers(manifest) -> list[dict]:
    """Return a warning for each MCP server at a URL that the sandbox lets nobody reach."""
    rules, found, seen = SimpleNamespace(name=""), [], set()
    rules.network, rules.hosts, _ = sandboxes.network_of(_capability(manifest, "network"))
    for tool in manifest.tools:
        source = tool.spec.mcp_source
        if source is None or not source.uri.startswith(("http:", "https:")) or source.uri in seen:
            continue
        seen.add(source.uri)
        if tool.served is not None and tool.served.server.is_mediated:
            continue  # a gateway asks it
        _, host, *_ = parse_url(source.uri.partition("#")[0])
        if not is_listed(rules, host):
            found.append(
                _warning(
                    tool.where("mcp_source"),
                    f"the sandbox refuses every call of {tool.name}: it does not let tools reach "
                    f"{host} - add capabilities: {{ network: {{ mode: allowlist, allowed_hosts: "
                    f"[{host}] }} }} to a Sandbox of this manifest",
                )
            )
    return found


def _unmentioned(manifest, rules, entries) -> list[dict]:
    """Return a warning for each rule that stands for every tool and decides some that no rule
    names, and for tools that none decides.
    """
    found, general = [], {}
    for tool, entry in zip(manifest.tools, entries):
        matching = [flat for flat in rules if folding.matches(flat.rule, tool)]
        if not matching and rules:
            found.append(
                _warning(
                    tool.where(),
                    f"no rule mentions {tool.name}, and none is for "
                    f"every tool: it is always denied",
                )
            )
        elif entry is None and rules:
            found.append(
                _warning(tool.where(), f"no rule can allow {tool.name}: it is always denied")
            )
        elif matching and all(folding.is_general(flat.rule) for flat in matching):
            general.setdefault(matching[0].number, []).append(tool.name)
    for number, names in general.items():
        flat = rules[number]
        found.append(
            _warning(
                _where(manifest, flat),
                f"no rule mentions {_listed(names)}: rule "
                f"{flat.rule.id}, which is for every tool, "
                f"{_DECIDES[flat.rule.action]} {'it' if len(names) == 1 else 'them'}",
            )
        )
    return found


def _local(manifest, rules, entries) -> list[dict]:
    """Return warnings about tools that the local model may call."""
    if not any(local_model.is_local(one) for one in provider_order.providers(manifest)):
        return []
    decided = [
        (tool, rules[entry].rule.action if isinstance(entry, int) else "")
        for tool, entry in zip(manifest.tools, entries)
        if entry is not None
    ]
    decided = [pair for pair in decided if pair[1] != "deny"]
    return [_warning(*note) for note in local_model.notes(manifest, decided)]


def _skills(manifest, rules, entries) -> list[dict]:
    """Return a warning for each skill that no model can begin, and for each tool of one that
    policy always denies.
    """

    def is_denied(entry) -> bool:
        return entry is None or isinstance(entry, int) and rules[entry].rule.action == "deny"

    denied = [tool.name for tool, entry in zip(manifest.tools, entries) if is_denied(entry)]
    found = []
    for skill, entry in zip(manifest.skills, entries[len(manifest.tools) :]):
        if manifest.policies and is_denied(entry):
            found.append(
                _warning(
                    skill.where(),
                    f"policy lets no model begin the skill "
                    f"{skill.name}: a person can, with /{skill.name} "
                    "(a rule of scope skill or all allows it)",
                )
            )
        for number, reference in enumerate(skill.spec.tools_required):
            for tool in manifest.resolve_all("Tool", reference):
                if manifest.policies and tool.name in denied:
                    found.append(
                        _warning(
                            skill.where("tools_required", number),
                            f"the skill {skill.name} needs {tool.name}, which policy always denies",
                        )
                    )
    return found


def _own_pins(manifest) -> list[dict]:
    """Return a warning for each pin that tools.py opens by itself."""
    return [
        _warning(
            (file, line),
            f"{what} opens pins by itself: they have no safe state, and stay as they are when the "
            "call or the agent ends - declare them under [[pins]] in clawlite.toml, and use board",
        )
        for file, line, what in (manifest.imports.pins if manifest.imports else ())
    ]


def _strangers(manifest, rules) -> list[dict]:
    """Return a warning for each permission that a server could give to its own tools by its
    description of them.
    """
    found = []
    for flat in rules:
        match = flat.rule.match
        if (
            match
            and match.annotations
            and ACTIONS.index(flat.rule.action) >= ACTIONS.index("audit-only")
        ):
            names = [
                tool.name
                for tool in manifest.tools
                if tool.spec.mcp_source and folding.matches(flat.rule, tool, False)
            ]
            if names:
                found.append(
                    _warning(
                        _where(manifest, flat),
                        f"rule {flat.rule.id} would allow "
                        f"{_listed(names)} on the word of "
                        f"an MCP server: "
                        "what a stranger says of its tools is no ground for a "
                        "permission",
                    )
                )
    return found


def _listed(names: list) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]

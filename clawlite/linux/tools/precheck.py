"""What the sandbox says of a call's arguments before a function of tools.py runs in it
(docs/adr/0018).

The kernel keeps the function inside whatever it is told; but a call whose arguments already say
that it cannot work is refused by name, -32010, before anything runs.  Arguments are known by their
names, as policies know them: paths (core/policy/policy.py, ``path_within``), ``url`` and ``*_url``,
``command``."""

from clawlite.core.base.errors import ClawError, SandboxDenied
from clawlite.core.image.image import READ_ONLY
from clawlite.core.policy.policy import normalise, virtual
from clawlite.protocols.net.netrules import decide_host, parse_url
from clawlite.protocols.sandbox.profile import DENY, UNRESTRICTED


def check(
    tool, arguments: dict, profile, automaton, workspace: str, hidden: list, decided: dict = {}
) -> None:
    """Raise ``SandboxDenied`` for arguments of *tool* that its sandbox forbids.

    automaton          function(number) -> table
    workspace, hidden  see ``file_scope.Scope``
    decided            {path as policy names it: where it led when policy decided}
    """
    for name in tool.paths:
        for path in _texts(arguments.get(name)):
            _path(
                tool,
                path,
                profile,
                workspace,
                hidden,
                decided.get(virtual(normalise(path), workspace)),
            )
    for name, value in arguments.items():
        if name == "url" or name.endswith("_url"):
            for url in _texts(value):
                decide_host(profile, parse_url(url)[1])
        elif name == "command" and isinstance(value, str):
            _command(tool, value, profile, automaton)


def _texts(value) -> list:
    return [
        text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)
    ]


def _path(tool, path: str, profile, workspace: str, hidden: list, decided) -> None:
    from clawlite.linux.files.file_scope import Scope

    scope = Scope(profile, workspace, hidden, decided)
    try:
        with scope.find(path) as found:
            writable = found.writable
    except SandboxDenied:
        raise
    # it is not there, or no file: the function will say so in its own words
    except ClawError:
        mount = scope.mount_of(scope.real(path))
        writable = mount is None or mount[1]
    if not tool.flags & READ_ONLY and not writable:
        raise SandboxDenied(
            "%s: %s can only be read" % (tool.name, path[:200]),
            "mount it with permissions: rw, if tools may write there",
            {"tool": tool.name, "sandbox": profile.name or None, "reason": "read-only"},
        )


def _command(tool, command: str, profile, automaton) -> None:
    if profile.shell == DENY:
        raise SandboxDenied(
            "%s: this sandbox has no shell" % tool.name,
            "give it capabilities.shell: {mode: restricted} or full",
            {"tool": tool.name, "sandbox": profile.name or None, "reason": "no shell"},
        )
    if profile.shell != UNRESTRICTED:
        from clawlite.linux.tools.shell_patterns import check as rules

        rules(
            tool.name, command, profile.commands, [automaton(number) for number in profile.patterns]
        )

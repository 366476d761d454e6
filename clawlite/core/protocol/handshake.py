"""The agreement of an operator and an agent in ``claw.initialize`` (CKP 0.2.0, 1.4, 7 and 9.3.1).

It happens once per session, so a board can drop this module from memory afterwards.
"""

from clawlite.core.base.errors import InvalidParams, VersionError
from clawlite.core.protocol.rpc import field

SUPPORTED = ("0.2.0", "0.3.0")
_HIGHEST = (0, 3, 0)
_GROUPS = ("tools", "swarm", "memory")
_SHOWN = 64  # characters of an operator's own words in the log


def agree(params: dict, about) -> tuple:
    """Return (version of the session, groups of methods that were asked for, or None for all, event
    for the log).

    about  ``image.AgentInfo`` of the agent that runs here, or None while there is none
    Raises ``VersionError`` first, then ``InvalidParams``: the version is checked before the other
    params (docs/adr/0006).  In a manifest, the kind, the name and the type of spec are checked (a
    shell may check more: ``Agent.adopt``); a URI must name this agent.  The image remains the
    authority over what this agent is."""
    spoken = negotiate(params.get("protocolVersion"))
    info = field(params, "clientInfo", dict, "")
    client = (
        field(info, "name", str, "clientInfo.") + " " + field(info, "version", str, "clientInfo.")
    )
    manifest = params.get("manifest")
    if isinstance(manifest, str):
        _resolve(manifest, about)
        named = manifest
    elif not isinstance(manifest, dict):
        raise InvalidParams(
            "manifest: expected a Claw manifest or a claw:// URI"
            + ("" if "manifest" in params else ", there is none")
        )
    elif manifest.get("kind") != "Claw":
        raise InvalidParams('manifest.kind: expected "Claw"')
    else:
        named = field(
            field(manifest, "metadata", dict, "manifest."), "name", str, "manifest.metadata."
        )
        field(manifest, "spec", dict, "manifest.")
    asked = field(params, "capabilities", dict, "")
    for group in _GROUPS:
        field(asked, group, dict, "capabilities.", False)
    event = {
        "event": "session.opened",
        "client": client[:_SHOWN],
        "protocol": spoken,
        "manifest": named[:_SHOWN],
    }
    return spoken, asked or None, event


def _resolve(text: str, about):
    """Raise ``InvalidParams`` unless the URI *text* is the identity of the agent that runs here.

    For a valid URI of another the code is -32061, "Primitive not found" (Runtime Profile 0.2.0,
    4)."""
    from clawlite.core.base.uri import parse as parse_uri

    # by position: the attributes have other names in a board's core
    authority, kind, _, name, version = parse_uri(text)
    if about is None:
        raise _not_found(
            "manifest: %s: there is no agent here yet" % text, "send the manifest itself"
        )
    here = "claw://local/identity/" + about.identity
    if authority == "registry":
        raise _not_found(
            "manifest: %s: this agent reads no registry" % text, "this agent is " + here
        )
    if kind != "identity" or name != about.identity:
        raise _not_found("manifest: %s is not here" % text, "this agent is " + here)
    if version is not None and version != about.version:
        raise _not_found(
            "manifest: %s is not here in this version" % text,
            "this agent is %s@%s" % (here, about.version),
        )


def _not_found(message: str, hint: str):
    error = InvalidParams(message, hint)
    error.code = -32061
    return error


def parse_version(text) -> tuple | None:
    """Return (major, minor, patch, pre-release or "") of a semantic version (SemVer 2.0, 2 and
    9), or None.
    """
    if not isinstance(text, str) or not text or len(text) > 64:
        return None
    core, dash, pre = text.partition("-")
    numbers = core.split(".")
    if len(numbers) != 3 or dash and not _is_pre_release(pre):
        return None
    for number in numbers:
        if not number or len(number) > 9 or len(number) > 1 and number[0] == "0":
            return None
        for c in number:
            if not "0" <= c <= "9":
                return None
    major, minor, patch = numbers
    return int(major), int(minor), int(patch), pre


def _is_pre_release(text: str) -> bool:
    for part in text.split("."):
        if not part:
            return False
        for c in part:
            if not ("0" <= c <= "9" or "a" <= c <= "z" or "A" <= c <= "Z" or c == "-"):
                return False
    return True


def negotiate(asked) -> str:
    """Return the version of the session: the lower of *asked* and 0.3.0.

    Raises ``InvalidParams`` for a text that is no version, ``VersionError`` (-32001) for another
    major version.
    """
    parsed = parse_version(asked)
    if parsed is None:
        raise InvalidParams("protocolVersion: expected a semantic version such as 0.3.0")
    if parsed[0] != 0:
        raise VersionError(
            "Protocol version not supported: %s" % asked, "", {"supported": list(SUPPORTED)}
        )
    return asked if parsed[:3] <= _HIGHEST else "0.3.0"

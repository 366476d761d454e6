"""What an operator and an agent agree on in ``claw.initialize`` (CKP 0.2.0, 1.4 and 9.3.1).

Once per session, so a module of its own that a board can drop from memory afterwards.
"""
from clawlite.core.errors import InvalidParams, VersionError
from clawlite.core.rpc import field

SUPPORTED = ("0.2.0", "0.3.0")
_HIGHEST = (0, 3, 0)


def agree(params: dict) -> tuple:
    """Return (version of the session, capabilities that were asked for).

    Raises ``VersionError`` first, then ``InvalidParams``: checks go version, params (docs/adr/0006).  The manifest is
    checked for its shape; the image stays the authority over what this agent is.
    """
    spoken = negotiate(params.get("protocolVersion"))
    info = field(params, "clientInfo", dict, "")
    field(info, "name", str, "clientInfo.")
    field(info, "version", str, "clientInfo.")
    manifest = params.get("manifest")
    if isinstance(manifest, str):
        from clawlite.core.uri import parse as parse_uri
        parse_uri(manifest)
    elif not isinstance(manifest, dict):
        raise InvalidParams("manifest: expected a Claw manifest or a claw:// URI" + ("" if "manifest" in params else ", there is none"))
    elif manifest.get("kind") != "Claw":
        raise InvalidParams('manifest.kind: expected "Claw"')
    else:
        field(field(manifest, "metadata", dict, "manifest."), "name", str, "manifest.metadata.")
        field(manifest, "spec", dict, "manifest.")
    return spoken, field(params, "capabilities", dict, "")


def parse_version(text) -> tuple:
    """Return (major, minor, patch, pre-release or "") of a semantic version (SemVer 2.0, 2 and 9), or None."""
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
    return int(numbers[0]), int(numbers[1]), int(numbers[2]), pre


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

    Raises ``InvalidParams`` for what is no version, ``VersionError`` (-32001) for another major.
    """
    parsed = parse_version(asked)
    if parsed is None:
        raise InvalidParams("protocolVersion: expected a semantic version such as 0.3.0")
    if parsed[0] != 0:
        raise VersionError("Protocol version not supported: %s" % asked, "", {"supported": list(SUPPORTED)})
    return asked if parsed[:3] <= _HIGHEST else "0.3.0"

"""Protocol versions (CKP 0.2.0, 1.4 and 9.3.1): any 0.x is spoken, another major is refused."""
from clawlite.core.errors import InvalidParams, VersionError

SUPPORTED = ("0.2.0", "0.3.0")
HIGHEST = (0, 3, 0)


def parse(text) -> tuple:
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
    parsed = parse(asked)
    if parsed is None:
        raise InvalidParams("protocolVersion: expected a semantic version such as 0.3.0")
    if parsed[0] != 0:
        raise VersionError("Protocol version not supported: %s" % asked, "", {"supported": list(SUPPORTED)})
    return asked if parsed[:3] <= HIGHEST else "0.3.0"

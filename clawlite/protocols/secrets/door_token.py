"""The file of one token of a gateway: TOKEN, then the doors that it opens, between spaces.

A file of an older version has the token alone: it opens every door that there was then."""

DOORS = ("device", "proxy", "a2a", "mcp")
OLDER = ("device", "proxy", "a2a")


def parse(data: bytes) -> tuple:
    """Return (token, its doors, whether it is of an older version); b"" opens nothing."""
    words = data.split()
    if len(words) < 2:
        return (words[0], OLDER, True) if words else (b"", (), False)
    doors = [door for door in DOORS if door.encode() in words[1:]]
    return words[0], tuple(doors), False

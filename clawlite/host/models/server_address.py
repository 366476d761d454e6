"""The address of a server that clawlite.toml names: ``SCHEME://HOST[:PORT]``, and no more."""

import urllib.parse


def split_address(address: str, schemes, expected: str) -> tuple:
    """Return (scheme, host, port or None).  Raises ``ValueError`` with *expected*, what to write,
    for an address of none of *schemes*, or with a user, a path or a query in it.
    """
    try:
        url = urllib.parse.urlsplit(address)
        port = url.port
    except ValueError as e:
        raise ValueError(f"{expected} ({e})") from None
    has_more = url.username is not None or url.path not in ("", "/") or url.query or url.fragment
    if url.scheme not in schemes or not url.hostname or has_more or port == 0:
        raise ValueError(expected)
    return url.scheme, url.hostname, port

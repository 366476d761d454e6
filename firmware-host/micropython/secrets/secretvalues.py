"""The values of all secrets of a board, and the removal of secrets from a text.  Loaded for that,
and dropped.
"""

import os

from clawlite.core.image.image import GUARD
from clawlite.core.image.scan_config import LEAKS, REFERENCES

_SECRET = 8192  # bytes at most


def values(folder: str, references: list) -> list:
    """Return the secrets in ``secrets/`` of *folder* and, on the unix port, the values in the
    environment of the names *references*.
    """
    found = []
    try:
        names = os.listdir(folder + "/secrets")
    except OSError:
        names = []
    for name in names:
        try:
            with open("%s/secrets/%s" % (folder, name)) as file:
                found.append(file.read(_SECRET).rstrip("\n"))
        except (OSError, UnicodeError):  # a folder, or no text: then it cannot be sent, either
            pass
    if hasattr(os, "getenv"):
        for name in references:
            value = os.getenv(name)
            if value:
                found.append(value)
    return found


def clean(text: str, image, guard, folder: str) -> str:
    """Return *text* without secrets.  ``guard.Guard.clean`` does it when policies look for secrets;
    otherwise this function does the same.
    """
    section = image.section(GUARD)
    if section[LEAKS] is not None:
        return guard.clean(text)
    from clawlite.scan.leaks import find, merge, redact

    data = text.encode()
    found = find(data)
    secrets = values(folder, section[REFERENCES])
    if secrets:
        from clawlite.scan.known_secrets import Known

        known = Known(False)
        for value in secrets:
            known.learn(value)
        known.find(data, found)
    found = merge(found)
    return str(redact(data, found), "utf-8") if found else text

"""Finds secrets by the text beside them: a name and a quotation mark, a scheme, an address, a key
id.
"""

from clawlite.scan.tokens import (
    ALNUM,
    BASE64,
    DIGITS,
    LETTERS,
    LOWER,
    QUOTES,
    TOKEN,
    UPPER,
    changes,
    each,
    in_word,
    is_mixed,
    is_placeholder,
    is_random,
    run,
)

_IN_AUTHORITY = ALNUM + b"-._~%!$&()*+,;=:@[]{}^|"
_AROUND = b" \t\"'`\\:=>"
_OFTEN = (
    b"password",
    b"passwd",
    b"pass",
    b"pwd",
    b"secret",
    b"token",
    b"user",
    b"string",
    b"null",
    b"none",
    b"test",
    b"%s",
    b"***",
    b"...",
)
_AWS = (b"AKIA", b"ASIA", b"ABIA", b"ACCA")
# Names of values, in lower case, and whether short ones without a digit are secrets too.
_LABELS = (
    (b"pass", True),
    (b"pwd", True),
    (b"secret", False),
    (b"token", False),
    (b"api_key", False),
    (b"apikey", False),
    (b"api-key", False),
    (b"access_key", False),
    (b"accesskey", False),
    (b"auth_key", False),
    (b"psk", True),
    (b"privatekey", False),
    (b"presharedkey", False),
)
_BARE = ALNUM + b"+/=_-!@#%^*?~"  # of a value without quotes


def aws(data: bytes, found: list):
    """An access key id, 20 letters and digits, and the secret beside it, as in AWS's own CSV
    files.
    """
    if data.find(b"IA") < 0 and data.find(b"ACCA") < 0:  # two searches instead of four
        return
    for anchor in _AWS:
        for pos in each(data, anchor):
            end = run(data, pos, UPPER + DIGITS)
            if (
                end - pos == 20
                and not in_word(data, pos)
                and run(data, end, LOWER) == end
                and b"EXAMPLE" not in data[pos:end]
            ):
                found.append((pos, end, "aws-id"))
                start = run(data, end, b" \t\r\n,;:|\"'", 8)
                _aws_secret(data, start, found)


def _aws_secret(data: bytes, start: int, found: list):
    end = run(data, start, BASE64, 42)
    value = data[start:end]
    if len(value) == 40 and value.strip(b"0123456789abcdef") and is_random(value):
        found.append((start, end, "aws-secret"))


def url(data: bytes, found: list):
    """The password in ``scheme://user:password@host``."""
    for pos in each(data, b"://"):
        start = pos + 3
        part = data[start : start + 320]
        at = part.find(b"@")
        if at > 0:
            part = part[: len(part) - len(part.lstrip(_IN_AUTHORITY))]
            at = part.rfind(b"@")
            colon = part.find(b":")
            value = part[colon + 1 : at]
            if (
                0 <= colon < at - 1
                and value.lower() not in _OFTEN
                and not is_placeholder(value)
                and value[:1] not in b"$%{<[*"
            ):
                found.append((start + colon + 1, start + at, "url-password"))


def find_labelled(data: bytes, lower: bytes, found: list):
    """``password = "..."`` and the like: a name, then = or : or the end of a tag, then a quoted
    value without spaces.  A value without quotes counts when it looks generated.
    """
    has_key = lower.find(b"key") >= 0  # one search instead of eight
    for label, is_password in _LABELS:
        if not has_key and label.find(b"key") >= 0:
            continue
        for pos in each(lower, label):
            name_end = run(lower, pos, LOWER + DIGITS + b"_-.", 40)
            start = run(data, name_end, _AROUND, 12)
            if label == b"secret":
                _aws_secret(
                    data,
                    run(data, name_end + 11, _AROUND, 12)
                    if lower[name_end : name_end + 11] == b" access key"
                    else start,
                    found,
                )
            between = data[name_end:start]
            if (
                b"=" not in between
                and b":" not in between
                and between != b">"
                or b"tokeniz" in lower[pos:name_end]
            ):
                continue
            short = label == b"pass" and lower[pos + 4 : pos + 5] not in (b"w", b"p")
            if short and (
                lower[pos + 4 : pos + 5].isalpha()
                or lower[pos - 1 : pos].isalpha()
                and data[pos] != 80
            ):
                continue  # passenger, bypass
            quote = data[start - 1 : start]
            if quote not in QUOTES:
                _bare(
                    data,
                    name_end,
                    start,
                    10 if is_password else 12,
                    lower[pos - 7 if pos > 7 else 0 : pos] == b"/:_auth",
                    found,
                )
                continue
            end = data.find(quote, start, start + 256)
            if data[end - 1 : end] == b"\\":
                end -= 1
            value = data[start:end] if end > 0 else b""
            if _is_password(value, 6 if is_password else 16) and (not short or changes(value) > 2):
                found.append((start, end, "password"))


def _bare(data: bytes, name_end: int, start: int, least: int, is_npm: bool, found: list):
    """``DB_PASSWORD=...`` as in files of settings: letters and digits, mixed, up to the end of the
    word.  It is no path, and a UUID only for npm.
    """
    end = run(data, start, _BARE, 256)
    value = data[start:end]
    if (
        start - name_end < 4
        and end - start >= least
        and data[end : end + 1] in b" \t\r\n;&,.)\\<\"'"
        and changes(value) > 2
        and value[0] not in b"/.~"
        and (is_npm or value.strip(b"0123456789abcdefABCDEF-"))
        and is_random(value)
    ):
        found.append((start, end, "password"))


def _is_password(value: bytes, least: int) -> bool:
    """Return whether a quoted *value* is a password, and not a word, a name, a placeholder, or a
    call that fetches one.
    """
    lower = value.lower()
    if (
        len(value) < least
        or len(value.split()) != 1
        or value.strip() != value
        or is_placeholder(value)
        or value[:1] in b"$%{<[*(/~."
    ):
        return False
    if (
        b"_" in value
        and value == value.upper()
        or b"-" in value
        and not value.strip(b"0123456789abcdefABCDEF-")
    ):
        return False  # the name of a variable, a UUID
    if least >= 16:
        return is_random(value) and len(value.strip(LETTERS + b"./:")) + is_mixed(value) > 0
    if not value.strip(LETTERS):  # no name has so many capitals
        return (
            len(value) > 7
            and is_mixed(value)
            and 3 * len([byte for byte in value if byte < 91]) > len(value)
            and b"pass" not in lower
        )
    return len(value.strip(LETTERS + b"_-./:")) > 0 and lower.rstrip(DIGITS) not in _OFTEN


def authorization(data: bytes, lower: bytes, found: list):
    """``Bearer TOKEN`` anywhere, ``Authorization: Basic ...``, ``Authorization: Token ...``."""
    has_header = lower.find(b"authorization") >= 0
    for scheme in (b"bearer", b"basic", b"token") if has_header else (b"bearer",):
        for pos in each(lower, scheme):
            is_header = b"authorization" in lower[pos - 24 if pos > 24 else 0 : pos]
            if in_word(data, pos) or scheme != b"bearer" and not is_header:
                continue
            start = run(data, pos + len(scheme), b" \t:=\"'\\+", 8)
            if data[start : start + 3] == b"%20":
                start += 3
            end = run(data, start, TOKEN + b".~+/=", 4096)
            value = data[start:end]
            if (
                end - start >= 12
                and start > pos + len(scheme)
                and (
                    is_random(value)
                    or is_header
                    and len(value) > 23
                    and not value.strip(LOWER)
                    and len(set(value)) > 9
                    and not is_placeholder(value)
                )
            ):
                found.append((start, end, "authorization"))


def azure(data: bytes, lower: bytes, found: list):
    """AccountKey=... and SharedAccessKey=... of a connection string, an account's key behind any
    name with "key", the signature of a SAS.
    """
    labels = (b"accountkey=", b"accesskey=", b"sig=") if lower.find(b"key=") >= 0 else (b"sig=",)
    for label in labels:
        for pos in each(lower, label):
            start = pos + len(label)
            end = run(data, start, BASE64 + b"=%")
            if end - start >= 43 and (
                label != b"sig=" or lower[end - 3 : end] == b"%3d" and is_random(data[start:end])
            ):
                found.append((start, end, "azure-storage"))
    for pos in each(data, b"=="):  # 64 bytes: 86 letters
        start = pos - 86
        if start > 3 and data[start - 1] in b"=: \"'`>" and run(data, start, BASE64) == pos:
            name = lower[start - 48 if start > 48 else 0 : start]
            if b"key" in name and b"sha512" not in name[-12:] and is_random(data[start:pos]):
                found.append((start, pos + 2, "azure-storage"))

"""Secrets that are known by what stands beside them: a name and a quotation mark, a scheme, an address, a key id."""
from clawlite.scan.tokens import (ALNUM, BASE64, DIGITS, LETTERS, LOWER, QUOTES, TOKEN, UPPER, changes, each, in_word, is_mixed, is_placeholder, is_random,
                                  run)

_IN_AUTHORITY = ALNUM + b"-._~%!$&()*+,;=:@[]{}^|"
_AROUND = b" \t\"'`\\:=>"
_OFTEN = (b"password", b"passwd", b"pass", b"pwd", b"secret", b"token", b"user", b"string", b"null", b"none", b"test", b"%s", b"***", b"...")
_AWS = (b"AKIA", b"ASIA", b"ABIA", b"ACCA")
# Names of values, in lower case, and whether short ones without a digit are secrets too.
_LABELS = ((b"passw", True), (b"pwd", True), (b"passphrase", True), (b"secret", False), (b"token", False), (b"api_key", False),
           (b"apikey", False), (b"api-key", False), (b"access_key", False), (b"accesskey", False), (b"auth_key", False), (b"psk", True),
           (b"privatekey", False), (b"presharedkey", False))
_BARE = ALNUM + b"+/=_-!@#%^*?~"                # of a value without quotes


def aws(data: bytes, found: list):
    """An access key id, 20 letters and digits, and the secret that stands beside it as in AWS's own CSV files."""
    for anchor in _AWS:
        for pos in each(data, anchor):
            end = run(data, pos, UPPER + DIGITS)
            if end - pos == 20 and not in_word(data, pos) and run(data, end, LOWER) == end and b"EXAMPLE" not in data[pos:end]:
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
        part = data[start:start + 320]
        at = part.find(b"@")
        if at > 0:
            part = part[:len(part) - len(part.lstrip(_IN_AUTHORITY))]
            at = part.rfind(b"@")
            colon = part.find(b":")
            value = part[colon + 1:at]
            if 0 <= colon < at - 1 and value.lower() not in _OFTEN and not is_placeholder(value) and value[:1] not in b"$%{<[*":
                found.append((start + colon + 1, start + at, "url-password"))


def labelled(data: bytes, lower: bytes, found: list):
    """``password = "..."`` and the like: a name, = or :, a quoted value without spaces; without quotes only what a machine made."""
    for label, is_password in _LABELS:
        for pos in each(lower, label):
            name_end = run(lower, pos, LOWER + DIGITS + b"_-.", 40)
            start = run(data, name_end, _AROUND, 12)
            between = data[name_end:start]
            if b"=" not in between and b":" not in between:
                continue
            if not is_password and b"secret" in lower[pos - 8 if pos > 8 else 0:name_end]:
                _aws_secret(data, start, found)
            if b"tokeniz" in lower[pos:name_end]:
                continue
            quote = data[start - 1:start]
            if quote not in QUOTES:
                _bare(data, name_end, start, found)
                continue
            end = data.find(quote, start, start + 256)
            if data[end - 1:end] == b"\\":
                end -= 1
            value = data[start:end] if end > 0 else b""
            if _is_password(value, 6 if is_password else 16):
                found.append((start, end, "password"))


def _bare(data: bytes, name_end: int, start: int, found: list):
    """``DB_PASSWORD=...`` as in files of settings: letters and digits, mixed, up to the end of the word."""
    end = run(data, start, _BARE, 256)
    value = data[start:end]
    if start - name_end < 4 and end - start >= 12 and data[end:end + 1] in b" \t\r\n;&,\\" and changes(value) > 2 \
            and value.strip(b"0123456789abcdefABCDEF-") and is_random(value):
        found.append((start, end, "password"))


def _is_password(value: bytes, least: int) -> bool:
    """Return whether a quoted *value* is a password: not a word, a name, a place to fill in, or a call that fetches one."""
    lower = value.lower()
    if len(value) < least or len(value.split()) != 1 or value.strip() != value or is_placeholder(value) or value[:1] in b"$%{<[*(/~.":
        return False
    if b"_" in value and value == value.upper() or b"-" in value and not value.strip(b"0123456789abcdefABCDEF-"):
        return False                    # the name of a variable, a UUID
    if least >= 16:
        return is_random(value) and len(value.strip(LETTERS + b"./:")) + is_mixed(value) > 0
    return len(value.strip(LETTERS + b"_-./:")) > 0 and lower.rstrip(DIGITS) not in _OFTEN


def authorization(data: bytes, lower: bytes, found: list):
    """``Bearer TOKEN`` anywhere, ``Authorization: Basic ...``."""
    for scheme in (b"bearer", b"basic"):
        for pos in each(lower, scheme):
            if in_word(data, pos) or scheme == b"basic" and b"authorization" not in lower[pos - 24 if pos > 24 else 0:pos]:
                continue
            start = run(data, pos + len(scheme), b" \t:=\"'\\+", 8)
            if data[start:start + 3] == b"%20":
                start += 3
            end = run(data, start, TOKEN + b".~+/=", 4096)
            if end - start >= 12 and start > pos + len(scheme) and is_random(data[start:end]):
                found.append((start, end, "authorization"))


def azure(data: bytes, lower: bytes, found: list):
    """AccountKey=... and SharedAccessKey=... of a connection string."""
    for label in (b"accountkey=", b"accesskey="):
        for pos in each(lower, label):
            start = pos + len(label)
            end = run(data, start, BASE64 + b"=%")
            if end - start >= 43:
                found.append((start, end, "azure-storage"))

"""Secrets in text: where they are, and the text without them.

1. A kind is found by a literal that every one of its values has (one search in C), and then by what stands around it: hand-written,
   bounded, so that a text made to be slow is walked once all the same.  No regular expression, no guess by entropy alone.
2. What looks like a secret and is none stays: hashes, UUIDs, paths, ``task-list``, placeholders (``<your-key>``, ``...EXAMPLE``).
3. Secrets that the agent itself knows are found in other forms too: linux/known.py.
4. ``\\n`` in JSON text is two characters, the second of them a letter: it ends a word as a line's end does.
"""
_DIGITS = b"0123456789"
_LOWER = b"abcdefghijklmnopqrstuvwxyz"
_UPPER = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LETTERS = _LOWER + _UPPER
_ALNUM = _LETTERS + _DIGITS
_TOKEN = _ALNUM + b"_-"
_BASE64 = _ALNUM + b"+/"
_SPACE = b" \t\r\n"
_IN_AUTHORITY = _ALNUM + b"-._~%!$&()*+,;=:@[]{}^|"
_AROUND = b" \t\"'`\\:=>"
_QUOTES = (b"'", b'"', b"`")
_LONGEST = 512                  # bytes of a token that are looked at, and go
_BLOCK = 16384                  # bytes of a PEM block
_PLACEHOLDERS = (b"example", b"your", b"placeholder", b"arn:", b"....", b"****", b"<", b"${", b"{{", b"%(", b"redacted", b"changeme", b"dummy",
                 b"insert", b"replace", b"process.env", b"os.environ", b"getenv")
_OFTEN = (b"password", b"passwd", b"pass", b"pwd", b"secret", b"token", b"user", b"string", b"null", b"none", b"test", b"%s", b"***", b"...")

# kind, anchor, alphabet of what follows it, least bytes of that, whether it must begin a word
_PREFIXED = (
    ("github", b"ghp_", _ALNUM, 30, False), ("github", b"gho_", _ALNUM, 30, False), ("github", b"ghs_", _ALNUM, 30, False),
    ("github", b"ghu_", _ALNUM, 30, False), ("github", b"ghr_", _ALNUM, 30, False), ("github", b"github_pat_", _ALNUM + b"_", 40, False),
    ("gitlab", b"glpat-", _TOKEN, 20, False), ("gitlab", b"gldt-", _TOKEN, 20, True), ("gitlab", b"glrt-", _TOKEN, 20, True),
    ("gitlab", b"glptt-", _TOKEN, 20, True), ("gitlab", b"glsoat-", _TOKEN, 20, True),
    ("slack", b"xoxb-", _TOKEN, 20, False), ("slack", b"xoxp-", _TOKEN, 20, False), ("slack", b"xoxa-", _TOKEN, 20, False),
    ("slack", b"xoxr-", _TOKEN, 20, False), ("slack", b"xoxs-", _TOKEN, 20, False), ("slack", b"xoxe.", _TOKEN, 20, False),
    ("slack", b"xapp-", _TOKEN, 20, False), ("slack-webhook", b"hooks.slack.com/", _ALNUM + b"/", 24, False),
    ("stripe", b"sk_live_", _ALNUM, 16, False), ("stripe", b"rk_live_", _ALNUM, 16, False), ("stripe", b"whsec_", _ALNUM, 24, False),
    ("google", b"AIza", _TOKEN, 35, True), ("google", b"GOCSPX-", _TOKEN, 24, True), ("google", b"ya29.", _TOKEN, 40, True),
    ("sendgrid", b"SG.", _TOKEN + b".", 50, True), ("npm", b"npm_", _ALNUM, 36, True), ("pypi", b"pypi-AgE", _TOKEN, 50, False),
    ("huggingface", b"hf_", _ALNUM, 30, True), ("huggingface", b"api_org_", _ALNUM, 30, True),
    ("discord", b"/api/webhooks/", _TOKEN + b"/", 50, False), ("discord", b"mfa.", _TOKEN, 80, True),
)
_OPENAI = (b"proj-", b"svcacct-", b"admin-", b"None-", b"or-v1-")
_AWS = (b"AKIA", b"ASIA", b"ABIA", b"ACCA")
# Names of values, in lower case, and whether short ones without a digit are secrets too.
_LABELS = ((b"passw", True), (b"pwd", True), (b"passphrase", True), (b"secret", False), (b"token", False), (b"api_key", False),
           (b"apikey", False), (b"api-key", False), (b"access_key", False), (b"accesskey", False), (b"auth_key", False))


def find(data: bytes) -> list:
    """Return [(start, end, kind), ...] of the secrets in *data*, in order, none over another.

    data  text as UTF-8, of any length; bytes that are none do no harm
    Cost  about 1 ms for 64 KB of text without secrets on CPython; linear for every text.
    """
    found = []
    for kind, anchor, alphabet, least, is_word in _PREFIXED:
        pos = data.find(anchor)
        while pos >= 0:
            start = pos + len(anchor)
            end = _run(data, start, alphabet)
            if end - start >= least and not (is_word and _in_word(data, pos)) and _is_random(data[start:end]):
                found.append((pos, end, kind))
                start = end
            elif end - start == _LONGEST:
                start = end             # one byte repeated, or as good as that
            pos = data.find(anchor, start)
    for look in (_sk, _aws, _telegram, _jwt, _dotted, _pem, _url):
        look(data, found)
    lower = data.lower()
    _labelled(data, lower, found)
    _authorization(data, lower, found)
    _azure(data, lower, found)
    return merged(found)


def merged(found: list) -> list:
    """Return *found*, sorted, with those that touch as one of the kind of the first."""
    if len(found) < 2:
        return found
    found.sort()
    out = [found[0]]
    for start, end, kind in found[1:]:
        last = out[-1]
        if start >= last[1]:
            out.append((start, end, kind))
        elif end > last[1]:
            out[-1] = (last[0], end, last[2])
    return out


def replaced(data: bytes, found: list) -> bytes:
    """Return *data* with ``[REDACTED: KIND]`` for each of *found*."""
    out, pos = [], 0
    for start, end, kind in found:
        out.append(data[pos:start])
        out.append(b"[REDACTED: %s]" % kind.encode())
        pos = end
    out.append(data[pos:])
    return b"".join(out)


def redact(text: str) -> str:
    """Return *text* without secrets."""
    data = text.encode()
    found = find(data)
    return str(replaced(data, found), "utf-8") if found else text


def _run(data: bytes, start: int, alphabet: bytes, most: int = _LONGEST) -> int:
    """Return where the bytes of *alphabet* that begin at *start* end, at most *most* of them."""
    part = data[start:start + most]
    return start + len(part) - len(part.lstrip(alphabet))


def _in_word(data: bytes, pos: int) -> bool:
    """Return whether a letter or digit stands before *pos*: not one that belongs to an escape."""
    if pos == 0 or data[pos - 1] not in _ALNUM:
        return False
    return not (pos > 1 and data[pos - 2] == 92 and data[pos - 1] in b"nrtbf")


def _is_random(value: bytes) -> bool:
    """Return whether *value* is what a machine made: digits or both cases, many different bytes, no word for a placeholder."""
    if len(set(value)) < 8 or not value.strip(_LETTERS + b"_-") and not _is_mixed(value):
        return False
    return not _is_placeholder(value)


def _is_mixed(value: bytes) -> bool:
    """Return whether letters change their case as no name in code does."""
    capitals = 0
    for byte in value:
        if 64 < byte < 91:
            capitals += 1
    return 5 * capitals >= len(value) > capitals


def _is_placeholder(value: bytes) -> bool:
    lower = value.lower()
    for word in _PLACEHOLDERS:
        if word in lower:
            return True
    return b"xxxx" in value or b"XXXX" in value


def _each(data: bytes, anchor: bytes):
    pos = data.find(anchor)
    while pos >= 0:
        yield pos
        pos = data.find(anchor, pos + len(anchor))


def _sk(data: bytes, found: list):
    """sk-ant-..., sk-proj-... and the plain sk-... of before."""
    for pos in _each(data, b"sk-"):
        start = pos + 3
        if data[start:start + 4] == b"ant-":
            kind, alphabet, least = "anthropic", _TOKEN, 24
        else:
            kind, alphabet, least = "openai", _ALNUM, 20
            for prefix in _OPENAI:
                if data[start:start + len(prefix)] == prefix:
                    alphabet, least = _TOKEN, 24
        end = _run(data, start, alphabet)
        if end - start >= least and not _in_word(data, pos) and _is_random(data[start:end]):
            found.append((pos, end, kind))


def _aws(data: bytes, found: list):
    """An access key id, 20 letters and digits, and the secret that stands beside it as in AWS's own CSV files."""
    for anchor in _AWS:
        for pos in _each(data, anchor):
            end = _run(data, pos, _UPPER + _DIGITS)
            if end - pos == 20 and not _in_word(data, pos) and _run(data, end, _LOWER) == end and b"EXAMPLE" not in data[pos:end]:
                found.append((pos, end, "aws-id"))
                start = _run(data, end, b" \t\r\n,;:|\"'", 8)
                _aws_secret(data, start, found)


def _aws_secret(data: bytes, start: int, found: list):
    end = _run(data, start, _BASE64, 42)
    value = data[start:end]
    if len(value) == 40 and value.strip(b"0123456789abcdef") and _is_random(value):
        found.append((start, end, "aws-secret"))


def _telegram(data: bytes, found: list):
    """A bot's number, a colon, A and 34 more."""
    for pos in _each(data, b":A"):
        if data[pos - 1:pos].isdigit():
            end = _run(data, pos + 1, _TOKEN)
            part = data[max(0, pos - 17):pos]
            digits = len(part) - len(part.rstrip(_DIGITS))
            if end - pos > 33 and 5 < digits < 17 and _is_random(data[pos:end]):
                found.append((pos - digits, end, "telegram"))


def _jwt(data: bytes, found: list):
    """Two or three parts of base64, the first two JSON objects (RFC 7519)."""
    for pos in _each(data, b"eyJ"):
        end = pos if _in_word(data, pos) else _run(data, pos, _TOKEN, 4096)
        if data[end:end + 4] == b".eyJ":
            end = _run(data, end + 1, _TOKEN, 8192)
            if data[end:end + 1] == b".":
                end = _run(data, end + 1, _TOKEN, 2048)
            found.append((pos, end, "jwt"))


def _dotted(data: bytes, found: list):
    """A Discord bot's token: 23 to 28 bytes, a dot, 6, a dot, 27 or more."""
    pos = data.find(b".")
    last = len(data) - 34
    while 0 <= pos <= last:
        if data[pos + 7] == 46 and pos > 22:
            part = data[pos - 29:pos] if pos > 28 else data[:pos]
            size = len(part) - len(part.rstrip(_TOKEN))
            if data[pos - size - 1] == 92:              # the n of an escape
                size -= 1
            end = _run(data, pos + 8, _TOKEN)
            if 22 < size < 29 and end - pos > 34 and _run(data, pos + 1, _TOKEN) == pos + 7 and data[pos - size] in b"MNO" \
                    and _is_random(data[pos - size:pos]) and _is_random(data[pos + 8:end]):
                found.append((pos - size, end, "discord"))
        pos = data.find(b".", pos + 1)


def _pem(data: bytes, found: list):
    """A private key, the whole block; of one that is cut, what there is."""
    done = 0
    for pos in _each(data, b"PRIVATE KEY"):
        if pos < done:
            continue
        line = data.rfind(b"-----", max(0, pos - 24), pos)
        if line < 0:
            continue
        if data[line:line + 9] == b"-----END ":         # its beginning is not here
            start = max(done, line - _BLOCK)
            start += len(data[start:line].rstrip(_BASE64 + b"=\\\r\n"))
            start = _run(data, start, b"\r\n")
            done = _run(data, pos, _UPPER + b" -", 32)
            if data[line - 1:line] not in _QUOTES:
                found.append((start, done, "pem"))
        elif data[line:line + 11] == b"-----BEGIN ":
            body = _run(data, pos, _UPPER + b" -", 32)
            end = data.find(b"-----END ", body, body + _BLOCK)
            if data[body:body + 1] not in _QUOTES:     # words about keys
                done = _run(data, end, _UPPER + b" -", 64) if end >= 0 else _run(data, body, _BASE64 + _SPACE + b"=\\:,-", _BLOCK)
                if data[done - 1] == 92:    # it belongs to what follows
                    done -= 1
                found.append((line, done, "pem"))


def _url(data: bytes, found: list):
    """The password in ``scheme://user:password@host``."""
    for pos in _each(data, b"://"):
        start = pos + 3
        part = data[start:start + 320]
        at = part.find(b"@")
        if at > 0:
            part = part[:len(part) - len(part.lstrip(_IN_AUTHORITY))]
            at = part.rfind(b"@")
            colon = part.find(b":")
            value = part[colon + 1:at]
            if 0 <= colon < at - 1 and value.lower() not in _OFTEN and not _is_placeholder(value) and value[:1] not in b"$%{<[*":
                found.append((start + colon + 1, start + at, "url-password"))


def _labelled(data: bytes, lower: bytes, found: list):
    """``password = "..."`` and the like: a name, = or :, a quoted value without spaces."""
    for label, is_password in _LABELS:
        for pos in _each(lower, label):
            name_end = _run(lower, pos, _LOWER + _DIGITS + b"_-.", 40)
            start = _run(data, name_end, _AROUND, 12)
            between = data[name_end:start]
            if b"=" not in between and b":" not in between:
                continue
            if not is_password and b"secret" in lower[pos - 8 if pos > 8 else 0:name_end]:
                _aws_secret(data, start, found)
            quote = data[start - 1:start]
            if quote not in _QUOTES:
                continue
            end = data.find(quote, start, start + 256)
            if data[end - 1:end] == b"\\":
                end -= 1
            value = data[start:end] if end > 0 else b""
            if _is_password(value, 6 if is_password else 16):
                found.append((start, end, "password"))


def _is_password(value: bytes, least: int) -> bool:
    """Return whether a quoted *value* is a password: not a word, a name, a place to fill in, or a call that fetches one."""
    lower = value.lower()
    if len(value) < least or len(value.split()) != 1 or value.strip() != value or _is_placeholder(value) or value[:1] in b"$%{<[*(/~.":
        return False
    if b"_" in value and value == value.upper() or b"-" in value and not value.strip(b"0123456789abcdefABCDEF-"):
        return False                    # the name of a variable, a UUID
    if least >= 16:
        return _is_random(value) and len(value.strip(_LETTERS + b"./:")) + _is_mixed(value) > 0
    return len(value.strip(_LETTERS + b"_-./:")) > 0 and lower.rstrip(_DIGITS) not in _OFTEN


def _authorization(data: bytes, lower: bytes, found: list):
    """``Bearer TOKEN`` anywhere, ``Authorization: Basic ...``."""
    for scheme in (b"bearer", b"basic"):
        for pos in _each(lower, scheme):
            if _in_word(data, pos) or scheme == b"basic" and b"authorization" not in lower[pos - 24 if pos > 24 else 0:pos]:
                continue
            start = _run(data, pos + len(scheme), b" \t:=\"'\\+", 8)
            if data[start:start + 3] == b"%20":
                start += 3
            end = _run(data, start, _TOKEN + b".~+/=", 4096)
            if end - start >= 12 and start > pos + len(scheme) and _is_random(data[start:end]):
                found.append((start, end, "authorization"))


def _azure(data: bytes, lower: bytes, found: list):
    """AccountKey=... and SharedAccessKey=... of a connection string."""
    for label in (b"accountkey=", b"accesskey="):
        for pos in _each(lower, label):
            start = pos + len(label)
            end = _run(data, start, _BASE64 + b"=%")
            if end - start >= 43:
                found.append((start, end, "azure-storage"))

"""Finds secrets in a text, and returns the text without them.

1. Each kind has a literal that is in all of its values (one search in C).  Then hand-written,
   bounded code checks the text around it, so that every text takes linear time.  There is no
   regular expression, and no guess by entropy alone.
2. Text that only looks like a secret stays: hashes, UUIDs, paths, ``task-list``, placeholders
   (``<your-key>``, ``...EXAMPLE``).
3. Secrets that the agent itself knows are also found in other forms: known_secrets.py.
4. In JSON text ``\\n`` is two characters, and the second is a letter.  It ends a word, as the end
   of a line does.
"""

from clawlite.scan.labels import authorization, aws, azure, find_labelled, url
from clawlite.scan.services import long_words, services
from clawlite.scan.tokens import (
    ALNUM,
    BASE64,
    DIGITS,
    LONGEST,
    QUOTES,
    TOKEN,
    UPPER,
    each,
    in_word,
    is_random,
    run,
)

_SPACE = b" \t\r\n"
_BLOCK = 16384  # bytes of a PEM block
# kind, anchors, alphabet of what follows one, least bytes of that, whether it must begin a word
_PREFIXED = (
    ("github", (b"ghp_", b"gho_", b"ghs_", b"ghu_", b"ghr_"), ALNUM, 30, False),
    ("github", (b"github_pat_",), ALNUM + b"_", 40, False),
    ("gitlab", (b"glpat-",), TOKEN, 20, False),
    ("gitlab", (b"gldt-", b"glrt-", b"glptt-", b"glsoat-"), TOKEN, 20, True),
    ("slack", (b"xoxb-", b"xoxp-", b"xoxa-", b"xoxr-", b"xoxs-", b"xoxe."), TOKEN, 20, False),
    ("slack", (b"xapp-",), TOKEN, 20, False),
    ("slack-webhook", (b"hooks.slack.com/",), ALNUM + b"/", 24, False),
    ("stripe", (b"sk_live_", b"rk_live_"), ALNUM, 16, False),
    ("stripe", (b"whsec_",), ALNUM, 24, False),
    ("google", (b"AIza",), TOKEN, 35, True),
    ("google", (b"GOCSPX-",), TOKEN, 24, True),
    ("google", (b"ya29.",), TOKEN, 40, True),
    ("sendgrid", (b"SG.",), TOKEN + b".", 50, True),
    ("npm", (b"npm_",), ALNUM, 36, True),
    ("pypi", (b"pypi-AgE",), TOKEN, 50, False),
    ("huggingface", (b"hf_", b"api_org_"), ALNUM, 30, True),
    ("discord", (b"/api/webhooks/",), TOKEN + b"/", 50, False),
    ("discord", (b"mfa.",), TOKEN, 80, True),
)
# base64 of {", of { and a space, and of { and the end of a line, LF or CR LF
_OBJECTS = (b"eyJ", b"eyA", b"ewo", b"ew0")
_SLASH = 47  # in the anchors that are a part of a URL
_OPENAI = (b"proj-", b"svcacct-", b"admin-", b"None-", b"or-v1-")


def find(data: bytes) -> list:
    """Return [(start, end, kind), ...] of the secrets in *data*, in order, none over another.

    data  text as UTF-8, of any length; invalid bytes do no harm
    Cost  about 1 ms for 64 KB of text without secrets on CPython, a copy of *data*; linear for
          every text.
    """
    found, words = [], long_words(data)
    for kind, anchors, alphabet, least, is_word in _PREFIXED if words or _SLASH in data else ():
        for anchor in anchors:
            pos = data.find(anchor) if words.find(anchor) >= 0 or _SLASH in anchor else -1
            while pos >= 0:
                start = pos + len(anchor)
                end = run(data, start, alphabet)
                if (
                    end - start >= least
                    and not (is_word and in_word(data, pos))
                    and is_random(data[start:end])
                ):
                    found.append((pos, end, kind))
                    start = end
                elif end - start == LONGEST:
                    start = end  # a long run that is not random: skipped as a whole
                pos = data.find(anchor, start)
    for look in (_sk, aws, _telegram, _jwt, _discord, _pem, url):
        look(data, found)
    lower = data.lower()
    find_labelled(data, lower, found)
    authorization(data, lower, found)
    azure(data, lower, found)
    services(data, words, found)
    return merge(found)


def merge(found: list) -> list:
    """Return *found*, sorted.  Overlapping ones are merged into one of the kind of the first."""
    if len(found) < 2:
        return found
    found.sort()
    out = [found[0]]
    for start, end, kind in found[1:]:
        first, last, known = out[-1]
        if start >= last:
            out.append((start, end, kind))
        elif end > last:
            out[-1] = (first, end, known)
    return out


def redact(data: bytes, found: list) -> bytes:
    """Return *data* with ``[REDACTED: KIND]`` for each of *found*."""
    out, pos = [], 0
    for start, end, kind in found:
        out.append(data[pos:start])
        out.append(b"[REDACTED: %s]" % kind.encode())
        pos = end
    out.append(data[pos:])
    return b"".join(out)


def _sk(data: bytes, found: list):
    """sk-ant-..., sk-proj-... and older OpenAI keys, sk- and letters."""
    for pos in each(data, b"sk-"):
        start = pos + 3
        if data[start : start + 4] == b"ant-":
            kind, alphabet, least = "anthropic", TOKEN, 24
        else:
            kind, alphabet, least = "openai", ALNUM, 20
            for prefix in _OPENAI:
                if data[start : start + len(prefix)] == prefix:
                    alphabet, least = TOKEN, 24
        end = run(data, start, alphabet)
        if end - start >= least and not in_word(data, pos) and is_random(data[start:end]):
            found.append((pos, end, kind))


def _telegram(data: bytes, found: list):
    """A bot's number, a colon, A and at least 32 more; real tokens have 34."""
    for pos in each(data, b":A"):
        if data[pos - 1 : pos].isdigit():
            end = run(data, pos + 1, TOKEN)
            part = data[max(0, pos - 17) : pos]
            digits = len(part) - len(part.rstrip(DIGITS))
            if end - pos > 33 and 5 < digits < 17 and is_random(data[pos:end]):
                found.append((pos - digits, end, "telegram"))


def _jwt(data: bytes, found: list):
    """Two or three parts of base64; the first two are JSON objects (RFC 7519), each of which begins
    with {" or with { and white space.
    """
    if data.find(b".e") < 0:  # the second part begins so
        return
    for anchor in _OBJECTS:
        for pos in each(data, anchor):
            end = pos if in_word(data, pos) else run(data, pos, TOKEN, 4096)
            if data[end : end + 1] == b"." and data[end + 1 : end + 4] in _OBJECTS:
                end = run(data, end + 1, TOKEN, 8192)
                if data[end : end + 1] == b".":
                    end = run(data, end + 1, TOKEN, 2048)
                found.append((pos, end, "jwt"))


def _discord(data: bytes, found: list):
    """A Discord bot's token: 23 to 28 bytes, a dot, 6, a dot, 27 or more."""
    pos = data.find(b".")
    last = len(data) - 34
    while 0 <= pos <= last:
        if data[pos + 7] == 46 and pos > 22:
            part = data[pos - 29 : pos] if pos > 28 else data[:pos]
            size = len(part) - len(part.rstrip(TOKEN))
            if data[pos - size - 1] == 92:  # the n of an escape
                size -= 1
            end = run(data, pos + 8, TOKEN)
            if (
                22 < size < 29
                and end - pos > 34
                and run(data, pos + 1, TOKEN) == pos + 7
                and data[pos - size] in b"MNO"
                and is_random(data[pos - size : pos])
                and is_random(data[pos + 8 : end])
            ):
                found.append((pos - size, end, "discord"))
        pos = data.find(b".", pos + 1)


def _pem(data: bytes, found: list):
    """A private key, the whole block; when it is cut, its beginning."""
    done = 0
    for pos in each(data, b"PRIVATE KEY"):
        if pos < done:
            continue
        line = data.rfind(b"-----", max(0, pos - 24), pos)
        if line < 0:
            continue
        if data[line : line + 9] == b"-----END ":  # its beginning is not here
            start = max(done, line - _BLOCK)
            start += len(data[start:line].rstrip(BASE64 + b"=\\\r\n"))
            start = run(data, start, b"\r\n")
            done = run(data, pos, UPPER + b" -", 32)
            if data[line - 1 : line] not in QUOTES:
                found.append((start, done, "pem"))
        elif data[line : line + 11] == b"-----BEGIN ":
            body = run(data, pos, UPPER + b" -", 32)
            end = data.find(b"-----END ", body, body + _BLOCK)
            if data[body : body + 1] not in QUOTES:  # words about keys
                done = (
                    run(data, end, UPPER + b" -", 64)
                    if end >= 0
                    else run(data, body, BASE64 + _SPACE + b"=\\:,-", _BLOCK)
                )
                if data[done - 1] == 92:  # it belongs to what follows
                    done -= 1
                found.append((line, done, "pem"))

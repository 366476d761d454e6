"""Finds tokens of services by their prefixes, with one search each; for leaks.py.

1. The prefixes are texts, not tuples, so that a board reads them from flash and keeps none in
   memory.
2. When a prefix is short or a word, its value must be hexadecimal and of one length, or be at a
   fixed place.
"""

from clawlite.scan.tokens import (
    ALNUM,
    BASE64,
    DIGITS,
    TOKEN,
    changes,
    each,
    in_word,
    is_mixed,
    is_random,
    run,
)

_HEX = b"0123456789abcdefABCDEF"
_UUID = _HEX + b"-"
_LEAST = 18  # bytes behind the name
# Behind it letters, digits, "_" and "-".
_NAMED = (
    b"dop_v1_ doo_v1_ dor_v1_ shpat_ shpss_ shpca_ shppa_ gsk_ xai- pplx- r8_ dckr_pat_ "
    b"dckr_oat_ lin_api_ lin_oauth_ ntn_ secret_ PMAK- "
    b"ATATT3 ATCTT3 ATBB NRAK- NRII- glsa_ glc_ sq0atp- sq0csp- EAAA EAAC pscale_tkn_ "
    b"pscale_pw_ pscale_oauth_ sbp_ sntrys_ sntryu_ fo1_ "
    b"sk_test_ rk_test_ sk_prod_ glcbt- glffct- glimt- glagent- figd_ figo_ tskey-api- "
    b"tskey-auth- tskey-client- ops_eyJ EZAK EZTK "
    b"FLWSECK- rubygems_ nfp_ nfc_ nfo_ HRKU- lsv2_pt_ lsv2_sk_ nvapi- pcsk_ tvly- CFPAT- "
    b"xkeysib- xsmtpsib- waka_ LTAI AKID AKCp PSK- "
    b"duffel_live_ duffel_test_ pnu_ rdme_ shippo_live_ shippo_test_ tfp_ AQVN hvs. hvb. "
    b"hvr. dp.pt. dp.st. dp.sa. dt0c01. sl. t1. "
    b"cloudsmith_ sgp_ sourcegraph_ fw_ csk- jina_ voy- ls__ ghv_ pat-na1- pat-eu1- "
    b"rzp_live_ rzp_test_ SK_live_ v2_pk_ "
    b"AGE-SECRET-KEY-1"
)
# Behind it so many hexadecimal digits, and no more.
_HEXED = (
    (b"SK", 32),
    (b"key-", 32),
    (b"dapi", 32),
    (b"pul-", 40),
    (b"fc-", 32),
    (b"sk_", 48),
    (b"pk_", 48),
)


# MicroPython has none
_APART = (
    bytes([byte if byte in TOKEN + b"." else 32 for byte in range(256)])
    if hasattr(bytes, "translate")
    else None
)


def long_words(data: bytes) -> bytes:
    """Return the words of *data* that are long enough to be a token, and neither hexadecimal nor a
    UUID.  A search in them takes a tenth of the time, and most short texts have none.
    """
    if _APART is None:
        return data
    return b" ".join(
        [
            word
            for word in data.translate(_APART).split()
            if len(word) > 20
            and word.strip(_HEX)
            # some names are in the same letters
            and (word.strip(_UUID) or word.find(b"EAA") >= 0 or word.find(b"fc-") >= 0)
        ]
    )


def services(data: bytes, words: bytes, found: list):
    """Add (start, end, "service-token") to *found* for each in *data*.  *words*: its
    ``long_words``.
    """
    for anchor in _NAMED.split(b" ") if words else ():
        for pos in each(data, anchor) if words.find(anchor) >= 0 else ():
            start = pos + len(anchor)
            end = run(data, start, TOKEN)
            if (
                end - start >= _LEAST
                and not _is_rest(data, pos)
                and is_random(data[start:end])
                and _is_made(data[start:end])
            ):
                found.append((pos, end, "service-token"))
    for anchor, size in _HEXED if words else ():
        for pos in each(data, anchor) if words.find(anchor) >= 0 else ():
            start = pos + len(anchor)
            if (
                run(data, start, _HEX) == start + size == run(data, start, TOKEN)
                and not _is_rest(data, pos)
                and is_random(data[start : start + size])
            ):
                found.append((pos, start + size, "service-token"))
    _inside(data, found)
    _blocks(data, found)


def _is_rest(data: bytes, pos: int) -> bool:
    """Return whether the text at *pos* is the rest of a longer name: cache-key-..."""
    return in_word(data, pos) or data[pos - 1 : pos] in (b"-", b"_")


def _is_made(value: bytes) -> bool:
    """Return whether *value* is no name of several words: letters and digits change in it, and
    more where that is seldom.
    """
    count = changes(value)
    return count > 2 or count > 0 and is_mixed(value)


def _inside(data: bytes, found: list):
    """Tokens with a mark in the middle: Terraform, Azure AD, Airtable, Mailchimp."""
    for pos in each(data, b".atlasv1."):
        start, end = _start(data, pos, ALNUM), run(data, pos + 9, TOKEN)
        if pos - start > 9 and end - pos > 49:
            found.append((start, end, "service-token"))
    for pos in each(data, b"Q~"):
        end = run(data, pos + 2, TOKEN + b"~.", 41)
        if data[pos - 1 : pos].isdigit() and 31 <= end - pos - 2 <= 40 and is_random(data[pos:end]):
            found.append((max(0, pos - 4), end, "service-token"))
    for pos in each(data, b"pat"):
        if (
            data[pos + 17 : pos + 18] == b"."
            and run(data, pos, ALNUM) == pos + 17
            and run(data, pos + 18, _HEX) == pos + 82
        ):
            found.append((pos, pos + 82, "service-token"))
    for pos in each(data, b"-us"):
        start = _start(data, pos, _HEX)
        if pos - start == 32 and data[pos + 3 : pos + 4].isdigit() and is_random(data[start:pos]):
            found.append((start, run(data, pos + 3, DIGITS), "service-token"))


def _start(data: bytes, pos: int, alphabet: bytes) -> int:
    part = data[max(0, pos - 64) : pos]
    return pos - len(part) + len(part.rstrip(alphabet))


def _blocks(data: bytes, found: list):
    """Private keys that are not PEM: those of PuTTY and OpenVPN, and PEM in base64, as in the files
    of Kubernetes.
    """
    for anchor in (b"Private-Lines:", b"Static key V1-----"):
        for pos in each(data, anchor):
            start = run(data, pos + len(anchor), b" " + DIGITS, 8)
            end = run(data, start, BASE64 + b"=\\\r\n", 16384)
            if end - start > 64:
                found.append((start, end, "private-key"))
    end = 0
    for pos in each(data, b"LS0tLS1CRUdJTi"):
        # CERT, PUBL
        if pos >= end and data[pos + 14 : pos + 20] not in (b"BDRVJU", b"BQVUJM"):
            end = run(data, pos, BASE64 + b"=", 16384)
            found += [(pos, end, "private-key")] if end - pos > 64 else []

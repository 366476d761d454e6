"""Who may say what on a channel: every mode, every role, and each bound one below, at and one
above.
"""

import itertools

from clawlite.core.policy.access import (
    ADMIN,
    ALLOWLIST,
    CODE_LENGTH,
    MAX_PAIRED,
    OPEN,
    PAIRING,
    ROLES,
    USER,
    VIEWER,
    Access,
    Bucket,
)

PLAIN = [10, None, None, False]


def drawing():
    """Return a source of bytes that never repeats soon."""
    numbers = itertools.count(1)
    return lambda count: bytes([(next(numbers) * 7) % 251 for _ in range(count)])


def access(mode, details=None, processing=PLAIN, **more):
    return Access([mode, details], processing, drawing(), **more)


def judged(of: Access, actor: str, text: str = "hi", now_ms: int = 0, now_s: int = 0):
    verdict = of.judge(actor, text, now_ms, now_s)
    return verdict.role, verdict.why


def test_open_admits_everybody_as_a_user():
    assert judged(access(OPEN), "anybody") == (USER, "ok") and access(OPEN).admins() == []


def test_allowlist_admits_those_on_it_alone():
    of = access(ALLOWLIST, ["7"])
    assert [judged(of, actor) for actor in ("7", "8", "", "77")] == [(USER, "ok")] + [
        (None, "stranger")
    ] * 3
    assert judged(access(ALLOWLIST, []), "7") == (None, "stranger")


def test_a_stranger_hears_nothing():
    assert access(ALLOWLIST, []).judge("7", "hi", 0, 0).said == ""


def test_roles():
    of = access(ROLES, [["a", ADMIN], ["u", USER], ["v", VIEWER]])
    assert [of.role(actor) for actor in ("a", "u", "v", "x")] == [ADMIN, USER, VIEWER, None]
    assert of.admins() == ["a"] and judged(of, "x") == (None, "stranger")


def test_length_in_characters():
    assert [judged(access(OPEN), "u", text)[1] for text in ("x" * 9, "ä" * 10, "x" * 11)] == [
        "ok",
        "ok",
        "length",
    ]


def test_a_burst_then_so_many_a_minute():
    bucket = Bucket(2, 3)
    assert [bucket.take(0) for _ in range(4)] == [0, 0, 0, 30000]
    assert bucket.take(29999) == 1 and bucket.take(30000) == 0 and bucket.take(30000) == 30000
    assert [bucket.take(10_000_000) for _ in range(4)] == [0, 0, 0, 30000], (
        "never more than the burst"
    )


def test_time_that_goes_back_gives_nothing():
    bucket = Bucket(60, 1)
    assert bucket.take(5000) == 0 and bucket.take(0) == 1000 and bucket.take(1000) == 0


def test_rate_counts_only_those_who_are_admitted():
    of = access(ALLOWLIST, ["7"], [10, 1, 1, False])
    assert judged(of, "8") == (None, "stranger") and judged(of, "7", "x" * 11) == (None, "length")
    assert judged(of, "7") == (USER, "ok") and judged(of, "7") == (None, "rate")
    assert "60 s" in of.judge("7", "hi", 0, 0).said and judged(of, "7", now_ms=60000) == (
        USER,
        "ok",
    )


def _code(of: Access, actor: str, now_s: int = 0) -> str:
    said = of.judge(actor, "hi", 0, now_s).said
    return said.split("/pair ")[1].split()[0]


def test_pairing():
    of = access(PAIRING, [30, 2])
    code = _code(of, "7")
    assert len(code) == CODE_LENGTH and of.waiting(0) == 1
    assert of.pair("NOTACODE", 0) is None and judged(of, "7") == (None, "pairing")
    assert of.pair(code.lower(), 0) == "7" and judged(of, "7") == (USER, "ok")
    assert of.pair(code, 0) is None, "a code is good once"


def test_who_waits_is_told_once_and_so_many_wait():
    of = access(PAIRING, [30, 2])
    assert _code(of, "1") != _code(of, "2")
    assert (
        of.judge("1", "hi", 0, 0).said == ""
        and judged(of, "3") == (None, "stranger")
        and of.waiting(0) == 2
    )
    assert of.waiting(30 * 60 - 1) == 2 and of.waiting(30 * 60) == 0
    assert _code(of, "3", 30 * 60)


def test_a_code_expires():
    of = access(PAIRING, [1, 1])
    code = _code(of, "7")
    assert of.pair(code, 60) is None and judged(of, "7", now_s=60) == (None, "pairing")
    assert of.pair(_code(access(PAIRING, [1, 1]), "7"), 59) is None, "the code of another channel"
    of = access(PAIRING, [1, 1])
    assert of.pair(_code(of, "7"), 59) == "7"


def test_who_was_paired_earlier_stays_so_and_there_is_a_bound():
    of = access(PAIRING, [1, 1], paired=[str(number) for number in range(MAX_PAIRED - 1)])
    assert judged(of, "5") == (USER, "ok") and of.pair(_code(of, "new"), 0) == "new"
    assert len(of.paired) == MAX_PAIRED and judged(of, "newer") == (None, "stranger")

"""Secrets in text (clawlite/scan/leaks.py, known_secrets.py): every kind in every surrounding, and
nothing that only looks like one.
"""

import base64
import os
import re
import time
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from secret_samples import CAPITALS, samples

from clawlite.host.policy.scan_config import KINDS
from clawlite.scan import leaks, services
from clawlite.scan.known_secrets import Known
from clawlite.scan.leaks import find, merge, redact

AROUND = (
    "%s",
    "line1\r\n%s\r\nline3",
    "a\n%s\nb",
    "x=%s;",
    "(%s)",
    "a\\n%s\\nb",
    "key %s.",
    "<b>%s</b>",
    "export K=%s\n",
    "K: %s, L: 1",
    "\u00e9\u00e8 %s \u00e9",
)
BENIGN = (
    "commit 1f0e9d8c7b6a5948372615041322314253647586 task-list-for-the-second-week",
    "550e8400-e29b-41d4-a716-446655440000",
    "sk-...",
    "sk-your-api-key-here-1234567890ab",
    "<your-key>",
    "OPENAI_API_KEY=sk-" + "x" * 32,
    "AKIA" + "IOSFODNN7EXAMPLE",
    'password: "required"',
    '"password": "string"',
    'token: "identifier"',
    "Bearer <token>",
    "Authorization: Bearer YOUR_TOKEN_HERE",
    "the bearer of good news arrives",
    "https://user:pass@host/",
    "postgres://user:password@localhost/db",
    "postgres://${USER}:${PASS}@h/",
    "postgres://u:%s@h/",
    "ghp_short",
    "/usr/lib/python3/dist-packages/token.py",
    "sha256:" + "ab12" * 16,
    "risk-0123456789abcdef0123456789abcdef0",
    "disk-1f0e9d8c7b6a5948372615041322314253647586",
    "http://localhost:8080/@scope/pkg@1.2.3",
    "password = os.environ['DB_PASSWORD_1']",
    'password = get_password("db1")',
    'secret_ref: "OPENAI_API_KEY_2"',
    '"token": "userAccessTokenName"',
    '"token": "550e8400-e29b-41d4-a716-446655440000"',
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
    "a file has '-----BEGIN RSA PRIVATE KEY-----' and '-----END RSA PRIVATE KEY-----'",
    "eyJ is how a JSON object begins in base64",
    "12:30:AM the meeting",
    "1.2.3.4 and v1.22.333",
    "sk-learn-contrib-package-2024-list",
    "https://hooks.slack.com/services/",
    "xoxb-your-token",
    "hf_hub_download_2024_models",
    "npm_config_registry=https://r/",
    "npm_lifecycle_script_for_every_1",
    'password=""',
    "password: '***'",
    'pwd: "/home/u1/x"',
    'api_key = "INSERT_YOUR_KEY_1"',
    '"secret": "my-kubernetes-secret-name"',
    'class="token-string-2 bold"',
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI bob@host",
    "integrity sha512-" + base64.b64encode(bytes(range(64))).decode(),
    "PWD=/tmp/ag-ca1oqv3u/ws2a OLDPWD=/home/b2c3d4/x9",
    'bypass="a1b2c3d4e5"',
    "pass: 12 of 14, passed: 3x4y5z6a7",
    'Pass: "see page 12"',
    "compass='n1e2s3w4'",
    "<Secret>my-kubernetes-secret-name</Secret>",
    "Authorization: Token required",
    "Authorization: Bearer authentication",
    "secret access key: press Alt+S, then 40 letters",
    "https://x/c?sig=none&sv=1",
    "public key: sha512-" + base64.b64encode(bytes(range(64))).decode(),
    "key: " + "A" * 86 + "==",
    "password: required|min:8",
    'password = "NewPassword"',
    'name="password">Enter it here',
    "ewogIA is how a JSON object with a line end begins",
    "ssh://git@github.com:22/x",
    "mail bob@example.com: token 12",
    "arn:aws:secretsmanager:eu-1:1234:secret:x",
    'passphrase: "${PASS_1}"',
)


def redact_text(text: str) -> str:
    data = text.encode()
    return redact(data, find(data)).decode()


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"known"}))
def test_every_kind_goes_in_every_surrounding(kind):
    for seed in range(25):
        for text, secret in samples(seed)[kind]:
            for around in AROUND:
                whole = around % text
                clean = redact_text(whole)
                assert secret not in clean and "[REDACTED: " in clean, (kind, whole)
                assert clean.startswith(around.split("%s")[0]), "what stands before it stays"
            assert kind in {one for _, _, one in find(text.encode())}, (kind, text)


@pytest.mark.parametrize("text", BENIGN)
def test_what_only_looks_like_a_secret_stays(text):
    assert redact_text(text) == text
    assert redact_text("a\r\n" + text + "\r\nb") == "a\r\n" + text + "\r\nb"


def test_all_kinds_that_are_declared_are_found():
    assert set(samples(1)) | {"known"} == set(KINDS)


def test_a_key_that_is_cut_goes_as_far_as_it_is_there():
    pem = samples(3)["pem"][0][0]
    assert redact_text("x\n" + pem[:200]) == "x\n[REDACTED: pem]"
    assert redact_text("y:\n" + pem[60:]) == "y:\n[REDACTED: pem]"
    assert redact_text('{"k":"%s"}' % pem.replace("\n", "\\n")) == '{"k":"[REDACTED: pem]"}'
    cut = '{"k": "{\\"k\\": \\"%s\\"}"}' % pem[:200].replace("\n", "\\n")
    assert redact_text(cut).endswith('[REDACTED: pem]\\"}"}'), "an escape keeps what it escapes"


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_words_that_are_not_searched_hold_no_token(data):
    """What a board finds, which searches everything, is found where most words are left out."""
    marks = st.sampled_from(services._NAMED.split(b" ") + [mark for mark, _ in services._HEXED])
    anchors = marks | st.sampled_from([anchor for one in leaks._PREFIXED for anchor in one[1]])
    letters = st.sampled_from(("0123456789abcdef", "0123456789ABCDEF-", CAPITALS + "abcdef012"))
    words = []
    for _ in range(data.draw(st.integers(1, 4))):
        size = data.draw(st.sampled_from((12, 18, 32, 36, 40, 48, 60)))
        drawn = data.draw(st.text(data.draw(letters), min_size=size, max_size=size)).encode()
        words.append(data.draw(st.just(b"") | anchors) + drawn)
    text = data.draw(st.sampled_from((b" ", b"/", b'","', b"\\n", b"-"))).join(words)
    kept = services.long_words(text)
    found = find(text)
    if not any(re.fullmatch(b"EAA[AC][0-9a-fA-F]+", word) for word in re.split(b"[^\\w-]", text)):
        with pytest.MonkeyPatch.context() as all_words:
            all_words.setattr(services, "_APART", None)
            assert services.long_words(text) == text
            assert find(text) == found, (text, kept)


def test_a_uuid_is_no_word_to_search():
    line = b'{"request_id":"123e4567-e89b-42d3-a456-426614174000","image":"3ef672a4"}'
    assert services.long_words(line) == b""


def test_an_aws_secret_beside_its_id_needs_no_name():
    secret = samples(4)["aws-secret"][0][1]
    line = "AK" + "IA" + "ABCDEFGHIJ234567" + "," + secret
    assert redact_text(line) == "[REDACTED: aws-id],[REDACTED: aws-secret]"


def test_lengths_one_below_at_and_one_above():
    for pattern, made in (
        ("AK" + "IA%s", lambda n: (CAPITALS * 2)[:n]),
        ("AI" + "za%s", lambda n: ("aB3" * 20)[:0] + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eFxY9u2"[:n]),
    ):
        exact = 16 if "KIA" in pattern else 35
        assert redact_text(pattern % made(exact - 1)) == pattern % made(exact - 1)
        assert redact_text(pattern % made(exact)).startswith("[REDACTED")
    assert redact_text("AK" + "IA" + (CAPITALS * 2)[:17]).startswith("AK"), (
        "one more, and it is no id"
    )


def test_what_touches_is_one():
    assert merge([(5, 9, "b"), (0, 6, "a")]) == [(0, 9, "a")] and merge(
        [(0, 9, "a"), (2, 3, "b")]
    ) == [(0, 9, "a")]
    assert merge([(0, 2, "a"), (2, 4, "b")]) == [(0, 2, "a"), (2, 4, "b")]
    assert redact(b"abcd", [(1, 3, "jwt")]) == b"a[REDACTED: jwt]d"


SECRET = "s3cr" + "et/Va+lue=" + "\u00fc?"


def _forms(data: bytes):
    yield SECRET
    yield data.hex()
    yield data.hex().upper()
    yield quote(SECRET, safe="")
    yield "".join("%%%02x" % b for b in data)
    yield SECRET[::-1]
    yield SECRET.upper()
    yield SECRET.lower()
    yield "".join("\\u%04x" % ord(c) for c in SECRET)
    yield "".join("&#%d;" % ord(c) for c in SECRET)
    yield data.hex()[::-1]


def test_a_known_secret_goes_in_every_form():
    known, data = Known(), SECRET.encode()
    known.learn(SECRET)
    for form in _forms(data):
        for text in (
            "a %s b" % form,
            "a %s b" % " ".join(form),
            "a %s b" % "\n".join(form[at : at + 4] for at in range(0, len(form), 4)),
        ):
            found = []
            known.find(text.encode(), found)
            assert (
                len(merge(found)) == 1
                and redact(text.encode(), merge(found)) == b"a [REDACTED: known] b"
            ), text


@pytest.mark.parametrize("coded", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_known_secret_goes_in_base64_at_each_alignment(coded):
    known, data = Known(), SECRET.encode()
    known.learn(SECRET)
    for before in range(6):
        for after in range(3):
            text = coded(b"x" * before + data + b"y" * after)
            found = []
            known.find(b"a " + text + b" b", found)
            assert found, (before, after)
            left = redact(b"a " + text + b" b", merge(found)).replace(b"[REDACTED: known]", b"")
            assert len(left) <= 4 + len(text) - len(data) // 3 * 4 + 4, (
                "a few letters at the borders may stay, not more"
            )


def test_a_short_value_is_a_word_like_any_other():
    known = Known()
    known.learn("short")
    assert known.forms == []
    known.learn("longer")
    assert known.forms


@given(st.binary(max_size=400))
@settings(max_examples=300, deadline=None)
def test_any_bytes_do(data):
    for start, end, _ in find(data):
        assert 0 <= start < end <= len(data)
    known = Known()
    known.learn("some secret value")
    found = []
    known.find(data, found)


@given(st.text(max_size=60), st.text(max_size=60), st.integers(0, 10**6))
@settings(max_examples=150, deadline=None)
def test_what_is_redacted_once_stays_as_it_is(before, after, seed):
    texts = [text for texts in samples(seed).values() for text, _ in texts]
    clean = redact_text(before + " " + texts[seed % len(texts)] + " " + after)
    assert redact_text(clean) == clean or "REDACTED" in clean


HOSTILE = (
    b"sk-",
    b".",
    b"-----BEGIN RSA PRIVATE KEY-----",
    b"-----END RSA PRIVATE KEY-----",
    b"PRIVATE KEY",
    b'token="',
    b"eyJ",
    b"eyJ.eyJ",
    b"://a:",
    b"://a:b@",
    b"passw",
    b"1:A",
    b"bearer ",
    b"AKIA",
    b"xoxb-",
    b"SG.",
    b"sk-proj-",
    b"aaaaaa.",
    b"password=\"'",
    b"ghp_",
    b"secret:",
    b"\\n",
)


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_text_made_to_be_slow_is_walked_once(piece):
    """Ten times the text, some ten times the time: 16 would be seen by a square, 100."""

    def seconds(size: int) -> float:
        data = piece * (size // len(piece))
        best = 9e9
        for _ in range(3):
            begin = time.process_time()
            find(data)
            best = min(best, time.process_time() - begin)
        return best

    assert seconds(163840) < 40 * seconds(16384) + 0.01


def test_random_base64_holds_no_secret_as_good_as_never():
    found = [one for _ in range(20) for one in find(base64.b64encode(os.urandom(48000)))]
    assert len(found) <= 1


def test_words_that_are_too_short_to_be_a_token_are_passed_over_and_no_others(monkeypatch):
    from clawlite.scan import services

    value = "a1B2c3D4e5F6g7H8i9"
    assert min(map(len, services._NAMED.split(b" "))) == 3 and len(value) == services._LEAST
    for name in services._NAMED.decode().split(" "):
        for form in (
            "%s",
            "say %s, then",
            "k=%s&x=1",
            '{"a":"x\\n%s"}',
            "https://u:%s@host/",
            "(%s)",
            "\xff%s\0",
        ):
            data = (form % (name + value)).encode("latin-1")
            found, alone = [], []
            services.services(data, services.long_words(data), found)
            services.services(data, data, alone)
            assert found == alone and alone, data
    texts = [
        around % text
        for seed in range(3)
        for kind in samples(seed).values()
        for text, _ in kind
        for around in AROUND
    ]
    found = [find(text.encode()) for text in texts]
    monkeypatch.setattr(services, "_APART", None)  # as on a board
    assert found == [find(text.encode()) for text in texts]

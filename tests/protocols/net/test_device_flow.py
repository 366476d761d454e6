"""The device flow (RFC 8628) on a clock of the test: how often the server is asked, and what ends
it.
"""

import transcripts

from clawlite.core.base import effect as E
from clawlite.core.base.errors import ProviderError, TransientError
from clawlite.core.providers.wire import Codec
from clawlite.protocols.net.device_flow import Ended, renew, sign_in, sign_in_text

ROW = [True, "login.example.com", 443, "/token", "me", "read"]
DEVICE = (True, "login.example.com", 443, "/device")
BEGUN = (
    b'{"device_code":"d-1","user_code":"ABCD-EFGH","verification_uri":"https://login.example.com/a"'
    b',"expires_in":100,"interval":2%s}'
)
TOKEN = b'{"access_token":"t0ken","token_type":"Bearer","refresh_token":"r-1"}'


class Meter:
    """A clock that only sleeping moves."""

    ms = 0

    def now_ms(self):
        return self.ms

    def now_s(self):
        return self.ms // 1000


def run(work, answers, meter):
    """Carry out *work* with *answers*, [(status, body) or None: no connection, ...]; return its
    result, the requests as texts, and the pauses in s.
    """
    requests, pauses, outcome = [], [], None
    while True:
        try:
            effect = work.send(outcome)
        except StopIteration as e:
            return e.value, requests, pauses
        outcome = None
        if effect[0] == E.SLEEP:
            meter.ms += effect[1]
            pauses.append(effect[1] // 1000)
        elif effect[0] == E.OPEN:
            requests.append(b"".join(effect[4]).decode())
        elif effect[0] == E.RECEIVE:
            answer = answers.pop(0)
            if answer is None:
                outcome = False, TransientError("it hung up")
            else:
                status, body = answer
                head = "HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n" % (status, len(body))
                outcome = True, head.encode() + body


def signed_in(answers, told=None, begun=BEGUN % b""):
    meter, (loads, dumps) = Meter(), transcripts.decoder()
    tell = lambda *what: None if told is None else told.append(what)
    work = sign_in(ROW, DEVICE, Codec(loads, dumps), loads, meter, "https://mcp.example/v1", tell)
    return run(work, [(200, begun)] + answers, meter)


def waits(error):
    return 400, b'{"error":"%s"}' % error


def refusal(*args, **named):
    try:
        signed_in(*args, **named)
    except ProviderError as e:
        return e.message
    raise AssertionError("it was no error")


def test_rfc_8628_3_2_and_3_5_the_server_says_how_often_it_is_asked():
    """slow_down adds 5 s for good; a connection that fails doubles the pause."""
    told = []
    answers = [waits(b"authorization_pending"), waits(b"slow_down"), None, (200, TOKEN)]
    (token, refresh), requests, pauses = signed_in(answers, told)
    assert (token.value, refresh) == ("t0ken", "r-1")
    assert pauses == [2, 2, 7, 14]
    assert told == [("https://login.example.com/a", "ABCD-EFGH", "", 100)]
    assert "POST /device " in requests[0] and "client_id=me&scope=read" in requests[0]
    assert requests[0].endswith("&resource=https%3A%2F%2Fmcp.example%2Fv1")
    assert "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code" in requests[1]
    assert "device_code=d-1&client_id=me" in requests[1] and "Authorization" not in requests[1]


def test_rfc_8628_3_5_what_ends_it():
    assert "it was refused there" in refusal([waits(b"access_denied")])
    assert "nobody agreed within 100 s" in refusal([waits(b"expired_token")])
    assert "nobody agreed within 100 s" in refusal([waits(b"authorization_pending")] * 60)
    assert "invalid_client" in refusal([waits(b"invalid_client")])
    assert "no token from login.example.com" in refusal([(200, b"{}")])
    assert "d-1" not in refusal([(400, b'{"error":"x","error_description":"no d-1"}')])


def test_answers_that_no_person_can_use():
    for begun in (
        b"{}",
        BEGUN.replace(b"https://login", b"javascript://login") % b"",
        BEGUN.replace(b"https://login", b"http://login") % b"",
        BEGUN.replace(b"ABCD-EFGH", b"A\\u001b[2J") % b"",
        BEGUN.replace(b"ABCD", b"A" * 64) % b"",
        BEGUN.replace(b"https://login", b"https://bank.example@login") % b"",
        BEGUN.replace(b"https://login", b"https://bank.example:pw@login") % b"",
        BEGUN.replace(b"https://login", b"http://127.0.0.1:80@login") % b"",
        BEGUN.replace(b"https://login", b"https://bank.example\\\\@login") % b"",
        BEGUN.replace(b"https://login.example.com", b"https://") % b"",
    ):
        assert "expected device_code, user_code" in refusal([], begun=begun)


def test_what_a_person_is_told():
    assert "https://h/a on any device, and enter the code AB there" in sign_in_text(
        "https://h/a", "AB", "", 61
    )
    assert "https://h/a?c=AB has the code" in sign_in_text(
        "https://h/a", "AB", "https://h/a?c=AB", 61
    )
    assert "(Its host is h:8443, its path is /a/b.)" in sign_in_text(
        "https://h:8443/a/b?c=@d#e", "AB", "", 61
    )
    assert 'enter the code "AB, or" there' in sign_in_text("https://h/a", "AB, or", "", 61)
    assert "for 2 minutes" in sign_in_text("https://h/a", "AB", "", 61)


def renewal(answer):
    meter, (loads, dumps) = Meter(), transcripts.decoder()
    work = renew(ROW, "r-1", Codec(loads, dumps), loads, meter, "")
    return run(work, [answer], meter)


def test_rfc_6749_6_a_token_is_renewed():
    (token, refresh), requests, _ = renewal((200, TOKEN.replace(b"r-1", b"r-2")))
    assert (token.value, refresh) == ("t0ken", "r-2")
    assert "grant_type=refresh_token&refresh_token=r-1&client_id=me" in requests[0]
    (_, refresh), _, _ = renewal((200, TOKEN.replace(b"refresh_token", b"other")))
    assert refresh == "r-1", "the old one counts on"


def test_rfc_6749_5_2_a_sign_in_ends():
    for answer, kind in (
        (waits(b"invalid_grant"), Ended),
        (waits(b"invalid_client"), ProviderError),
        ((503, b"later"), TransientError),
        ((400, b"r-1 is bad"), ProviderError),
    ):
        try:
            renewal(answer)
            raise AssertionError("it was no error")
        except ProviderError as e:
            assert type(e) is kind and "r-1" not in e.message

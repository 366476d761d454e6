"""Tokens by client credentials on a clock of the test: when one is used again, and when a new
one is asked for.
"""

import transcripts
from test_provider import Image, World, meter_of, ok, row

from clawlite.core.base import effect as E
from clawlite.core.base.errors import ProviderError
from clawlite.core.net.oauth2 import percent_encode, token_of
from clawlite.core.turns.history import History
from clawlite.core.turns.turn import Message

SERVER = [False, "t", 80, "/token", "me", ""]


class Servers(World):
    """A server of tokens and one of answers, told apart by their hosts."""

    def __init__(self, life):
        super().__init__()
        self.life = life

    def answer(self, effect):
        if effect[0] == E.OPEN:
            body = b'{"access_token":"t0ken","token_type":"bearer"%s}' % self.life
            self.connections = (
                [[b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)]]
                if effect[2] == "t"
                else [ok()]
            )
        return super().answer(effect)


def asked_after(life, moments):
    """Return the hosts that are connected to, at each of *moments* (ms) a turn: "t" for tokens,
    "h" for the provider.
    """
    clock, said = [0], ""
    chain = transcripts.order(
        Image([row(auth=3, oauth2=SERVER)]),
        transcripts.decoder(),
        meter_of(lambda: (clock[0], None)),
        65536,
    )
    for clock[0] in moments:
        history, world = History(65536), Servers(life)
        history.begin(Message("user", "hello"))
        assert world.run(chain.ask(history)).text == "Hi."
        said += "".join([where[1] for where, _ in world.requests])
    return said


def test_a_token_is_used_until_shortly_before_its_end():
    """RFC 6749, 5.1 expires_in: a minute before its end, a quarter of a short life before; 300 s
    where it is not told.
    """
    for life, seconds in (
        (b',"expires_in":3600', 3540),
        (b',"expires_in":"3600"', 3540),
        (b',"expires_in":100', 75),
        (b"", 240),
        (b',"expires_in":-5', 240),
        (b',"expires_in":true', 240),
    ):
        assert asked_after(life, [0, seconds * 1000 - 1]) == "thh", life
        assert asked_after(life, [0, seconds * 1000]) == "thth", life


def test_what_a_form_may_not_hold_is_encoded():
    assert (
        percent_encode("aZ09-._~") == "aZ09-._~"
        and percent_encode("a b:c/é&=%") == "a%20b%3Ac%2F%C3%A9%26%3D%25"
    )


def test_a_token_that_no_header_can_carry_is_none():
    """RFC 6750, 2.1: one with a line end would be two headers of each request."""
    meter = meter_of(lambda: (0, None))
    for value in ("a\r\nX: y", "a b", "\t", "\u00e9", "\u20ac", "a\0", "\x7f", "", None, 5, ["a"]):
        try:
            token_of({"access_token": value, "token_type": "Bearer"}, "h", meter)
        except ProviderError as e:
            assert e.message.startswith("no token from h: expected access_token")
        else:
            assert False, repr(value)
    good = "!A-Za-z0-9-._~+/=~"
    assert token_of({"access_token": good, "token_type": "Bearer"}, "h", meter).value == good

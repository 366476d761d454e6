"""Sentences about what went wrong: for whoever runs a command, and for clients of a gateway."""

import errno

import pytest

from clawlite.core.base.errors import ClawError
from clawlite.host.base.problems import client_sentence, error_sentence, network_reason


@pytest.mark.parametrize(
    "hint, told",
    [
        ("", "It failed."),
        ("set a key", "It failed. - set a key"),
        ("check https://a/v1", "It failed. - the output of clawlite gateway says what to do"),
    ],
)
def test_a_client_reads_no_address(hint, told):
    e = ClawError("It failed.", hint)
    assert client_sentence(e) == told
    assert error_sentence(e) == "It failed." + (hint and " - " + hint)


@pytest.mark.parametrize(
    "e, reason",
    [
        (OSError(errno.ECONNREFUSED, "Connect call failed ('::1', 9)"), "connection refused"),
        (
            OSError("Multiple exceptions: [Errno %d] Connect call failed" % errno.EHOSTUNREACH),
            "no route to host",
        ),
        (OSError(-2, "Name or service not known"), "Name or service not known"),
        (OSError("odd"), "odd"),
    ],
)
def test_a_connection_that_failed_is_said_in_the_words_of_the_system(e, reason):
    assert network_reason(e) == reason

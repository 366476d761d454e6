"""An error says the same wherever it is shown."""

from clawlite.core.base.errors import ClawError, TransientError


def test_the_text_of_an_error_is_its_message():
    for error in (ClawError("a"), TransientError("a", "a hint", {"key": 1})):
        assert str(error) == "a" and "%s" % error == "a"
        error.message = "provider first: " + error.message
        assert str(error) == error.message == "provider first: a"
        assert "{}".format(error) == "provider first: a"

"""Handlers for every gate."""


def echo(text: str) -> str:
    """Give the text back."""
    return text


def write_note(path: str, text: str = "") -> str:
    """Write a note (nowhere)."""
    return "noted %s" % path


def drop_all() -> str:
    """Drop everything."""
    return "dropped"


def ask_first() -> str:
    """Ask first."""
    return "ran"


def lenient() -> str:
    """Run when nobody answers."""
    return "ran"


def touch() -> str:
    """Have side effects."""
    return "touched"


def audited() -> dict:
    """Be audited."""
    return {"b": [1, 2.5, None, True], "a": "ä"}


def slow(ms: int) -> str:
    """Work in steps of 100 ms."""
    while ms > 0:
        yield 100
        ms -= 100
    return "slept"


def fail() -> str:
    """Raise."""
    raise ValueError("it broke")


def shape(value: dict | None = None) -> dict:
    """Return what it is told to."""
    return value


def bound() -> str:
    """Be denied."""
    return "ran"


def nobody() -> str:
    """Be named by no rule."""
    return "ran"

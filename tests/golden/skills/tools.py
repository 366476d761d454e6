"""What the skills use."""


def echo(text: str) -> str:
    """Give the text back."""
    return text


def other() -> str:
    """In no skill of most."""
    return "other"

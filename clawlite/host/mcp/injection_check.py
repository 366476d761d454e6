"""Whether what an MCP server says of its tools gives orders to a model."""

import functools

from clawlite.host.policy.injections import LITERALS, SENTENCES, WORDS
from clawlite.host.schema.automata import compile_pattern
from clawlite.scan.injection import Patterns


def gives_orders(text: str) -> bool:
    """Return whether *text*, of a stranger, gives orders to a model (scan/injection.py)."""
    return _patterns().found(text)


@functools.cache
def _patterns() -> Patterns:
    words = [tuple(word) for word in WORDS]
    return Patterns(compile_pattern("|".join(SENTENCES)), words, list(LITERALS))

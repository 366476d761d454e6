"""Regular expressions to the tables of ``clawlite.core.formats.automaton``.

The standard library's own parser reads the pattern, ``automata_nfa`` turns its tree into states
over UTF-8 bytes, ``automata_dfa`` makes them deterministic and small.

Rules: 1. What has no automaton (back-references, look-around, possessive, atomic and conditional
groups) is refused by name and position, never approximated.  2. Lazy repeats have the language of
greedy ones.  3. ``\\d \\w \\s \\b`` and ``(?i)`` are ASCII, as in ECMA 262 and ``re.ASCII``.  4.
Time and size are bounded by counts, not by a clock, so a pattern is refused on every machine or on
none."""

import re
import warnings
from re import _parser

from clawlite.core.base.errors import ClawError

MAX_LENGTH = 4096  # characters of a pattern
# What the tree cannot say: where a construct that it holds begins.
_PLACES = {
    "a back-reference": r"\\[1-9]|\(\?P=",
    "look-ahead or look-behind": r"\(\?<?[=!]",
    "a possessive repeat": r"[*+?}]\+",
    "an atomic group": r"\(\?>",
    "a conditional group": r"\(\?\(",
    "the flag m": r"\(\?[a-z]*m",
    "the flag u": r"\(\?[a-z]*u",
    "a repeat count": r"\{[0-9,]*[0-9]{4}",
}
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.S)


class PatternError(ClawError):
    """A pattern that cannot be an automaton.

    message   what was found and what to do
    position  character of the pattern that it is about, from 0
    """

    def __init__(self, message: str, position: int = 0):
        super().__init__("%s, at position %d" % (message, position))
        self.position = position


def compile_pattern(pattern: str, dollar: str = "end") -> bytes:
    """Return the table that finds *pattern* anywhere in a text.

    dollar  "end": ``$`` is the end of the text (ECMA 262, for JSON Schema); "python": also before a
            final newline (for patterns that deny).  ``^`` is the start of the text in both.
    Raises PatternError.
    Cost    milliseconds; at most about two seconds, for patterns that are then refused.
    """
    from clawlite.host.schema.automata_dfa import table
    from clawlite.host.schema.automata_nfa import Refusal, build

    if dollar not in ("end", "python"):
        raise ValueError("dollar is %r" % dollar)
    if len(pattern) > MAX_LENGTH:
        raise PatternError(
            "the pattern has %d characters, at most %d are allowed" % (len(pattern), MAX_LENGTH),
            MAX_LENGTH,
        )
    if dollar == "end":
        for token in _TOKEN.finditer(pattern):
            if token[0].startswith(("[]", "[^]")):
                raise PatternError(
                    'a class that begins with "]" differs between dialects; write "\\]"',
                    token.start(),
                )
    try:
        return table(build(_parse(pattern), dollar == "python"))
    except Refusal as refusal:
        what, then = refusal.args
        raise PatternError("%s %s" % (what, then), _position(pattern, what)) from None
    except RecursionError:
        raise PatternError("groups nest too deep") from None


def _parse(pattern):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "possible nested set": it is none today
            return _parser.parse(pattern, re.ASCII)
    except re.error as error:
        raise PatternError(error.msg, error.pos or 0) from None
    except (ValueError, OverflowError) as error:
        raise PatternError(str(error)) from None


def _position(pattern, what):
    """Return where the construct *what* begins: the first place outside classes and escapes that
    looks like it.
    """
    if what in _PLACES:
        looks = re.compile(_PLACES[what])
        for token in _TOKEN.finditer(pattern):
            if token[0][0] != "[" and looks.match(pattern, token.start()):
                return token.start()
    return 0

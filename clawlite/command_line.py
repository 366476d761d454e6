"""The parser of the command line, made from the table in verbs.py.

1. The verb is the longest name that the first words spell (command_words.py).  Options may stand
   anywhere behind it, as ``--a=b`` or ``--a b``; behind ``--`` every word is taken as it is.
2. A word that is none of the verb's is never taken for something else: it is refused, with what
   was most likely meant.
3. ``run``, ``ask`` and ``serve`` pass here before they are READY: nothing is imported before
   something is wrong.
"""

from clawlite.agent_verbs import AGENTS, HERE, MANY, REQUIRED, THERE
from clawlite.core.base.errors import ClawError

HELP = ("--help", "-h")
ELSEWHERE = ("port", "folder", "saved")  # arguments that lead to a board: ``Verb.there`` runs it


class UsageError(ClawError):
    """What was typed is no command.  *verb* is the name of the nearest one that is, or ""."""

    def __init__(self, verb: str, message: str, hint: str):
        super().__init__(message, hint)
        self.verb = verb


def find(words: list) -> tuple:
    """Return (``Verb``, the words behind its name).  Raises ``UsageError``: there is none."""
    for verb in AGENTS:
        if verb.run and verb.name == words[0]:
            return verb, words[1:]
    from clawlite.command_words import search

    return search(words)


def is_help(words: list) -> bool:
    """Whether *words* ask for help."""
    end = words.index("--") if "--" in words else len(words)
    return any(word in HELP for word in words[:end])


def parse(verb, words: list) -> dict:
    """Return {name of an argument: value} of what *verb* takes from *words*.  Raises
    ``UsageError``.
    """
    options = {option.name: option for option in verb.options}
    found, plain, rest = {}, [], list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            plain += rest
            break
        if not _is_option(word):
            plain.append(word)
            continue
        name, equals, value = word.partition("=")
        if name not in options and word[:2] in options and word[1] != "-":
            name, equals, value = word[:2], "=", word[2:]  # -oFILE
        if name not in options:
            raise _unknown_option(verb, name)
        if equals:
            rest.insert(0, value)
        _take(verb, options[name], rest, bool(equals), found)
    _place(verb, plain, found)
    is_there = is_elsewhere(found)
    for option in verb.options:
        is_out = option.place == (HERE if is_there else THERE)
        if option.dest in found and is_out and verb.there:
            said = "it is not for a board" if is_there else "it is for a board: with --port PORT"
            if found.get("saved") is not None:
                said = "it is not for a saved log"
            raise _wrong(verb, "%s: %s" % (option.name, said))
        if is_out and verb.there:
            found.pop(option.dest, None)
        elif option.dest not in found:
            if option.kind == REQUIRED:
                raise _wrong(verb, "expected %s %s" % (option.name, option.metavar))
            is_many = option.kind == MANY
            found[option.dest] = () if is_many else option.default if option.metavar else False
    return found


def is_elsewhere(found: dict) -> bool:
    """Return whether what was typed is for a board, or for what one has said."""
    return any(found.get(name) is not None for name in ELSEWHERE)


def _is_option(word: str) -> bool:
    """Whether *word* is an option; ``-`` is a file, and ``-5 degrees`` a text."""
    return word.startswith("--") or word[:1] == "-" and word[1:2].isalpha()


def _take(verb, option, rest: list, is_joined: bool, found: dict) -> None:
    """Take the value of *option* from *rest* into *found*; the first one *is_joined* to it."""
    if not option.metavar:
        if is_joined:
            raise _wrong(verb, "%s takes no value" % option.name)
        found[option.dest] = True
        return
    values = []
    for what in option.metavar.split():
        is_there = rest and (is_joined or not _is_option(rest[0]))
        if not is_there and what.startswith("[") and what.endswith("]"):
            values.append("")  # the only board
        elif not is_there or not rest[0] and not what.endswith("]"):
            raise _wrong(verb, "%s: expected %s" % (option.name, what))
        else:
            values.append(rest.pop(0))
    value = values[0] if len(values) == 1 else values
    if option.kind == MANY:
        found[option.dest] = (*found.get(option.dest, ()), value)
    else:
        found[option.dest] = _convert(verb, option.name, option.kind, value)


def _convert(verb, name: str, kind, value: str):
    """Return *value* as *kind* says.  Raises ``UsageError``."""
    if not isinstance(kind, tuple):
        return value
    from clawlite.command_words import enquote, nearest, one_of

    if isinstance(kind[0], str):
        if value in kind:
            return value
        said = "%s: expected %s, found %s" % (name, one_of(kind), enquote(value))
        raise _wrong(verb, said, nearest(value, kind))
    least, most = kind
    try:
        number = type(least)(value if len(value) < 19 else "")
    except ValueError:
        number = None
    if number is None or not least <= number or most is not None and number > most:
        what = "number" if isinstance(least, float) else "whole number"
        said = "from %s to %s" % kind if most is not None else "of at least %s" % least
        found = enquote(value)
        raise _wrong(verb, "%s: expected a %s %s, found %s" % (name, what, said, found))
    return number


def _place(verb, plain: list, found: dict) -> None:
    """Give the words *plain* their names in *found*.  Raises ``UsageError``."""
    for word in verb.words.split():
        name = word.strip("[].")
        option = verb.words_by_name.get(name)
        dest = option.dest if option else name.partition("|")[0].lower()
        if word.endswith("..."):
            values, plain = plain, []
            found[dest] = values
            is_missing = not values
        else:
            is_missing = not plain
            value = plain.pop(0) if plain else None
            kind = option.kind if option else None
            found[dest] = value if is_missing else _convert(verb, name, kind, value)
        if is_missing and not word.startswith("["):
            raise _wrong(verb, "expected %s" % name)
    if plain:
        from clawlite.command_words import enquote

        raise _wrong(verb, "unexpected %s" % enquote(plain[0]))


def _wrong(verb, message: str, near: str = "") -> UsageError:
    """Return the error of *verb*, with what was most likely meant, or how it is called."""
    if near:
        return UsageError(verb.name, message, "did you mean %s?" % near)
    from clawlite.command_help import usage

    return UsageError(verb.name, message, usage(verb))


def _unknown_option(verb, name: str) -> UsageError:
    from clawlite.agent_verbs import HIDDEN
    from clawlite.command_words import enquote, nearest

    known = [option.name for option in verb.options if option.place != HIDDEN]
    near = nearest(name, known) or nearest(name, HELP[:1])
    return _wrong(verb, "unknown option %s" % enquote(name)[1:-1], near)

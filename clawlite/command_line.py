"""The parser of the command line, made from the table in verbs.py.

1. The verb is the longest name that the first words spell.  Options may stand anywhere behind it,
   as ``--a=b`` or ``--a b``; behind ``--`` every word is taken as it is.
2. A word that is none of the verb's is never taken for something else: it is refused, with what
   was most likely meant.
3. It imports nothing before something is wrong: ``run``, ``ask`` and ``serve`` pass here before
   they are READY.
"""

from clawlite.core.base.errors import ClawError
from clawlite.verbs import HERE, HIDDEN, MANY, REQUIRED, SAME, THERE, VERBS

HELP = ("--help", "-h")


class UsageError(ClawError):
    """What was typed is no command.  *verb* is the name of the nearest one that is, or ""."""

    def __init__(self, verb: str, message: str, hint: str):
        super().__init__(message, hint)
        self.verb = verb


def find(words: list) -> tuple:
    """Return (``Verb``, the words behind its name).  Raises ``UsageError``: there is none."""
    name, rest = words[0], words[1:]
    if name not in VERBS:
        raise _unknown_verb("", name)
    while rest and not rest[0].startswith("-"):
        longer = "%s %s" % (name, rest[0])
        if longer not in VERBS and longer not in SAME:
            _refuse_misspelt(VERBS[name], rest[0])
            break
        name, rest = SAME.get(longer, longer), rest[1:]
    return VERBS[name], rest


def is_help(words: list) -> bool:
    """Whether *words* ask for help."""
    end = words.index("--") if "--" in words else len(words)
    return any(word in HELP for word in words[:end])


def verbs_below(name: str) -> list:
    """Return the verbs whose names have one word more than *name*."""
    depth = name.count(" ") + 1
    return [
        verb
        for verb in VERBS.values()
        if verb.about and verb.name.startswith(name + " ") and verb.name.count(" ") == depth
    ]


def _refuse_misspelt(verb, word: str) -> None:
    """Raise ``UsageError`` when *word* is most likely the name of a verb below *verb*."""
    import os

    below = [one.name.rpartition(" ")[2] for one in verbs_below(verb.name)]
    if not (verb.run or verb.there):
        raise _unknown_verb(verb.name, word, below)
    takes_path = "MANIFEST" in verb.words or "PROJECT" in verb.words
    if below and takes_path and nearest(word, below) and not os.path.lexists(word):
        raise _unknown_verb(verb.name, word, below)


def _unknown_verb(above: str, word: str, known=()) -> UsageError:
    known = known or [name for name in VERBS if " " not in name]
    near = nearest(word, known)
    name = (above + " " + near).strip()
    message = "there is no command %s" % quoted((above + " " + word).strip())
    if near:
        return UsageError(above, message, "did you mean %s?" % quoted(name))
    if above:
        return UsageError(above, message, "commands: " + ", ".join(known))
    return UsageError(above, message, "all commands: clawlite --help")


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
    is_there = found.get("port") is not None or found.get("folder") is not None
    for option in verb.options:
        is_out = option.place == (HERE if is_there else THERE)
        if option.dest in found and is_out and verb.there:
            said = "it is not for a board" if is_there else "it is for a board: with --port PORT"
            raise _wrong(verb, "%s: %s" % (option.name, said))
        if is_out and verb.there:
            found.pop(option.dest, None)
        elif option.dest not in found:
            if option.kind == REQUIRED:
                raise _wrong(verb, "expected %s %s" % (option.name, option.metavar))
            found[option.dest] = _default(option)
    _place(verb, plain, found)
    return found


def _is_option(word: str) -> bool:
    """Whether *word* is an option; ``-`` is a file, and ``-5 degrees`` a text."""
    return word.startswith("--") or word[:1] == "-" and word[1:2].isalpha()


def _default(option):
    if not option.metavar:
        return False
    return () if option.kind == MANY else option.default


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
        found[option.dest] = _checked(verb, option.name, option.kind, value)


def _checked(verb, name: str, kind, value: str):
    """Return *value* as *kind* says.  Raises ``UsageError``."""
    if not isinstance(kind, tuple):
        return value
    if isinstance(kind[0], str):
        if value in kind:
            return value
        said = "%s: expected %s, found %s" % (name, one_of(kind), quoted(value))
        raise _wrong(verb, said, nearest(value, kind))
    least, most = kind
    try:
        number = type(least)(value if len(value) < 19 else "")
    except ValueError:
        number = None
    if number is None or not least <= number or most is not None and number > most:
        what = "number" if isinstance(least, float) else "whole number"
        said = "from %s to %s" % kind if most is not None else "of at least %s" % least
        found = quoted(value)
        raise _wrong(verb, "%s: expected a %s %s, found %s" % (name, what, said, found))
    return number


def _place(verb, plain: list, found: dict) -> None:
    """Give the words *plain* their names in *found*.  Raises ``UsageError``."""
    for word in verb.words.split():
        name = word.strip("[].")
        option = verb.described.get(name)
        dest = option.dest if option else name.partition("|")[0].lower()
        if word.endswith("..."):
            values, plain = plain, []
            found[dest] = values
            is_missing = not values
        else:
            is_missing = not plain
            value = plain.pop(0) if plain else None
            kind = option.kind if option else None
            found[dest] = value if is_missing else _checked(verb, name, kind, value)
        if is_missing and not word.startswith("["):
            raise _wrong(verb, "expected %s" % name)
    if plain:
        raise _wrong(verb, "unexpected %s" % quoted(plain[0]))


def _unknown_option(verb, name: str) -> UsageError:
    known = [option.name for option in verb.options if option.place != HIDDEN]
    near = nearest(name, known) or nearest(name, HELP[:1])
    return _wrong(verb, "unknown option %s" % quoted(name)[1:-1], near)


def _wrong(verb, message: str, near: str = "") -> UsageError:
    """Return the error of *verb*, with what was most likely meant, or how it is called."""
    if near:
        return UsageError(verb.name, message, "did you mean %s?" % near)
    from clawlite.command_help import usage

    return UsageError(verb.name, message, usage(verb))


def nearest(word: str, known) -> str:
    """Return the nearest of *known* to *word*, or "" when none is near.  Letters that changed
    places always count; else the cut-off grows for short words.
    """
    from difflib import get_close_matches

    bare = {name.lower().strip("-"): name for name in known}
    word = word.lower().strip("-")[:100]
    near = [name for name in bare if len(word) > 1 and sorted(name) == sorted(word)]
    near = near or get_close_matches(word, bare, 1, 0.75 if len(word) < 5 else 0.7)
    return bare[near[0]] if near else ""


def quoted(word: str) -> str:
    """Return *word*, which a stranger may have chosen, on one line in quotes."""
    from clawlite.core.base.printable import escape_line

    return '"%s"' % escape_line(word.encode("utf-8", "backslashreplace").decode(), 60)


def one_of(names) -> str:
    names = list(names)
    return ", ".join(names[:-1]) + " or " + names[-1] if len(names) > 1 else names[0]

"""The words of a command line that name a verb, and what somebody meant who misspelt one."""

from clawlite.command_line import UsageError
from clawlite.verbs import SAME, VERBS


def search(words: list) -> tuple:
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
    message = "there is no command %s" % enquote((above + " " + word).strip())
    if near:
        return UsageError(above, message, "did you mean %s?" % enquote(name))
    if above:
        return UsageError(above, message, "commands: " + ", ".join(known))
    return UsageError(above, message, "all commands: clawlite --help")


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


def enquote(word: str) -> str:
    """Return *word*, which a stranger may have chosen, on one line in quotes."""
    from clawlite.core.base.printable import escape_line

    return '"%s"' % escape_line(word.encode("utf-8", "backslashreplace").decode(), 60)


def one_of(names) -> str:
    names = list(names)
    return ", ".join(names[:-1]) + " or " + names[-1] if len(names) > 1 else names[0]

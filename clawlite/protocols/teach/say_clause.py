"""A clause that wants something said, and no tool: "tell me", "say good night"."""

from clawlite.core.rules import table
from clawlite.protocols.teach.sentence_words import split_words

_VERBS = (
    "tell me, let me know, notify me, warn me, alert me, message me, inform me, send me a message, "
    "tell us, notify, warn, alert, say, sag mir, sag mir bescheid, melde, warne mich, dis-moi, "
    "préviens-moi, avísame, dime"
).split(", ")
_FILLERS = ("that", ":", "about", "it", "the", "so", ",", "bescheid", "how", "what", "is", "value")


def read_saying(clause: str, row: dict, readings: list) -> str:
    """Return what a rule with *row* says for *clause*, "" when it wants something else."""
    words = split_words(clause)
    texts = [word.text for word in words]
    for verb in sorted(_VERBS, key=lambda one: -len(one)):
        count = len(verb.split())
        if texts[:count] == verb.split():
            break
    else:
        return ""
    while count < len(words) and texts[count] in _FILLERS:
        count += 1
    names = [record[table.NAME] for record in readings]
    if count == len(words):
        return describe_beginning(row)
    rest = clause[words[count].start :].strip(" .\"'\u201c\u201d")
    if rest.replace(" ", "_") in names:
        return "%s is {%s}" % (rest, rest.replace(" ", "_"))
    return rest.replace("{", "(").replace("}", ")")


def describe_beginning(row: dict) -> str:
    """Return what has happened when a rule with *row* begins."""
    if "on" in row:
        return "%s is {%s}" % (row["on"], row["on"])
    if "pin" in row:
        edge = {"rise": "is 1 now", "fall": "is 0 now"}.get(row.get("edge", ""), "has changed")
        return "%s %s" % (row["pin"], edge)
    return "it is time"

"""Skills (CKP 0.2.0, 5.5): how several tools do one thing, in the maker's words.

1. Section SKILLS has a row for each; its tool record, ``skill__NAME``, goes through the one
   pipeline, and gives the instruction.
2. A skill is a fence: while it is under way, a turn calls what it names, and nothing else.

skillturn.py says who begins one.
"""

from clawlite.core.base.errors import InvalidParams, ParseError
from clawlite.core.image.image import SKILLS
from clawlite.core.base.render import canonical
from clawlite.core.formats.schema import check

PREFIX = "skill__"
_MANY = 1 << 32
SHAPE = [
    (
        str,
        (_MANY, _MANY),
        [str],
        [None, str],
        [(str, object)],
        object,
        ([None, _MANY], [None, _MANY], [None, _MANY]),
    )
]


class Skill:
    """One row.

    name       str
    text       (offset, length) in PROSE: the instruction, what else a model must know, and "Input:
               " at its end
    names      list of the tools that may be called while it is under way, skills that use no others
               among them
    field      name of the argument that plain text becomes, or None
    defaults   list of [argument, value]
    output     check program of what it comes to, or None
    estimates  [tokens, seconds, tool calls], None for what nobody said
    """

    def __init__(self, row: list):
        self.name, self.text, self.names, self.field, self.defaults, self.output, self.estimates = (
            row
        )

    def given(self, text: str, loads) -> dict:
        """Return the input that a person's *text* means: a JSON object, or the text of
        ``field``.  Raises ``InvalidParams``.
        """
        if not text:
            return {}
        if text[0] == "{":
            try:
                return loads(text.encode())
            except ParseError as e:
                raise InvalidParams("%s: its input is no JSON: %s" % (self.name, e.message))
        if self.field is None:
            raise InvalidParams(
                "%s: expected its input as a JSON object, got text" % self.name,
                'write /%s {"NAME": VALUE, ...}' % self.name,
            )
        return {self.field: text}

    def misses(self, text: str, image, loads):
        """Return what of ``output`` the JSON in *text* does not fit, or None."""
        try:
            return check(self.output, value_of(text, loads), image.automaton, "answer")
        except ParseError as e:
            return "expected JSON: " + e.message


def value_of(text: str, loads):
    """Return the JSON value in *text*, which may stand in a fence of Markdown.  Raises
    ``ParseError``.
    """
    text = text.strip()
    if text.startswith("```") and text.endswith("```") and "\n" in text:
        text = text[text.find("\n") : -3]
    return loads(text.strip().encode())


def skills(image) -> list:
    """Return the rows of the image's skills."""
    rows = image.section(SKILLS) or []
    if image.prepare:  # a shell with room for it
        from clawlite.core.image.header import shaped

        shaped(rows, SHAPE, "the section of skills")
    return rows


def find(image, name: str):
    """Return the ``Skill`` *name*, or None."""
    for row in skills(image):
        if row[0] == name:
            return Skill(row)
    return None


def begun(image, name: str, arguments: dict, result):
    """Return ``result(text, False)``, a ``effect.Result``: the instruction of the skill *name*
    for *arguments*, and the skill.
    """
    skill = find(image, name)
    given = dict(arguments)
    for argument, value in skill.defaults:
        if argument not in given:
            given[argument] = value
    made = result(image.prose(skill.text) + canonical(given), False)
    made.skill = skill
    return made

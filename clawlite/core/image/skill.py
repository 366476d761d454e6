"""Skills (CKP 0.2.0, 5.5): how several tools do one thing, in the maker's words.

1. The section SKILLS has a row for each skill.  Its tool, ``skill__NAME``, is called through the
   same pipeline as all tools, and returns the skill's instruction.
2. A skill restricts its turn: while it is active, the turn may call only the tools that it names.

core/agent/skillturn.py has the turns that a skill begins.
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
    """One skill: a row of the section SKILLS.

    name       str
    text       (offset, length) in PROSE: the instruction, what else a model must know, and "Input:
               " at its end
    names      list of the tools that may be called while the skill is active.  It includes skills
               that use no other tools than those
    field      name of the argument that plain text becomes, or None
    defaults   list of [argument, value]
    output     check program of the final answer (core/formats/schema.py), or None
    estimates  [tokens, seconds, tool calls], each None when the manifest does not give it
    """

    def __init__(self, row: list):
        self.name, self.text, self.names, self.field, self.defaults, self.output, self.estimates = (
            row
        )

    def parse_text(self, text: str, loads) -> dict:
        """Return the arguments in a person's *text*, which is a JSON object, or plain text for the
        argument ``field``.  Raises ``InvalidParams``.
        """
        if not text:
            return {}
        if text[0] == "{":
            try:
                return loads(text.encode())
            except ParseError as e:
                raise InvalidParams(
                    "%s: its input is no JSON: %s" % (self.name, e.message),
                    "give its input as a JSON object",
                )
        if self.field is None:
            raise InvalidParams(
                "%s: expected its input as a JSON object, got text" % self.name,
                'write /%s {"NAME": VALUE, ...}' % self.name,
            )
        return {self.field: text}

    def misses(self, text: str, image, loads):
        """Return why the JSON in *text* does not fit ``output``, or None when it fits."""
        try:
            return check(self.output, value_of(text, loads), image.automaton, "answer")
        except ParseError as e:
            return "expected JSON: " + e.message


def value_of(text: str, loads):
    """Return the JSON value in *text*, which may be a fenced code block of Markdown.  Raises
    ``ParseError``.
    """
    text = text.strip()
    if text.startswith("```") and text.endswith("```") and "\n" in text:
        text = text[text.find("\n") : -3]
    return loads(text.strip().encode())


def skills(image) -> list:
    """Return the rows of the image's skills."""
    rows = image.section(SKILLS) or []
    if image.keep:  # there is room for it
        from clawlite.core.image.header import check_shape

        check_shape(rows, SHAPE, "the section of skills")
    return rows


def find(image, name: str):
    """Return the ``Skill`` *name*, or None."""
    for row in skills(image):
        if row[0] == name:
            return Skill(row)
    return None


def apply(image, name: str, arguments: dict, result):
    """Return the ``effect.Result`` that *result* makes: the instruction of the skill *name*, with
    *arguments* at its end.  Its field ``skill`` is the ``Skill``.
    """
    skill = find(image, name)
    given = dict(arguments)
    for argument, value in skill.defaults:
        if argument not in given:
            given[argument] = value
    made = result(image.prose(skill.text) + canonical(given), False)
    made.skill = skill
    return made

"""Turns that a skill begins (CKP 0.2.0, 5.5): for a person's ``/NAME``, and for a composite tool,
which has a history of its own.
"""

from clawlite.core.base.effect import SAY, Result
from clawlite.core.base.errors import ClawError, InvalidParams, ParseError
from clawlite.core.turns.history import History
from clawlite.core.image.image import HANDLER_NAME
from clawlite.core.image.skill import PREFIX, apply, find, skills, value_of
from clawlite.core.turns.gates import PERSON
from clawlite.core.turns.tools import call
from clawlite.core.turns.turn import turn


def parse(image, text: str):
    """Return (``Skill``, its input as text) for a person's line that begins with "/"; None when it
    names no skill.

    Raises ``InvalidParams`` for ``/skill`` with an unknown name.
    """
    name, _, rest = text[1:].partition(" ")
    explicit = name == "skill"
    if explicit:
        name, _, rest = rest.strip().partition(" ")
    skill = find(image, name)
    if skill is None and explicit:
        raise InvalidParams(
            "there is no skill %s" % name[:60] if name else "expected /skill NAME",
            "this agent has: %s" % (", ".join([row[0] for row in skills(image)]) or "none"),
        )
    return None if skill is None else (skill, rest.strip())


def begin(setup, asked: tuple, chain, history, run=None, person: str = PERSON):
    """Begin a turn with a person's skill: a generator of effects that returns the result of
    ``turn``.

    asked   the result of ``parse``
    run     runs the calls of the turn (``turn``)
    person  PERSON, with a name when several people write
    """
    skill, text = asked
    result = yield from call(
        setup, PREFIX + skill.name, skill.parse_text(text, chain.loads), person
    )
    return (yield from turn(setup, result.text, chain, history, run, skill))


def alone(setup, tool, arguments: dict, chain):
    """The turn of a composite *tool*, which shows nothing: a generator of effects.

    Returns its last text, or the JSON value in it when a schema asks for JSON.
    """
    history = History(0)
    result = apply(setup.image, tool.handler[HANDLER_NAME], arguments, Result)
    history.is_nested = True
    work = turn(setup, result.text, chain, history, None, result.skill)
    try:
        effect = work.send(None)
        while True:
            try:
                value = None if effect[0] == SAY else (yield effect)
            except ClawError as e:  # a person said no
                effect = work.throw(e)
            else:
                effect = work.send(value)
    except StopIteration:
        pass
    finally:
        work.close()
    text = history.turn[-1].text
    if result.skill.output is None and tool.output is None:
        return text
    try:
        return value_of(text, chain.loads)
    except ParseError as e:
        raise ClawError(
            "its skill was to end with JSON: " + e.message,
            "mend the instruction of the skill, or its output_schema",
        )

"""Calls of managed tools that a server hands on as text, where the settings of its provider let
such calls run (core/turns/text_call.py).  Calls of the runner's own tools stay text.
"""

from clawlite.core.providers.answer_prefix import AnswerPrefix
from clawlite.core.turns.text_call import read


class _Tools:
    """The managed tools of one runner, as ``read`` finds them."""

    def __init__(self, image, tools: list):
        self._image, self._names = image, {tool.name for tool in tools}
        self.automaton = image.automaton

    def tool(self, name: str):
        found = self._image.tool(name)
        return found if found is not None and found.name in self._names else None


def with_text_calls(dialect, answer: dict, provider, image, tools: list) -> dict:
    """Return *answer*, of *provider*, with the calls that its text is; else as it is.

    image  of the runner's agent;  tools: list of ``dialect.Tool``
    """
    if provider.codec.change("text_calls") is None or not dialect.is_text(answer):
        return answer
    lead = AnswerPrefix()  # a thought before it is no part of it
    text = lead.add(dialect.text(answer)) + lead.rest()
    calls, _ = read(text, provider.codec, _Tools(image, tools))
    if not calls:
        return answer
    aliases = {tool.name: tool.alias for tool in tools}
    return dialect.with_calls(answer, [(aliases[name], value) for _, name, value, _ in calls])

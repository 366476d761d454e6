"""The agent loop: one message of a person, to its final reply.

    context -> (ASK) -> text and tool calls -> each call through the one pipeline -> results -> next round

A generator of effects.  It ends with the provider's text, with a budget, or with an error that says why.
"""
from clawlite.core.effect import ASK, SAY
from clawlite.core.errors import ClawError, Denied, ProviderError
from clawlite.core.render import canonical
from clawlite.core.tools import call

MAX_CALLS = 16                  # tool calls in one round


class Reply:
    """What a provider says in one round.

    text    str, shown at once; may be empty
    calls   list of (tool name, arguments); empty ends the turn
    """

    def __init__(self, text: str, calls: list):
        self.text = text
        self.calls = calls


class Message:
    """One message of a turn, as providers see it.

    role      "user", "assistant" or "tool"
    text      str
    tool      name of the tool, for role "tool"
    result    ``tools.Result``, or the error that refused the call, for role "tool"
    """

    def __init__(self, role: str, text: str, tool: str = None, result=None):
        self.role = role
        self.text = text
        self.tool = tool
        self.result = result


def turn(image, text: str):
    """Run one turn; a generator of effects that returns True when no tool call was refused.

    Raises ``ProviderError`` when the provider cannot go on.  Budget: ``agent.max_rounds`` rounds, 16 calls in each.
    """
    messages = [Message("user", text)]
    clean = True
    for _ in range(image.agent.max_rounds):
        reply = yield (ASK, messages)
        if reply.text:
            yield (SAY, reply.text)
        messages.append(Message("assistant", reply.text))
        if not reply.calls:
            return clean
        if len(reply.calls) > MAX_CALLS:
            raise ProviderError("the provider asked for %d tool calls at once, expected at most %d" % (len(reply.calls), MAX_CALLS))
        for name, arguments in reply.calls:
            try:
                result = yield from call(image, name, arguments, "provider")
                said = result.text
            except ClawError as e:
                result = e
                said = e.message
                clean = clean and not isinstance(e, Denied)
            messages.append(Message("tool", said, name if isinstance(name, str) else canonical(name, 40), result))
    yield (SAY, "Stopped after %d rounds without an end." % image.agent.max_rounds)
    return clean

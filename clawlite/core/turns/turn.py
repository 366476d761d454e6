"""The agent loop: from one message of a person to the final reply.

    context -> providers (core/providers/provider_order.py) -> text and tool calls -> each call
    through the one pipeline -> next round

A generator of effects.  It ends with the provider's text, or, when the budget is used up or no
provider can go on, with an error that says why."""

from clawlite.core.base.dialect import const
from clawlite.core.base.effect import LOG, SAY
from clawlite.core.base.errors import (
    ClawError,
    Denied,
    InvalidParams,
    InvalidRequest,
    ProviderError,
)
from clawlite.core.base.render import canonical
from clawlite.core.turns.tools import call

MAX_CALLS = 16  # tool calls in one round
_ID = const(0)  # of a call
_TOOL = const(1)
_ENDS = {
    "length": "The answer ends here: it reached its greatest length.",
    "cut": "The answer ends here: the provider cut it.",
    "refused": "The provider declined to answer.",
}
_NAME = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"


class Reply:
    """A provider's answer of one round.

    text   str, may be empty
    calls  list of (id, tool name, arguments, raw); empty ends the turn.  id and raw are what a
           remote provider sent, "" from the others; arguments are None when raw is not JSON
    shown  bool, the text has already been shown, piece by piece
    stop   why a remote provider stopped (``wire.Answer``); "abstains" when no rule fits; or ""
    owner, opaque  as those of a ``Message``
    note   dict for the log, or None
    """

    note = None

    def __init__(
        self,
        text: str,
        calls: list,
        shown: bool = False,
        stop: str = "",
        owner: str = "",
        opaque: list | tuple = (),
    ):
        self.text = text
        self.calls = calls
        self.shown = shown
        self.stop = stop
        self.owner = owner
        self.opaque = opaque


class Message:
    """One message of a conversation, as providers see it.

    role    "user", "assistant" or "tool"
    text    str
    calls   of an assistant: list of (id, tool name, raw); ids are never empty; raw is the text of
            the arguments as it was sent
    id      of a tool: the id of the call that it answers
    tool    of a tool: its name
    result  of a tool: ``effect.Result``, or the error that refused the call
    owner   of an assistant: ``Provider.key`` of the one that wrote it, or ""
    opaque  of an assistant: list of (place, JSON text), which only its owner understands and gets
            back (``opaque.py``); place: number of a call, or -1 for the message
    """

    def __init__(
        self,
        role: str,
        text: str,
        calls: list | tuple = (),
        id: str = "",
        tool: str = "",
        result=None,
        owner: str = "",
        opaque: list | tuple = (),
    ):
        self.role = role
        self.text = text
        self.calls = calls
        self.id = id
        self.tool = tool
        self.result = result
        self.owner = owner
        self.opaque = opaque

    def copy(self, text: str, calls: list):
        """Return a message like this one, with other *text* and *calls*."""
        return Message(
            self.role, text, calls, self.id, self.tool, self.result, self.owner, self.opaque
        )


def turn(setup, text: str, chain, history, run=None, skill=None):
    """Run one turn; a generator of effects that returns True when no tool call was refused.

    setup    ``agent_setup.Setup``
    chain    ``ProviderOrder``
    history  ``history.History``; this turn is added to it
    run      a function that runs one tool call like ``tools.call``, which is used when it is None:
             a channel has its own, with another caller
    skill    ``skill.Skill`` that begins the turn: *text* is its instruction, with an input that has
             been scanned; or None
    Raises ``ProviderError`` when no provider can go on, or the budget is used up.  Budget:
    ``agent.max_rounds`` rounds, 16 calls in each."""
    if setup.guard is not None and skill is None:
        text = setup.guard.message(text)
    image = setup.image
    if setup.teach is not None and skill is None:
        run = setup.teach.watch(run or call, history)
    history.begin(Message("user", text))
    messages = history.turn
    clean, within, again, cut = True, skill, False, False
    for _ in range(image.agent.max_rounds):
        reply = yield from chain.ask(history)
        if reply.note:
            yield (LOG, reply.note)
        if reply.stop == "refused":
            history.is_void = True  # with this turn in them, later requests would be refused, too
            reply.calls = []
        end = (SAY, reply.text) if reply.text and not reply.shown else None
        if end and (reply.calls or not history.is_kept or skill is not None):
            end = yield end
        if len(reply.calls) > MAX_CALLS:
            raise ProviderError(
                "the provider asked for %d tool calls at once, expected at most %d"
                % (len(reply.calls), MAX_CALLS),
                "ask for less at once, or use another model",
            )
        asked = [
            (id or history.new_id(), _plain(name), raw or canonical(arguments))
            for id, name, arguments, raw in reply.calls
        ]
        opaque = reply.opaque if asked else ()
        messages.append(Message("assistant", reply.text, asked, owner=reply.owner, opaque=opaque))
        if asked and reply.stop in ("length", "cut"):
            _refuse_cut(asked, messages)
            if cut:
                raise ProviderError(
                    "the answer was cut twice before its tool calls were whole; none of them ran",
                    "ask for less at once, or raise the limits of tokens of the provider",
                )
            cut = True
            continue
        if not asked:
            if reply.stop in _ENDS or reply.stop and not reply.text:
                if end:
                    end = yield end
                yield (SAY, _ENDS.get(reply.stop, "The provider said nothing."))
            wrong = (
                skill.misses(reply.text, image, chain.loads)
                if skill is not None and skill.output is not None
                else None
            )
            if wrong is None:
                # a person reads the end of an answer when it is stored (conversation.keep)
                history.end = end
                return clean
            if again:
                raise ProviderError(
                    "the answer is not what the output_schema of the skill %s "
                    "allows: %s" % (skill.name, wrong),
                    "mend the instruction of the skill, or its output_schema",
                )
            again = True  # only once: the person sees how that ends
            messages.append(
                Message("user", "That does not fit: %s. Answer again, with the JSON alone." % wrong)
            )
            continue
        done, within = yield from _call(setup, reply.calls, asked, messages, run, within)
        clean = done and clean
    raise ProviderError(
        "the turn ended after %d rounds without an answer" % image.agent.max_rounds,
        "ask for less at once",
    )


def _refuse_cut(asked: list, messages: list):
    """Add to *messages* the results of calls in an answer that was cut: none of them ran, because
    arguments that are missing cannot be told from those that were meant.
    """
    for id, name, _ in asked:
        error = InvalidRequest("it did not run: the answer was cut before its calls were whole")
        messages.append(Message("tool", error.message, (), id, name, error))


def _call(setup, calls: list, asked: list, messages: list, run, within):
    """Run *calls* and add their results to *messages*; a generator that returns (True when no call
    was refused, the active skill or None).

    Each call gets a result, however this ends, even when Ctrl-C closes the generator: providers
    refuse a conversation in which a call has none."""
    clean, answered = True, 0
    try:
        for _, name, arguments, raw in calls:
            try:
                if arguments is None:
                    raise InvalidParams(
                        "%s: the arguments are not a JSON object, or nest too deep: %s"
                        % (canonical(name, 40), canonical(raw, 80))
                    )
                result = yield from (run or call)(
                    setup, name, arguments, "provider", None, None, within
                )
                within = within or result.skill
                said = result.text
                if result.original_bytes:
                    said += "\n[truncated: true, original_bytes: %d]" % result.original_bytes
            except ClawError as e:
                result = e
                said = e.message
                clean = clean and not isinstance(e, Denied)
            messages.append(
                Message("tool", said, (), asked[answered][_ID], asked[answered][_TOOL], result)
            )
            answered += 1
    finally:
        for id, name, _ in asked[answered:]:
            ended = InvalidRequest("the turn ended before this call gave a result")
            messages.append(Message("tool", ended.message, (), id, name, ended))
    return clean, within


def _plain(name) -> str:
    """Return a tool's name in a form that providers accept in a conversation.  A model can make up
    a name that they refuse, and then they would refuse every later request, too.
    """
    name = name.replace(".", "__", 1) if isinstance(name, str) else canonical(name, 40)
    # Bytes: MicroPython interns every character that a loop over text visits, and never frees it.
    return str(
        bytes([b if b in _NAME else 95 for b in name[:64].encode() if b & 0xC0 != 0x80]), "utf-8"
    )

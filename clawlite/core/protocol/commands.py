"""The console's commands.  A person uses them rarely, so they are in a module of their own, which a
board drops afterwards.

Each command answers with lines and changes nothing; ``/quit`` is handled by the console itself.
Strangers' words may stand in them: ``Console._say`` makes each of them one line.
"""

from clawlite.core.base.dialect import const
from clawlite.core.image.image import SKILLS
from clawlite.core.base.printable import escape_name
from clawlite.core.base.render import canonical

HELP = """Type a message to the agent, or:
  /tools    what it can do, and what its policy says before any argument is known
  /skills   what it knows how to do step by step; /NAME begins one: /NAME text, or /NAME {"name": value}
  /trace    its last tool call, and why policy decided so; /trace 2 the one before, and so on
  /show     all of a call that waits for an answer, or of the last one; /show 2 the one before
  /memory   what it remembers of this conversation
  /status   its state and limits
  /new      begin a new conversation: what was said before is not seen again
  /quit     leave (so does Ctrl-D); Ctrl-C ends a turn"""  # noqa: E501

_NAME = const(0)  # of a row of the remote providers
_HOST = const(3)
_PORT = const(4)
_MODEL = const(6)


def run(text: str, agent, history) -> list:
    """Return the answer to the command *text*: lists of lines, which are said one after another.

    text     begins with "/"
    agent    ``agent.Agent``
    history  ``history.History`` of the console, or None before its first turn
    """
    words = text.split()
    name = words[0]
    if name == "/help":
        return [HELP.split("\n")] + _of_parts(words, agent)
    if name == "/tools":
        return _tools(agent.image)
    if name == "/skills" or name == "/skill":
        # without skills a board does not have that code
        return (
            _skills(agent.image) if agent.image.size_of(SKILLS) else [["This agent has no skills."]]
        )
    if name == "/trace" or name == "/show":
        # without a call a board does not load the code that explains one
        if not agent.calls and (name == "/trace" or words[1:] or not agent.waiting):
            return [["No tool has been called yet."]]
        from clawlite.core.policy.trace import show, trace

        if name == "/trace":
            return [trace(agent, words[1:]).split("\n")]
        return [[line] for line in show(agent, words[1:])]
    if name == "/memory":
        return [[line] for line in _memory(agent, history)]
    if name == "/status":
        about = agent.image.agent
        lines = [
            "%s, level %d, %d tools, %s, at most %d rounds a turn"
            % (
                agent.lifecycle.state,
                about.level,
                len(agent.image.names),
                "sandbox " + about.sandbox if about.sandbox else "no sandbox",
                about.max_rounds,
            ),
            _providers(agent),
        ] + [tell() for tell in agent.setup.conditions]
        return [[line] for line in lines]
    return _of_parts(words, agent) or [
        ["No command %s.%s /help lists them." % (canonical(name, 40), _near(name, agent))]
    ]


def _of_parts(words: list, agent) -> list:
    """Return what the parts of a shell answer to a command, /help too."""
    said = []
    for command in agent.commands:
        for text in command(words) or ():
            said.append(text.split("\n"))
    return said


def _providers(agent) -> str:
    """Return which providers are asked, in order, and how much they have used since the start."""
    said = []
    for number in agent.image.agent.providers:
        if number > 1:
            row = agent.image.provider(number - 2)
            said.append("%s (%s at %s port %d)" % (row[_NAME], row[_MODEL], row[_HOST], row[_PORT]))
        else:
            said.insert(
                0 if number < 0 else len(said), "the rules" if number < 1 else "a recording"
            )
    text = "asks " + ", then ".join(said)
    meter = agent.setup.meter
    return text + (
        "; %d tokens read, %d written since it began" % tuple(meter.tokens)
        if meter and meter.tokens
        else ""
    )


def _near(word: str, agent) -> str:
    """Return " Did you mean /trace?" for the first command or skill that begins with *word*, or
    differs from it by one typing error, else "".
    """
    names = ["/" + name for name in "help tools skills trace show memory status new quit".split()]
    for lines in _of_parts(["/help"], agent):
        names += [line.split()[0] for line in lines]
    if agent.image.size_of(SKILLS):
        from clawlite.core.image.skill import Skill, skills

        names += ["/" + Skill(row).name for row in skills(agent.image)]
    word = word.lower()
    for name in names:
        at = 0
        while at < len(word) and at < len(name) and word[at] == name[at]:
            at += 1
        rest, other = word[at:], name[at:]
        swapped = rest[2:] == other[2:] and sorted(rest[:2]) == sorted(other[:2])
        begins = not rest and at > 2
        if begins or swapped or rest in (other, other[1:]) or rest[1:] in (other, other[1:]):
            return " Did you mean %s?" % name
    return ""


def _tools(image) -> list:
    if not image.names:
        return [["This agent has no tools."]]
    from clawlite.core.policy.policy_preview import preview

    said = []
    for name in image.names:
        tool = image.tool(name)
        about = " ".join(image.prose(tool.about).split())  # of a server, perhaps
        said.append(["%-20s %s" % (escape_name(name), preview(image, tool)), "  " + about])
    return said


def _skills(image) -> list:
    from clawlite.core.image.skill import PREFIX, Skill, skills

    said = []
    for row in skills(image):
        skill = Skill(row)
        about = [
            words % number
            for words, number in zip(("%d tokens", "%d s", "%d tool calls"), skill.estimates)
            if number is not None
        ]
        words = " ".join(image.prose(image.tool(PREFIX + skill.name).about).split())
        uses = "  uses " + ", ".join(skill.names)
        if about:
            uses += "; about " + ", ".join(about)
        said.append(["/%-19s %s" % (skill.name, words), uses])
    return said


def _memory(agent, history) -> list:
    """Return lines about the declared stores, and about the conversation that providers see."""
    said = (
        agent.setup.memories().about()
        if agent.setup.memories
        else ["This agent declares no memory: nothing that it is told survives the session."]
    )
    if not agent.setup.keep_bytes:
        return said + ["Its providers answer each message by itself: no earlier turn is kept."]
    turns = size = 0
    for message in history.context()[len(history.preface) :] if history else ():
        turns += message.role == "user"
        size += len(message.text.encode())
        for _, called, raw in message.calls:
            size += len(called) + len(raw.encode())
    return said + [
        "Its providers see this conversation again: %d turn%s, %d bytes of text; above "
        "%d bytes the oldest are forgotten."
        % (turns, "" if turns == 1 else "s", size, agent.setup.keep_bytes)
    ]

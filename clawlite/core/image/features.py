"""What an image may ask of the machine that runs it, as the compiler and the Linux shell must agree
on it: abilities, and the kinds of channels (CKP 0.2.0, 5.3).

A new kind of channel is one row here, one module in host/channels, which compiles it, and one in
linux/channels, which speaks it.  No board has channels, so none loads this.
"""


class Kind:
    """One kind of channel; its number in images is its place in ``KINDS``.

    type      what a Channel's ``type`` says
    ability   what an image asks of a machine; also the module of linux/channels, and the section of
              clawlite.toml
    triggers  bool, its messages are events: each begins a run of its own, without a conversation
    carries   bool, the tool ``message`` may write to it
    """

    def __init__(self, type: str, ability: str, triggers: bool, carries: bool):
        self.type, self.ability, self.triggers, self.carries = type, ability, triggers, carries


KINDS = (  # images have the numbers: a new one goes to the end
    Kind("cli", "access", False, True),
    Kind("cron", "cron", True, False),
    Kind("webhook", "webhook", False, False),
    Kind("telegram", "telegram", False, True),
    Kind("queue", "mqtt", True, True),
)
CLI = 0  # the console, which has no source of its own

# what Linux has, sorted; a board's loader.py says what a board has
LINUX = tuple(
    sorted(
        "audit buses encryption files gateway guard guard-model http https lan log mcp mediated "
        "memory messages pins process reflex replay services shell swarm telemetry tools tools.py "
        "web".split()
        + [kind.ability for kind in KINDS]
    )
)
ON_BOARDS_ALONE = ("mediated-line",)

"""An agent that people teach: its image is real, its clock and tools are the test's
(``rules_world.World``), and a person is at its console.
"""

from rules_world import READING, World

from clawlite.core.protocol.console import Console
from clawlite.core.teach.draft import TEACH
from clawlite.linux.rules.lessons import Lessons
from clawlite.protocols.teach.clause import propose
from clawlite.protocols.teach.reader import ALL

PATTERNS = """
[[rule]]
when = ["water * {seconds:int} [seconds|s]"]
call = "water"
arguments = { seconds = "{seconds}" }

[[rule]]
when = ["water", "water the plants"]
call = "water"
arguments = { seconds = 3 }
"""


class Pupil(World):
    """One agent, and what a person says to it; *reads*: see ``Lessons``."""

    reads = ALL

    def __init__(self, folder, rules: str = READING + PATTERNS, policy=None, **more):
        super().__init__(folder, rules, policy, **more)

    def start(self):
        super().start()
        image = self.agent.image
        limits = image.section(TEACH)

        def suggest(clause: str):
            return propose(clause, image, limits and limits[0])

        lessons = Lessons(image, lambda: self.rules, suggest, self.reads)
        self.agent.setup.teach = self.lessons = lessons
        self.console = Console(self.agent)
        self.group = self.commands

    def say(self, *lines) -> str:
        """Type *lines*; return what the agent has said to them."""
        before = len(self.told)
        for line in lines:
            self.console.line(line, self.ms)
            self.settle()
            self.poll()
        return "\n".join(self.told[before:])

    def rows(self) -> list:
        """Return the rows of what was taught."""
        taught = self.rules.taught
        return [entry["row"] for entry in taught.entries] if taught else []

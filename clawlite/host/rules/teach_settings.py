"""[teach] of clawlite.toml (docs/rules.md)."""

from clawlite.core.teach.draft import read_at_most
from clawlite.host.base.problems import enquote
from clawlite.host.models.common import Strict, Text


class Teach(Strict):
    """What rules may that people teach by talking: call *tools* alone, and run *at_most* so often
    each (docs/rules.md).
    """

    tools: list[Text] | None = None
    at_most: Text | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        text = value.get("at_most", "1/day")
        if isinstance(text, str) and read_at_most(text) is None:
            wanted = 'a number for each minute, hour, day or week, such as "2/day"'
            report(("at_most",), "", wanted, enquote(text))

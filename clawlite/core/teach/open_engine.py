"""The engine of an agent that is taught rules: they come and go while it runs."""

from clawlite.core.rules import table
from clawlite.core.rules.engine import Engine, Rule


class OpenEngine(Engine):
    """An engine whose rules come and go."""

    def add(self, record: list, times):
        """Let a rule begin from now on."""
        rule = Rule(record)
        self.rules.append(rule)
        if rule.kind == table.EVERY:
            rule.due_ms = times.up_ms + self._rest_ms(rule, times)

    def remove(self, name: str):
        """Forget a rule, and what is on record of it."""
        self.rules = [rule for rule in self.rules if rule.name != name]
        self.state["rules"].pop(name, None)
        self._keep(2)

    def end(self, run, status: str, text: str, times):
        if self.find(run.name) is not None:
            super().end(run, status, text, times)
        elif self.active is run:  # it was forgotten while it ran
            self.active = None

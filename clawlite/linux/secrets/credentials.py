"""Secrets that tools use (clawlite.toml, ``[[credentials]]``): on the wire for the host that they
belong to, or in the environment or in a file of the tools that declare them, and nowhere else.
Each is read when it is used, and the search for leaks then learns its value."""

from clawlite.linux.secrets.secrets import Renewal, resolve, set_secret, stores


class Credentials:
    """The credentials of one agent.

    records  [[name, [tool, ...], [host, ...], header, format], ...]
    agent    name of the agent
    guard    ``guard.Guard``, which learns each value, or None
    """

    def __init__(self, records: list, agent: str, guard):
        self._records = records
        self._agent, self._guard = agent, guard

    def injections(self) -> list:
        """Return what ``fetch.Fetcher.start`` takes: [(host, header, function() -> value), ...]."""
        return [
            (host, header, lambda name=name, form=form: form.replace("{}", self.value(name)))
            for name, _, hosts, header, form in self._records
            for host in hosts
        ]

    def values(self, tool: str) -> dict:
        """Return {name: value} of what *tool* gets, as variables or as files.  Raises
        ``SecretError``.
        """
        return {name: self.value(name) for name, tools, _, _, _ in self._records if tool in tools}

    def value(self, name: str) -> str:
        """Return the secret *name*.  Raises ``SecretError``."""
        value = resolve(name, stores(self._agent))
        self.learn(value)
        return value

    def keep(self, name: str, value: str):
        """Keep *value* as the secret *name* of the agent's own store.  Raises ``ClawError``,
        ``OSError``.
        """
        set_secret(self._agent, name, value)

    def renewal(self, name: str) -> Renewal:
        """Return the lock of the process that replaces the secret *name*."""
        return Renewal(self._agent, name)

    def learn(self, value: str):
        """Tell *value* to the search for leaks."""
        if self._guard is not None:
            self._guard.learn(value)

"""Stores that the agents of a swarm share, and an operator who uses them."""

MEMORY = """\
  memory:
    inline:
      stores:
        - { name: own, type: key-value }
        - { name: notes, type: key-value, isolation: shared }
        - { name: said, type: semantic, isolation: shared, retention: { max_entries: 50 } }
"""
UUID = "d0a00000-0000-4000-8000-%012d"


def keep(agent, store: str, number: int, **entry) -> dict:
    params = {"store": store, "entries": [entry], "context": {"request_id": UUID % number}}
    return agent.call("claw.memory.store", params, number)["result"]


def found(agent, store: str, number: int, **query) -> list:
    params = {"store": store, "query": query}
    entries = agent.call("claw.memory.query", params, number)["result"]["entries"]
    return [entry["content"] for entry in entries]

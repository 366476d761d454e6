"""The boards of this machine's gateway, as its file of what was there says."""

import os
from urllib.parse import quote

from clawlite.core.base.clock import iso8601
from clawlite.host.page.known_people import GATEWAY


def find_boards(root: str) -> list[dict]:
    """Return the boards that the gateway has seen, by name: board, agent, seen (a time)."""
    import sqlite3  # only for people of a gateway

    path = os.path.join(root, GATEWAY, "gateway.db")
    if not os.path.exists(path):
        return []
    try:
        connection = sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=1)
        try:
            rows = connection.execute("SELECT name, agent, last_s FROM devices ORDER BY name")
            return [
                {"board": board, "agent": agent, "seen": iso8601(int(last_s))}
                for board, agent, last_s in rows.fetchmany(1000)
            ]
        finally:
            connection.close()
    except sqlite3.Error:  # it is being made
        return []

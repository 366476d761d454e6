"""The boards of this machine's gateway, as its file of what was there says."""

import os
from urllib.parse import quote

from clawlite.core.base.clock import iso8601
from clawlite.host.gateway_operators.board_names import file_name
from clawlite.host.page.agent_line import AgentGone
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


def find_absence(root: str, name: str) -> AgentGone:
    """Return the error for the board that has the folder *name*, and cannot be reached: it says
    since when.
    """
    known = next((one for one in find_boards(root) if file_name(one["board"]) == name), None)
    if known is None:
        return AgentGone(f"{name}: the gateway has seen no such board", "choose another one")
    hint = "look at its power and its line, and whether the gateway runs"
    return AgentGone(tell_absence(known), hint)


def tell_absence(board: dict) -> str:
    """Return the sentence that says since when *board*, a row of ``find_boards``, is away."""
    return f"{board['board']}: the board is not connected; it was there last at {board['seen']}"

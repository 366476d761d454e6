"""The methods of CKP (0.2.0, 9.3): one row for each, by which a session decides on a request.

The columns of a row are separated by spaces:

    method      without "claw."
    taken       when a session accepts it (below)
    needs       what the image must declare: "tools" or "memory", or "-"
    key         the parameter that identifies a request: one that is repeated runs once; "-": each
                request runs
    clauses     the section of the specification, and of tests/ckp/clauses.toml; "-": it is our own
    parameters  the other parameters; one that may be left out has a "?"

1. ``own`` has the methods of every session.  A group of a ``GroupSession`` has rows of its own,
   beside the code that answers them.  Tests compare each row with what a session does in each state
   and with each parameter, with the clauses, and with docs/methods.md.
2. A session reads the first three columns.  A board has only those (host/firmware/firmware.py), and
   loads them when such a method comes.
"""

# At any time; once a claw.initialize was answered, even with an error; once one succeeded; and as
# the last, while the agent is READY.  A session compares names that a board has already.
FIRST, START, OPEN, READY = "first", "start", "open", "ready"
NEVER = "-"  # a notification: it is not accepted as a request


def find(method: str, rows: str = "") -> list:
    """Return the columns of *method*, [] when it is not there.

    method  as in the request, of any length
    rows    those of a group, or "" for those of every session; one in each line, after an empty one
    """
    rows, name = rows or own(), method[5:]
    at = rows.find("\n" + name + " ")  # no list of all rows: memory is short on a board
    if at < 0 or method[:5] != "claw.":
        return []
    row = rows[at + 1 : rows.find("\n", at + 1)].split()
    return row if row[0] == name else []  # a name with a space may match the start of a row


def own() -> str:
    """Return the rows of ``session.Session``."""
    return """
initialize      first  -       -                   9.3.1  protocolVersion clientInfo manifest \
capabilities
initialized     -      -       -                   9.3.1
status          start  -       -                   9.3.1
heartbeat       -      -       -                   9.3.1  state uptime_ms timestamp
shutdown        open   -       -                   9.3.1  reason? timeout_ms?
tool.call       ready  tools   context.request_id  9.3.2  name arguments context actor?
tool.approve    ready  tools   -                   9.3.2  request_id reason? actor? content?
tool.deny       ready  tools   -                   9.3.2  request_id reason? actor?
memory.query    ready  memory  -                   9.3.4  store query context?
memory.store    ready  memory  context.request_id  9.3.4  store entries context
memory.compact  ready  memory  -                   9.3.4  store context?
"""

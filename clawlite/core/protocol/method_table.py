"""The methods of CKP (0.2.0, 9.3): one row for each, by which a session decides whom it answers.

A row has, between spaces:

    method      without "claw."
    taken       when a session takes it (below)
    needs       what the image must declare: "tools" or "memory", or "-"
    key         the parameter by which a request that came twice runs once; "-": each one runs
    clauses     the section of the specification, and of tests/ckp/clauses.toml; "-": it is our own
    parameters  the others; one that may be left out has a "?"

1. ``own`` has the methods of every session.  A group of a ``GroupSession`` has rows of its own,
   beside what answers them.  Tests hold each row to what a session does in each state and with
   each parameter, to the clauses, and to docs/methods.md.
2. A session reads the first three columns.  A board has no others (host/firmware/firmware.py), and
   loads these when such a method comes.
"""

# At any time; once a claw.initialize was answered, whatever the answer; once one succeeded; and
# while the agent is READY, too.  Those that a session compares are names that a board has already.
FIRST, START, OPEN, READY = "first", "start", "open", "ready"
NEVER = "-"  # a notification, which no request is


def find(method: str, rows: str = "") -> list:
    """Return the columns of *method*, [] when it is not there.

    method  as a request has it, of any length
    rows    those of a group, else those of every session; each in a line, after an empty one
    """
    rows, name = rows or own(), method[5:]
    at = rows.find("\n" + name + " ")  # a list of all would be in the way where memory is short
    if at < 0 or method[:5] != "claw.":
        return []
    row = rows[at + 1 : rows.find("\n", at + 1)].split()
    return row if row[0] == name else []  # a name with a space may begin a row, too


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

"""What tasks of a swarm have reserved of its limits (CKP 5.9 ``resource_limits``): a table of the
bus, so that all processes see the same.

    process ""      the share of a part: what of it is not used yet
    any process     the request that it sends for the task, or sent when it ended

1. What is used and what is reserved are never more than a limit, together.  Requests of a task use
   its share up first, so it reserves the greater of the two.
2. Parts that may run at the same time share evenly what the task above them has.  A part whose
   share is too small may take of what nobody has reserved.
3. A task that the turn of another one (its caller) delegates has no share.  It uses the share of
   the caller, which waits meanwhile.
4. A process that was killed may have used what its request reserved.  That is given back when its
   task ends, as the rest of a share is: to the task above.

Every function runs inside a transaction of the bus.  Limits: [tokens, nano-dollars], None where
there is none.
"""

from clawlite.protocols.swarm.swarm import RUNNING, WAITING

SCHEMA = """
create table if not exists reserved (
    task text, process text, root text, tokens int, nano int, primary key (task, process));
create index if not exists reserved_by_root on reserved (root);
create table if not exists accounts (task text primary key, account text);
"""
_KINDS = ("tokens", "nano")
_OPEN = "select id from tasks where state in ('%s', '%s')" % (WAITING, RUNNING)


def root_of(db, task: str) -> str:
    """Return the id of the task that somebody gave to the swarm, of which *task* is a part."""
    row = db.execute("select root from tasks where id = ?", (task,)).fetchone()
    return row[0] if row else task


def account_of(db, task: str) -> str:
    """Return the id of the task whose share *task* uses: its caller, or else *task* itself."""
    row = db.execute("select account from accounts where task = ?", (task,)).fetchone()
    return row[0] if row else task


def share(db, task: str, caller: str):
    """Let *task*, which the turn of *caller* delegates, use the share of *caller*."""
    db.execute("insert or ignore into accounts values (?, ?)", (task, account_of(db, caller)))


def forget(db, task: str):
    """Forget that a turn has delegated *task*."""
    db.execute("delete from asks where task = ?", (task,))
    db.execute("delete from accounts where task = ?", (task,))


def is_known(db, task: str) -> bool:
    """Return whether *task* is there, or will be: it has a share already."""
    known = "select 1 from tasks where id = ? union select 1 from reserved where task = ?"
    return db.execute(known, (task, task)).fetchone() is not None


def budget(db, task: str, process: str) -> list:
    """Return [(used, reserved, own), ...] of tokens and of nano-dollars: what the whole task has
    used, what is reserved of it, and what of that is a share that *process* may use for *task*.
    The last request of *process* for *task* is over, and not counted.
    """
    root, account = root_of(db, task), account_of(db, task)
    used = db.execute("select tokens, nano from used where root = ?", (root,)).fetchone() or (0, 0)
    found = []
    for amount, kind in zip(used, _KINDS, strict=True):
        reserved = own = 0
        for of, share, held in db.execute(
            "select coalesce(account, reserved.task) as payer, sum({0} * (process = '')), "
            "sum({0} * (process != '')) from reserved left join accounts using (task) "
            "where root = ? and not (reserved.task = ? and process = ?) group by payer".format(
                kind
            ),
            (root, task, process),
        ):
            reserved += max(share, held)
            if of == account:
                own = max(0, share - held)
        found.append((amount, reserved, own))
    return found


def allot(db, task: str, process: str, parts: list, decides: bool, limits: list):
    """Give each of *parts*, ids, a share of what *task* has.  One that is known keeps what it has.

    decides  *task* itself has a turn when they have ended, and keeps as much for it
    """
    parts = [one for one in parts if not is_known(db, one)]
    for one in parts:
        forget(db, one)
    if not parts:
        return
    mine = "select 1 from reserved where task = ? and process = ''"
    account, root = account_of(db, task), root_of(db, task)
    has_share, each = db.execute(mine, (account,)).fetchone(), []
    for limit, (used, reserved, own) in zip(limits, budget(db, task, process), strict=True):
        has = 0 if limit is None else own if has_share else max(0, limit - used - reserved)
        each.append(has // (len(parts) + decides))
    row = "insert into reserved values (?, '', ?, ?, ?)"
    if has_share:
        _add(db, task, -each[0] * len(parts), -each[1] * len(parts))
    elif decides:
        db.execute(row, (account, root, *each))
    for one in parts:
        db.execute(row, (one, root, *each))


def hold(db, task: str, process: str, amounts: list, limits: list) -> bool:
    """Reserve *amounts* for a request of *process*; return False when a limit does not admit it."""
    for wanted, limit, now in zip(amounts, limits, budget(db, task, process), strict=True):
        if limit is not None and wanted > room_of(limit, now, wanted):
            return False
    row = (task, process, root_of(db, task), *amounts)
    db.execute("insert or replace into reserved values (?, ?, ?, ?, ?)", row)
    return True


def room_of(limit: int, now: tuple, least: int) -> int:
    """Return how much a request may use that needs at least *least*: of its task's share, else also
    of what nobody has reserved.

    now  (used, reserved, own) of ``budget``
    """
    used, reserved, own = now
    return own if own >= least else own + max(0, limit - used - reserved)


def use(db, task: str, process: str, tokens: int, nano: int):
    """Count what a request of *process* has used: it has nothing reserved any more."""
    root = root_of(db, task)
    db.execute("insert or ignore into used values (?, 0, 0)", (root,))
    db.execute(
        "update used set tokens = tokens + ?, nano = nano + ? where root = ?", (tokens, nano, root)
    )
    _add(db, task, -tokens, -nano)
    db.execute("delete from reserved where task = ? and process = ?", (task, process))


def give_back(db, task: str):
    """Give back what tasks have reserved that have ended, of all that *task* is a part of."""
    root = root_of(db, task)
    if not db.execute("select 1 from reserved where root = ?", (root,)).fetchone():
        return
    for parent, tokens, nano in db.execute(
        "select parent, tokens, nano from reserved join tasks on id = task "
        "where reserved.root = ? and reserved.process = '' and id not in (%s)" % _OPEN,
        (root,),
    ).fetchall():
        _add(db, parent, tokens, nano)
    ended = "delete from reserved where root = ? and task not in (%s)" % _OPEN
    if db.execute("select 1 where ? in (%s)" % _OPEN, (root,)).fetchone():
        ended += " and task in (select id from tasks)"  # a part that is not yet there keeps it
    db.execute(ended, (root,))


def _add(db, task: str, tokens: int, nano: int):
    """Change the share that *task* uses, if there is one."""
    db.execute(
        "update reserved set tokens = max(0, tokens + ?), nano = max(0, nano + ?) "
        "where task = ? and process = ''",
        (tokens, nano, account_of(db, task)),
    )

"""Whether an actor may send a message on a channel now (CKP 0.2.0, 5.3): modes, roles, pairing,
length and rate, without I/O.

1. A message of a stranger does not count towards the rate.
2. In modes without roles, everybody who is admitted is a user.  Only ``role-based`` has admins, and
   only an admin may approve.
3. A viewer gets answers, but no tool runs for them.
4. With ``pairing``, a stranger who writes gets a code, and a person enters it on the console.  The
   code works once, until it expires.
"""

OPEN, ALLOWLIST, PAIRING, ROLES = range(4)
VIEWER, USER, ADMIN = range(3)
ROLE_NAMES = ("viewer", "user", "admin")
MAX_PAIRED = 1000  # people that one channel remembers
ANSWERS = ("/approve", "/deny", "/show")  # what an admin types to answer an approval
_CODE = "ABCDEFGHJKMNPQRSTVWXYZ23456789"
CODE_LENGTH = 8


class Bucket:
    """A rate: at most *burst* at once, and *per_minute* over time.

    per_minute  int >= 1
    burst       int >= 1
    """

    def __init__(self, per_minute: int, burst: int):
        self._per_minute, self._burst = per_minute, burst
        self._tokens = 60000 * burst  # in 60,000ths: whole numbers do not drift
        self._at_ms = None

    def take(self, now_ms: int) -> int:
        """Take one token and return 0, or take none and return in how many ms there is one."""
        if self._at_ms is not None and now_ms > self._at_ms:
            self._tokens = min(
                60000 * self._burst, self._tokens + (now_ms - self._at_ms) * self._per_minute
            )
        self._at_ms = now_ms
        if self._tokens >= 60000:
            self._tokens -= 60000
            return 0
        return (60000 - self._tokens + self._per_minute - 1) // self._per_minute


class Verdict:
    """The decision about one message.

    role   role of the sender: VIEWER, USER or ADMIN; None: the message is refused
    why    one word for the log: "ok", "stranger", "pairing", "length" or "rate"
    said   a sentence for the sender, or ""
    """

    def __init__(self, role, why: str, said: str = ""):
        self.role, self.why, self.said = role, why, said


# positions in ``processing``, as an image has it
_LENGTH, _PER_MINUTE, _BURST, TYPING, RECEIPTS, THREADS = range(6)
_WHO, _END_S = 0, 1  # positions in a pending pairing: (actor, epoch seconds when it expires)


class Access:
    """The access of one channel.

    access      [mode, details] of the image: [id, ...], [minutes, most that wait], [[id, role],
                ...], or None
    processing  [max_message_length, messages a minute or None, burst or None, ...]
    draw        function(count) -> that many random bytes
    paired      ids that were paired earlier
    """

    def __init__(self, access: list, processing: list, draw, paired=()):
        self.mode, details = access
        self._roles = {}
        if self.mode == ALLOWLIST:
            self._roles = dict.fromkeys(details, USER)
        elif self.mode == ROLES:
            self._roles = dict(details)
        elif self.mode == PAIRING:
            minutes, self._most = details
            self._expiry_s = 60 * minutes
        self.paired = {actor: None for actor in paired}  # in the order in which they came
        # code -> (actor, epoch seconds when it expires)
        self._pending = {}
        self._draw = draw
        self._length, per_minute, burst, *_ = processing
        self._bucket = Bucket(per_minute, burst) if per_minute else None

    def role(self, actor: str):
        """Return the role of *actor*, None for a stranger."""
        if self.mode == OPEN or self.mode == PAIRING and actor in self.paired:
            return USER
        return self._roles.get(actor)

    def admins(self) -> list:
        """Return the ids of those who may approve."""
        return [actor for actor in self._roles if self._roles[actor] == ADMIN]

    def judge(self, actor: str, text: str, now_ms: int, now_s: int) -> Verdict:
        """Decide whether *actor* may send *text* now, at monotonic *now_ms* and epoch *now_s*."""
        role = self.role(actor)
        if role is None:
            return self._stranger(actor, now_s)
        if len(text) > self._length:
            return Verdict(
                None,
                "length",
                "That is %d characters; a message has at most %d. "
                "Nothing was done." % (len(text), self._length),
            )
        return self.admit(now_ms) or Verdict(role, "ok")

    def admit(self, now_ms: int):
        """Count one message; return a ``Verdict`` when it exceeds the rate, else None."""
        wait_ms = self._bucket.take(now_ms) if self._bucket else 0
        if not wait_ms:
            return None
        return Verdict(
            None,
            "rate",
            "Too many messages at once; the next one is taken in %d s. "
            "Nothing was done." % ((wait_ms + 999) // 1000),
        )

    # -- pairing

    def _stranger(self, actor: str, now_s: int) -> Verdict:
        if self.mode != PAIRING:
            return Verdict(None, "stranger")
        self._forget(now_s)
        for code in self._pending:
            if self._pending[code][_WHO] == actor:
                # the code is sent once: further messages get no answer
                return Verdict(None, "pairing")
        if len(self._pending) >= self._most or len(self.paired) >= MAX_PAIRED:
            return Verdict(None, "stranger")
        code = self._new_code()
        self._pending[code] = (actor, now_s + self._expiry_s)
        return Verdict(
            None,
            "pairing",
            "This agent does not know you yet. Ask whoever runs it to "
            "type /pair %s within %d min." % (code, self._expiry_s // 60),
        )

    def _new_code(self) -> str:
        while True:
            code = "".join(
                [_CODE[byte % len(_CODE)] for byte in self._draw(4 * CODE_LENGTH) if byte < 240][
                    :CODE_LENGTH
                ]
            )
            if len(code) == CODE_LENGTH and code not in self._pending:
                return code

    def _forget(self, now_s: int):
        for code in [code for code in self._pending if self._pending[code][_END_S] <= now_s]:
            del self._pending[code]

    def pair(self, code: str, now_s: int):
        """Admit the person who was given *code*; return their id, or None when the code is unknown
        or has expired.
        """
        self._forget(now_s)
        found = self._pending.pop(code.upper(), None)
        if found is None:
            return None
        self.paired[found[_WHO]] = None
        return found[_WHO]

    def waiting(self, now_s: int) -> int:
        """Return how many people wait to be paired."""
        self._forget(now_s)
        return len(self._pending)

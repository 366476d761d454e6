"""How many runs of one channel go at once, and what happens to jobs that come meanwhile (CKP 0.2.0,
5.3 ``max_parallel``, ``overlap_policy``).

1. At most *most* runs go at once, whatever the policy.  ``allow`` lets runs overlap up to that
   number, and beyond it works like ``skip``.
2. ``queue`` keeps jobs in order, up to *room*.  Further jobs are skipped, and ``offer`` returns
   False for them.
3. Two jobs with the same key (a conversation) never run together.  A job without a key (None) may
   run beside any other.
"""

from collections import deque

SKIP, QUEUE, ALLOW = range(3)
ROOM = 10000  # jobs of one channel that wait


class Overlap:
    """The runs of one channel.

    most    int >= 1
    policy  SKIP, QUEUE or ALLOW
    """

    def __init__(self, most: int, policy: int, room: int = ROOM):
        self._most, self._policy, self._room = most, policy, room
        self._waiting = deque()
        self._busy = []

    def offer(self, key, job, is_kept: bool = False) -> bool:
        """Queue *job* until ``next`` returns it; return False when it is skipped.

        is_kept  it was queued before, by an earlier process, and is not skipped now
        """
        if not is_kept and (
            self._policy != QUEUE
            and len(self._busy) + len(self._waiting) >= self._most
            or len(self._waiting) >= self._room
        ):
            return False
        self._waiting.append((key, job))
        return True

    def next(self):
        """Return (key, job) of the oldest that may begin now, and count it as under way; None
        when none may.
        """
        if len(self._busy) >= self._most:
            return None
        for index, (key, job) in enumerate(self._waiting):
            if key is None or key not in self._busy:
                del self._waiting[index]
                self._busy.append(key)
                return key, job
        return None

    def release(self, key):
        """Note that a job with *key* has ended."""
        self._busy.remove(key)

    def waits(self, key) -> int:
        """Return how many jobs with *key* wait."""
        return sum(1 for other, _ in self._waiting if other == key)

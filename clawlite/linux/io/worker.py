"""A thread that works when it is woken. The first wake-up starts it, and no caller ever waits for
it.
"""

import _thread


class Worker:
    """One thread, over the life of its owner.

    work  function(), in the thread: calls ``wait`` between what it does, and returns at the end
    """

    def __init__(self, work):
        self._work = work
        self._bell = _thread.allocate_lock()  # released when the thread is to work
        self._bell.acquire()
        self._ended = None  # locked while the thread works

    def begin(self):
        """Start the thread, if there is none."""
        if self._ended is None:
            self._ended = _thread.allocate_lock()
            self._ended.acquire()
            try:
                _thread.start_new_thread(self._run, ())
            except RuntimeError:  # no thread can be started now: the next call tries again
                self._ended = None

    def ring(self):
        """Wake the thread; when it is at work, its next ``wait`` returns at once.  Only one caller
        at a time may call this.
        """
        if self._bell.locked():
            self._bell.release()

    def wait(self, timeout_s: float = -1):
        """Wait for ``ring``, at most so long; -1: for ever.  The thread itself calls this."""
        self._bell.acquire(timeout=timeout_s)

    def join(self, timeout_s: float):
        """Wait for the end of the thread, at most so long."""
        if self._ended is not None:
            self._ended.acquire(timeout=timeout_s)

    def _run(self):
        try:
            self._work()
        finally:
            self._ended.release()

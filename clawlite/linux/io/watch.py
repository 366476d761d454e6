"""Descriptors of which one waits for all: epoll on Linux, kqueue on macOS.  A loop that polls
``fileno`` is woken when one of them has something.
"""

import select

READ, WRITE = 1, 2  # READ: an end or an error, too


class _Epoll:
    """A set of descriptors."""

    def __init__(self):
        self._set = select.epoll()
        self.fileno, self.close = self._set.fileno, self._set.close
        self._known: set = set()

    def set(self, fd: int, events: int):
        """Watch *fd* for READ, or READ | WRITE."""
        mask = select.EPOLLIN | (select.EPOLLOUT if events & WRITE else 0)
        if fd in self._known:
            self._set.modify(fd, mask)
        else:
            self._set.register(fd, mask)
            self._known.add(fd)

    def forget(self, fd: int):
        """Watch *fd* no more."""
        self._known.discard(fd)
        self._set.unregister(fd)

    def poll(self) -> list:
        """Return [(descriptor, what has come), ...] without waiting."""
        writes = select.EPOLLOUT
        return [
            (fd, (WRITE if event & writes else 0) | (READ if event & ~writes else 0))
            for fd, event in self._set.poll(0)
        ]


# of kqueue, by their names: this machine may lack them
_names = ("KQ_EV_ADD", "KQ_EV_DELETE", "KQ_FILTER_READ", "KQ_FILTER_WRITE")
_queue: type = getattr(select, "kqueue", type)
_event: type = getattr(select, "kevent", type)
_add, _delete, _reads, _writes = [getattr(select, name, 0) for name in _names]


class _Kqueue:
    def __init__(self):
        self._set = _queue()
        self.fileno, self.close = self._set.fileno, self._set.close
        self._writes: set = set()  # descriptors that are watched for WRITE, too

    def set(self, fd: int, events: int):
        changes = [_event(fd, _reads, _add)]
        if bool(events & WRITE) != (fd in self._writes):
            how = _add if events & WRITE else _delete
            changes.append(_event(fd, _writes, how))
        self._set.control(changes, 0, 0)
        (self._writes.add if events & WRITE else self._writes.discard)(fd)

    def forget(self, fd: int):
        self.set(fd, READ)
        self._set.control([_event(fd, _reads, _delete)], 0, 0)

    def poll(self) -> list:
        found: dict = {}
        for event in self._set.control([], 64, 0):
            what = WRITE if event.filter == _writes else READ
            found[event.ident] = found.get(event.ident, 0) | what
        return list(found.items())


Watch = _Epoll if hasattr(select, "epoll") else _Kqueue

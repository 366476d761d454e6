"""A simulated network, for a process that finds this folder on PYTHONPATH.

Only names in $CKP_DNS resolve ({name: [address for the first question, the second, ...]}; the last
address stays).  Each connection that would leave this machine is refused, and its
address becomes a line of the file $CKP_CONNECTS."""

import _socket
import errno
import json
import os

_names = json.loads(os.environ.get("CKP_DNS", "{}"))
_resolve = _socket.getaddrinfo


def _getaddrinfo(host, port, *more, **named):
    name = host.decode() if isinstance(host, bytes) else host
    if name in _names:
        name = _names[name].pop(0) if len(_names[name]) > 1 else _names[name][0]
    elif name and name != "localhost" and not name.replace(".", "").isdigit() and ":" not in name:
        raise _socket.gaierror(_socket.EAI_NONAME, "no such name here: " + name)
    return _resolve(name, port, *more, **named)


class _Socket(_socket.socket):
    __slots__ = ()  # the socket module's own class has to fit on top

    def connect(self, address):
        if _leaves(self, address):
            raise ConnectionRefusedError(errno.ECONNREFUSED, "nothing leaves this machine")
        return super().connect(address)

    def connect_ex(self, address):
        return errno.ECONNREFUSED if _leaves(self, address) else super().connect_ex(address)


def _leaves(socket, address) -> bool:
    if (
        socket.family not in (_socket.AF_INET, _socket.AF_INET6)
        or address[0].startswith("127.")
        or address[0] in ("localhost", "::1")
    ):
        return False
    with open(os.environ["CKP_CONNECTS"], "a") as file:
        file.write(address[0] + "\n")
    return True


_socket.getaddrinfo = _getaddrinfo
_socket.socket = _Socket

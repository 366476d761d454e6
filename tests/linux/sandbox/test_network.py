"""Children with a network: an empty namespace, and one door, which the agent's proxy serves."""

import pytest
from sandbox_places import host


@pytest.fixture(scope="module", params=["user", "root"])
def place(request):
    with host("N", request.param == "root") as one:
        yield one


TALK = """
    from urllib.parse import urlsplit
    import _socket
    url = urlsplit(os.environ['%s'])
    line = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    line.connect((url.hostname, url.port))
    said = line.recv(100).decode()
    line.close()
    return [url.hostname, said]
"""


@pytest.mark.parametrize("mode", [1, 2])
def test_the_door_is_named_in_the_environment(place, mode):
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        assert place.python(TALK % name, network=mode) == ["127.0.0.1", "door\n"]
    assert "proxy" not in place.shell("env")["output"].lower()


def test_there_is_no_other_way_out(place):
    body = """    import _socket
    def to(address, family=_socket.AF_INET):
        line = _socket.socket(family, _socket.SOCK_STREAM)
        line.settimeout(60)
        try:
            return tried(line.connect, address)
        finally:
            line.close()
    return [to(('127.0.0.1', 22)), to(('10.0.0.1', 80)), to(('93.184.216.34', 80)), to(('169.254.169.254', 80)), to(('::1', 22), _socket.AF_INET6),
            to(('2606:2800:220:1::1', 80), _socket.AF_INET6)]
"""  # noqa: E501
    assert set(place.python(body, network=2)) <= {"ECONNREFUSED", "ENETUNREACH", "EADDRNOTAVAIL"}
    assert place.shell("cat /proc/net/dev", network=2)["output"].count(":") == 1


def test_only_tcp(place):
    body = """    return [system_call('socket', f, k, p) for f, k, p in
        ((2, 1, 0), (2, 1, 6), (10, 1, 0), (2, 1 | 0o2000000, 0), (2, 2, 0), (2, 3, 1), (2, 1, 262), (1, 1, 0), (16, 3, 0), (17, 3, 0), (38, 5, 0), (40, 1, 0))]
"""  # noqa: E501
    assert place.python(body, network=2) == ["open"] * 4 + ["EACCES"] * 3 + ["EAFNOSUPPORT"] * 5


def test_the_door_of_one_call_is_not_that_of_another(place):
    first = place.shell("echo $http_proxy", network=2)["output"].strip()
    port = int(first.rpartition(":")[2])
    body = """    import _socket
    line = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    return tried(line.connect, ('127.0.0.1', %d)) if os.environ['http_proxy'] != %r else 'ECONNREFUSED'
""" % (port, first)  # noqa: E501
    assert place.python(body, network=2) == "ECONNREFUSED"

"""Proxies of the environment when a build fetches."""

from urllib import request

import pytest
from net_servers import answering, serving

from clawlite.host.base.proxies import Proxies


@pytest.mark.parametrize(
    "no_proxy, is_direct",
    [
        ("127.0.0.0/8", True),
        ("127.0.0.1", True),
        ("localhost,10.0.0.0/8", False),
    ],
)
def test_networks_of_no_proxy_are_reached_directly(monkeypatch, no_proxy, is_direct):
    with (
        serving(answering(b"HTTP/1.0 200 OK\r\n\r\ndirect")) as port,
        serving(answering(b"HTTP/1.0 200 OK\r\n\r\nproxy")) as proxy,
    ):
        for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:%d" % proxy)
        monkeypatch.setenv("NO_PROXY", no_proxy)
        opener = request.build_opener(Proxies)
        with opener.open("http://127.0.0.1:%d/x" % port, timeout=30) as answer:
            assert answer.read() == (b"direct" if is_direct else b"proxy")

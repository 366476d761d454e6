"""Proxies of the environment for ``urllib.request``, whose own ``no_proxy`` knows no networks."""

import os
from urllib import parse, request

from clawlite.protocols.net.direct import is_direct


class Proxies(request.ProxyHandler):
    """The proxies that the environment names, except for hosts that ``no_proxy`` names."""

    def proxy_open(self, req, proxy, type):
        no_proxy = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
        place = parse.urlsplit("//" + req.host)
        port = place.port or (443 if type == "https" else 80)
        if is_direct(place.hostname or "", port, no_proxy):
            return None
        return super().proxy_open(req, proxy, type)

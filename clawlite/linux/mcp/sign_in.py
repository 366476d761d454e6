"""A person signs in for an agent at the authorization server of an MCP server (the device flow,
protocols/net/device_flow.py): ``clawlite secrets login NAME``.
"""

from time import monotonic, time

from clawlite.core.base.errors import ClawError
from clawlite.core.image.image import NETWORK, SERVICES
from clawlite.core.providers.wire import Codec
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.mcp.section import rows_of
from clawlite.linux.net.blocking import carry_out
from clawlite.protocols.net.device_flow import sign_in
from clawlite.protocols.services.service_call import SERVED, Service


class _Meter:
    def now_ms(self) -> int:
        return int(monotonic() * 1000)

    def now_s(self) -> int:
        return int(time())


def refresh_token(image, name: str, tell, value) -> str:
    """Return what is to be kept as the secret *name* of the agent of *image*.

    name   of the credential; NAME.DEVICE, where a gateway calls the server for that device
    tell   as of ``device_flow.sign_in``;  value: function(name of a secret) -> its value
    Raises ``ClawError``: nobody signs in for that secret, or nobody agreed.
    """
    rows = rows_of(image)
    wanted = [(server, tokens) for server, *_, tokens, _ in rows if tokens and tokens[-1]]
    mediated = _list_mediated(image)
    for server, (*row, secret, resource, device) in wanted:
        if secret == name or server in mediated and name.startswith(secret + "."):
            _, authorities = image.section(NETWORK) or (None, ())
            codec = Codec(loads, dumps)
            *place, client = device
            own = value(client) if client else ""
            work = sign_in(row, tuple(place), codec, loads, _Meter(), resource, tell, own)
            _, refresh = carry_out(work, list(authorities))
            if not refresh:
                raise ClawError(
                    "the sign-in gave no refresh token, so it would soon expire",
                    'many servers want scope = "offline_access" for one, in clawlite.toml',
                )
            return refresh
    names = ", ".join(sorted({secret for _, (*_, secret, _, _) in wanted}))
    raise ClawError(
        "no sign-in is declared for the secret %s" % name,
        "it is one of: " + names
        if names
        else 'declare one in clawlite.toml: [mcp.NAME.oauth2] flow = "device"',
    )


def _list_mediated(image) -> set:
    """Return the names of the MCP servers that a gateway calls."""
    services = map(Service, image.section(SERVICES) or ())
    return {one.name for one in services if one.scheme == SERVED}

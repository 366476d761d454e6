"""TLS of a board: the certificate and its name are always checked, and nothing can turn that off.

The image has the trusted authorities (``[tls] ca`` in clawlite.toml), because a board has no list
of its own.  Loaded for a connection that needs it."""

import gc

from tls import CERT_REQUIRED, PROTOCOL_TLS_CLIENT, SSLContext

from clawlite.core.base.errors import ProviderError
from clawlite.core.image.header import check_shape
from clawlite.core.image.image import NETWORK, NETWORK_AUTHORITIES


def wrapper(image, epoch_s):
    """Return function(socket, host) -> a stream with TLS.

    epoch_s  the time of day, or None while the clock is unset
    Raises ``ProviderError`` while it is unset: an expired certificate could not be recognised.
    """
    if epoch_s is None:
        raise ProviderError(
            "certificates cannot be checked before the clock is set",
            "a console, a gateway or NTP sets it: clawlite console --port PORT, "
            "clawlite wifi SSID --port PORT",
        )
    authorities = check_shape(image.section(NETWORK), (object, [bytes]), "section 21")[
        NETWORK_AUTHORITIES
    ]

    def wrap(opened, host: str):
        gc.collect()  # one of its buffers takes 16 KB, in one block
        context = SSLContext(PROTOCOL_TLS_CLIENT)
        for one in authorities:
            context.load_verify_locations(one)
        context.verify_mode = CERT_REQUIRED
        return context.wrap_socket(opened, server_hostname=host, do_handshake_on_connect=False)

    return wrap


def refusal(host: str, error) -> str:
    """Return the message for the ``ValueError`` that MicroPython raises for a certificate."""
    return "certificate of %s is refused: %s" % (host, " ".join(str(error).split()))

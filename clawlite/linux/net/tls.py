"""TLS over a connected stream: certificate and host name checked, version 1.2 at least, and errors
that say what to do.

Nothing here, and no option anywhere, turns a check off.  A person with a CA of their own sets
``SSL_CERT_FILE`` or ``SSL_CERT_DIR``.  This is the only module that loads ``ssl``.
"""

import select
import socket
import ssl

from clawlite.linux.net.stream import Failure, Stream, words

# X509_V_ERR_*, openssl/x509_vfy.h
_EXPIRED, _NOT_YET = 10, 9
# no issuer, self-signed, self-signed issuer, issuer not in the store, chain of one
_NOBODY = (2, 18, 19, 20, 21)
_OTHER_HOST = (62, 64)  # name, address
_OLD = (
    "UNSUPPORTED_PROTOCOL",
    "TLSV1_ALERT_PROTOCOL_VERSION",
    "VERSION_TOO_LOW",
    "WRONG_SSL_VERSION",
)
_NO_TLS = (
    "WRONG_VERSION_NUMBER",
    "HTTP_REQUEST",
    "HTTPS_PROXY_REQUEST",
    "PACKET_LENGTH_TOO_LONG",
    "RECORD_LAYER_FAILURE",
)


def context(authorities: list = ()) -> ssl.SSLContext:
    """Return the settings for all connections.  This takes milliseconds and megabytes when all CAs
    of the machine are in one file.

    authorities  certificates (DER) that are used instead of the machine's CAs; empty: those CAs
    """
    made = ssl.create_default_context(cadata=b"".join(authorities) or None)
    made.minimum_version = max(made.minimum_version, ssl.TLSVersion.TLSv1_2)
    return made


def wrap(stream: Stream, settings: ssl.SSLContext, host: str):
    """Do the handshake on *stream*, which speaks TLS from then on.  Raises ``Failure``,
    ``OSError``.
    """
    plain = stream.sock = socket.socket(fileno=stream.sock.detach())
    plain.setblocking(False)
    stream.sock = settings.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)
    stream.wants, stream.words = _wants, _words
    try:
        stream.do(stream.sock.do_handshake)
    except ssl.SSLCertVerificationError as e:
        raise Failure(_refusal(e, host)) from None
    except ssl.SSLError as e:
        if e.reason in _OLD:
            raise Failure("%s speaks only old TLS; 1.2 is the least" % host) from None
        if e.reason in _NO_TLS:
            raise Failure("%s does not speak TLS on this port (is it http?)" % host) from None
        raise


def why_refused(error, host: str):
    """Return (sentence, next step) when *error*, or what it came of, is a certificate of *host*
    that is refused, else None.  For clients that do the handshake themselves.
    """
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    if error is None:
        return None
    code = error.verify_code
    if code in _OTHER_HOST:
        hint = "use the name that is in its certificate, or give it a certificate for %s" % host
    elif code in _NOBODY:
        hint = "set SSL_CERT_FILE to the certificate of the CA that signed it"
    elif code == _NOT_YET:
        hint = "set this machine's clock"
    else:
        hint = "give it a new certificate"
    return _refusal(error, host), hint


def _refusal(error: ssl.SSLCertVerificationError, host: str) -> str:
    code = error.verify_code
    if code == _EXPIRED:
        return "certificate of %s has expired" % host
    if code == _NOT_YET:
        return "certificate of %s is not valid yet (is this machine's clock right?)" % host
    if code in _OTHER_HOST:
        return "certificate is not for %s" % host
    if code in _NOBODY:
        return "certificate of %s is signed by nobody this machine knows (self-signed?)" % host
    return "certificate of %s is refused: %s" % (host, error.verify_message)


def _wants(error: OSError) -> int:
    if isinstance(error, ssl.SSLWantReadError):
        return select.POLLIN
    return select.POLLOUT if isinstance(error, ssl.SSLWantWriteError) else 0


def _words(error: OSError) -> str:
    if isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        return "the connection was reset"
    if isinstance(error, ssl.SSLError):  # its errno is OpenSSL's, not the system's
        return "TLS failed: %s" % (error.reason or "no reason given").lower().replace("_", " ")
    return words(error)

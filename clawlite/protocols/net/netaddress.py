"""IP addresses as bytes: how they are written, and which are public.

An address has 4 or 16 bytes in network order.  One spelling of each is accepted (IPv6: those of RFC
4291, 2.2, 1 and 2).  An IPv4 address is public unless it lies in a range of ``_IPV4``; an IPv6
address must lie in 2000::/3, and in no range of ``_IPV6``.
"""

_HEX = "0123456789abcdefABCDEF"

# (prefix, bits) of addresses that are not public: IANA's special-purpose registries (RFC 6890),
# multicast, and a cloud's metadata address.
_IPV4 = (
    (b"\x00", 8),
    (b"\x0a", 8),
    (b"\x64\x40", 10),
    (b"\x7f", 8),
    (b"\xa9\xfe", 16),
    (b"\xac\x10", 12),
    (b"\xc0\x00\x00", 24),
    (b"\xc0\x00\x02", 24),
    (b"\xc0\x58\x63", 24),
    (b"\xc0\xa8", 16),
    (b"\xc6\x12", 15),
    (b"\xc6\x33\x64", 24),
    (b"\xcb\x00\x71", 24),
    (b"\xe0", 4),
    (b"\xf0", 4),
    (b"\xa8\x3f\x81\x10", 32),  # 168.63.129.16, Azure's
)
# Inside 2000::/3 (nothing outside of it is assigned): protocols, documentation (two).
_IPV6 = ((b"\x20\x01\x00", 23), (b"\x20\x01\x0d\xb8", 32), (b"\x3f\xff\x00", 20))
MAPPED = bytes(10) + b"\xff\xff"  # ::ffff:0:0/96
_NAT64 = b"\x00\x64\xff\x9b" + bytes(8)  # 64:ff9b::/96


def address_of(host: str) -> bytes | None:
    """Return the 4 or 16 bytes of *host* when it is an address (IPv6 without brackets), None for
    a name.
    """
    return _ipv6(host) if ":" in host else _ipv4(host)


def origin(host: str) -> str:
    """Return whom limits count *host* as, the address of a client: an IPv6 address as its /64,
    which one household or one server has whole, and an IPv4 address inside IPv6 as itself.
    """
    host = host.partition("%")[0]  # a zone names an interface of this machine
    head, dots, tail = host.rpartition(":")
    last = _ipv4(tail) if dots else None
    if last is not None:  # ::ffff:192.0.2.1, as systems write it
        host = "%s:%x:%x" % (head, last[0] << 8 | last[1], last[2] << 8 | last[3])
    address = address_of(host)
    if address is None or len(address) == 4:
        return host
    if address[:12] == MAPPED:
        return ".".join([str(byte) for byte in address[12:]])
    return "%s/64" % "".join(["%02x" % byte for byte in address[:8]])


def is_public(address: bytes) -> bool:
    """Return whether *address* (4 or 16 bytes) belongs to the open Internet.  An address that
    contains an IPv4 address is judged by that one.
    """
    if len(address) == 4:
        return not _is_in(address, _IPV4)
    if len(address) != 16:
        return False
    if address[:12] == MAPPED or address[:12] == _NAT64:
        return is_public(address[12:])
    if address[0] >> 5 != 1:
        return False
    if address[:2] == b"\x20\x02":  # 6to4
        return is_public(address[2:6])
    # Teredo: its server, and the client with all bits inverted
    if address[:4] == b"\x20\x01\x00\x00":
        return is_public(address[4:8]) and is_public(bytes([byte ^ 255 for byte in address[12:]]))
    return not _is_in(address, _IPV6)


def is_loopback(address: bytes | None) -> bool:
    """Return whether *address* (4 or 16 bytes, None for a name) is a loopback address
    itself (no name is looked up).
    """
    return address is not None and (
        address[0] == 127 if len(address) == 4 else address == bytes(15) + b"\1"
    )


def _is_in(address: bytes, ranges: tuple) -> bool:
    for prefix, bits in ranges:
        whole = bits >> 3
        if address[:whole] == prefix[:whole] and (
            not bits & 7 or (address[whole] ^ prefix[whole]) >> (8 - (bits & 7)) == 0
        ):
            return True
    return False


def _ipv4(text: str) -> bytes | None:
    """Return the 4 bytes of a.b.c.d, None for anything else."""
    parts = text.split(".")
    if len(parts) != 4:
        return None
    for part in parts:
        if (
            not 0 < len(part) <= 3
            or part.strip("0123456789")
            or (part[0] == "0" and len(part) > 1)
            or int(part) > 255
        ):
            return None
    return bytes([int(part) for part in parts])


def _ipv6(text: str) -> bytes | None:
    """Return the 16 bytes of an IPv6 address in groups of hexadecimal digits (RFC 4291, 2.2, 1
    and 2), None for anything else.
    """
    head, gap, tail = text.partition("::")
    first, last = _groups(head), _groups(tail)
    if len(text) > 39 or first is None or last is None:
        return None
    missing = 16 - len(first) - len(last)
    if missing < 2 if gap else missing:
        return None
    return first + bytes(missing) + last


def _groups(text: str) -> bytes | None:
    data = b""
    for group in text.split(":") if text else ():
        if not 0 < len(group) <= 4 or group.strip(_HEX) or len(data) == 16:
            return None
        data += bytes((int(group, 16) >> 8, int(group, 16) & 255))
    return data

"""Which hosts are reached without a proxy: the list in ``no_proxy``, as curl, Go and requests take
it.
"""

from clawlite.protocols.net.netaddress import MAPPED, address_of


def is_direct(host: str, port: int, no_proxy: str) -> bool:
    """Return whether the list *no_proxy* names *host* (IPv6 without brackets).

    Its entries are ``*``; a name, which includes all names below it (leading dots change nothing);
    an address; or a network, ADDRESS/BITS, of IPv4 or IPv6.  Each but a network may end in
    ``:port``.  No name is looked up.
    """
    host = host.lower().rstrip(".")
    address = _plain(address_of(host))
    for entry in no_proxy.lower().replace(",", " ").split():
        if address and "/" in entry:
            if _holds(entry, address):
                return True
            continue
        name, mark, digits = entry.rpartition(":")
        is_number = digits != "" and not digits.strip("0123456789")
        if mark and is_number and (name.endswith("]") or ":" not in name):
            if int(digits) != port:
                continue
            entry = name
        if entry == "*":
            return True
        entry = entry.strip("[].*")
        if host == entry or address and address == _plain(address_of(entry)):
            return True
        if entry and host.endswith("." + entry) and not address:
            return True
    return False


def _holds(entry: str, address: bytes) -> bool:
    """Return whether the network *entry* holds *address*; one that cannot be read holds none."""
    base, _, bits = entry.replace("[", "").replace("]", "").partition("/")
    first = address_of(base)
    if not first or not 0 < len(bits) < 4 or bits.strip("0123456789") or int(bits) > 8 * len(first):
        return False
    count = int(bits)
    if len(first) == 16 and first[:12] == MAPPED and count >= 96:
        first = first[12:]
        count -= 96
    if len(first) != len(address):
        return False
    whole = count // 8
    rest = count % 8
    return address[:whole] == first[:whole] and (
        not rest or (address[whole] ^ first[whole]) >> (8 - rest) == 0
    )


def _plain(address: bytes | None):
    """Return *address*; an IPv4 address inside an IPv6 one as its 4 bytes."""
    return address[12:] if address and address[:12] == MAPPED else address

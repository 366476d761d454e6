"""What every device sends to its gateway (docs/gateway.md): boards by uplink.py, Linux by
linux/net/gateway_client.py.

1. A text is sent in pieces, so that each record is short.
2. The texts of a request come before the request itself, so a gateway begins nothing of which it
   has only a part.
"""

from binascii import hexlify

WAIT_MS = 6000  # how long to wait for a gateway: on a board, its line may have to be opened first
_PIECE = 512  # characters of a text in one record


def make_note(name: str, params: dict) -> dict:
    return {"jsonrpc": "2.0", "method": "claw.gateway." + name, "params": params}


def split_text(params: dict, text: str):
    """Generate the records of *text*.

    params  of the first record, without the text: the others have its id alone
    """
    params["text"] = text[:_PIECE]
    yield make_note("message", params)
    for at in range(_PIECE, len(text), _PIECE):
        yield make_note("message", {"id": params["id"], "text": text[at : at + _PIECE]})


def describe(image, boot: str, record: int) -> dict:
    """Return who this device is, which answers a gateway's hello.

    image   ``image.Image``
    boot    another one at each start of the device
    record  bytes of the longest record that the device takes
    """
    return {
        "version": 1,
        "boot": boot,
        "agent": image.agent.name,
        "record": record,
        "image": str(hexlify(image.read(image.seal_at + 7, 32)), "utf-8"),
    }

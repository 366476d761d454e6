"""Lines of a board's journal of calls, for test_call_journal.py, on MicroPython.

micropython journal_lines_board.py FOLDER OUT   OUT is JSON: what each record reads as"""

import json

import call_journal as journal

from clawlite.core.idempotency.idempotency import BEGIN, END, WAIT, line

_NOW = 1795658583
_KEY = "0000%04x-1111-4000-8000-0123456789ab"
_FINGERPRINT = "00112233445566778899aabbccddeeff"


def main(folder: str, out: str):
    answer = '["%s","wet\\u00e4",false,5]' % _FINGERPRINT
    with open(folder + "/calls.older", "wb") as file:  # of an older version
        file.write(line(END, _NOW, 0, _KEY % 1, answer))
    for key, payload in (
        (_KEY % 2, [_FINGERPRINT, "dry", False, 3]),
        (_KEY % 3, [_FINGERPRINT, {"code": -32000, "message": "no"}]),
        ((_KEY % 0xABCD).upper(), [_FINGERPRINT, "capitals", False, 8]),
        ("turn-7", [_FINGERPRINT, "no UUID", False, 7]),
        (_KEY % 4, ["short", "no fingerprint", False, 14]),
        (_KEY % 5, [_FINGERPRINT, "damaged", False, 7]),
    ):
        assert journal.keep(folder, END, key, payload, _NOW) == (True, [])
    assert journal.keep(folder, BEGIN, _KEY % 6, [_FINGERPRINT], _NOW) == (True, [])
    assert journal.keep(folder, WAIT, _KEY % 7, ["look", {}, None], _NOW) == (True, [])
    files = []
    for name in ("calls.older", "calls.journal"):
        with open(folder + "/" + name, "rb") as file:
            data = file.read()
        files.append(data)
        with open(folder + "/" + name, "wb") as file:
            file.write(data.replace(b'"damaged"', b'"dAmaged"'))
    found = [list(record) for record in journal._records(folder)]
    with open(out, "w") as file:
        json.dump(
            {"found": found, "lengths": [len(one) for one in b"".join(files).split(b"\n")]}, file
        )

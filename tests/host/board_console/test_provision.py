"""Secrets and networks that a board keeps for itself: over the raw REPL of real MicroPython, and
in a folder.
"""

import json
import os

import pytest
from agents import clawlite
from sims import named

from clawlite.core.base.errors import ClawError
from clawlite.host.board_console import provision
from clawlite.host.flash.folder import Folder

CANARY = "k-canary-5d21"


@pytest.fixture(params=["port", "folder"])
def board(request, tmp_path):
    """Return (the words that name a board, the folder that is its flash)."""
    with named(request.param, tmp_path, request.getfixturevalue("monkeypatch")) as found:
        yield found


def test_a_secret_is_set_replaced_listed_and_removed(board, tmp_path):
    words, flash = board
    done = clawlite(
        "secrets", "set", "MODEL_KEY", *words, cwd=tmp_path, stdin=f"{CANARY}\n".encode()
    )
    assert done.returncode == 0, done.stderr
    assert CANARY not in done.stdout + done.stderr and done.stderr.endswith(
        "keeps the secret MODEL_KEY.\n"
    )
    assert (flash / "state/secrets/MODEL_KEY").read_text() == CANARY
    again = clawlite(
        "secrets", "set", "MODEL_KEY", "--json", *words, cwd=tmp_path, stdin=b"another"
    )
    assert json.loads(again.stdout) == {"target": words[1], "secret": "MODEL_KEY", "verb": "set"}
    assert (
        os.listdir(flash / "state/secrets") == ["MODEL_KEY"]
        and (flash / "state/secrets/MODEL_KEY").read_text() == "another"
    )
    assert clawlite("secrets", "list", *words, cwd=tmp_path).stdout == "MODEL_KEY\n"
    assert json.loads(clawlite("secrets", "list", "--json", *words, cwd=tmp_path).stdout) == [
        {"name": "MODEL_KEY"}
    ]
    assert clawlite("secrets", "remove", "MODEL_KEY", *words, cwd=tmp_path).returncode == 0
    gone = clawlite("secrets", "remove", "MODEL_KEY", *words, cwd=tmp_path)
    assert (
        gone.returncode == 1
        and "there is no secret MODEL_KEY" in gone.stderr
        and os.listdir(flash / "state/secrets") == []
    )


def test_networks_are_kept_in_their_order(board, tmp_path):
    words, flash = board
    for ssid, password, more in (
        ("Garten", CANARY, ["--country", "DE"]),
        ("Käse 2", "longenough", []),
        ("Garten", "changed-1", []),
    ):
        done = clawlite(
            "wifi", ssid, *more, *words, cwd=tmp_path, stdin=password.encode() + b"\r\n"
        )
        assert done.returncode == 0 and password not in done.stdout + done.stderr, done.stderr
    assert clawlite("wifi", "Platz", "--open", *words, cwd=tmp_path).returncode == 0
    assert json.loads((flash / "wifi.json").read_text()) == {
        "country": "DE",
        "networks": [
            {"ssid": "Garten", "password": "changed-1"},
            {"ssid": "Käse 2", "password": "longenough"},
            {"ssid": "Platz", "password": ""},
        ],
    }
    assert clawlite("wifi", *words, cwd=tmp_path).stdout == "Garten\nKäse 2\nPlatz\n"
    assert clawlite("wifi", "Garten", "--remove", *words, cwd=tmp_path).returncode == 0
    assert clawlite("wifi", "Garten", "--remove", *words, cwd=tmp_path).returncode == 1
    assert clawlite("wifi", *words, cwd=tmp_path).stdout == "Käse 2\nPlatz\n"


@pytest.mark.parametrize(
    "words, stdin, said",
    [
        (["secrets", "set", "A/B"], b"x", "is no name of a secret"),
        (["secrets", "set", ".."], b"x", "is no name of a secret"),
        (["secrets", "set", "A" * 65], b"x", "is no name of a secret"),
        (["secrets", "set", "A"], b"", "expected 1 to 8192 bytes"),
        (["secrets", "set", "A"], b"x" * 8193, "expected 1 to 8192 bytes"),
        (["secrets", "set", "A"], b"x\ny", "without control characters"),
        (["secrets", "set", "A"], b"\xff", "stdin: expected UTF-8 text"),
        (["secrets", "set"], b"x", "secrets set NAME"),
        (["secrets", "list", "A"], b"", "takes no name"),
        (["wifi", "S"], b"", "there is no password"),
        (["wifi", "S"], b"short67", "8 to 63 characters"),
        (["wifi", "S"], b"x" * 64, "8 to 63 characters"),
        (["wifi", "S" * 33, "--open"], b"", "1 to 32 bytes"),
        (["wifi", "S", "--open", "--country", "de"], b"", "two capital letters"),
        (["wifi", "--open"], b"", "name the network"),
    ],
)
def test_what_is_refused(tmp_path, words, stdin, said):
    (tmp_path / "flash").mkdir()
    done = clawlite(*words, "--dir", tmp_path / "flash", cwd=tmp_path, stdin=stdin)
    assert (
        done.returncode == 2
        and said in done.stderr
        and os.listdir(tmp_path / "flash") in ([], ["state"])
    ), (done.returncode, done.stderr)


@pytest.mark.parametrize("size", [64, 8192])
def test_the_longest_that_fit(tmp_path, size):
    board = Folder(str(tmp_path))
    provision.set_secret(board, "A" * 64, "x" * size)
    assert len((tmp_path / "state/secrets" / ("A" * 64)).read_text()) == size


def test_at_most_eight_networks(tmp_path):
    board = Folder(str(tmp_path))
    for number in range(8):
        provision.join(board, f"net-{number}", "password-" + str(number))
    with pytest.raises(ClawError, match="at most 8 networks"):
        provision.join(board, "net-8", "password-8")
    assert len(provision.networks(board)[1]) == 8


def test_a_damaged_file_is_no_reason_to_overwrite_it(tmp_path):
    (tmp_path / "wifi.json").write_text('{"networks": [')
    with pytest.raises(ClawError, match="wifi.json is damaged") as caught:
        provision.join(Folder(str(tmp_path)), "S", "12345678")
    assert (
        caught.value.__context__ is None
        and (tmp_path / "wifi.json").read_text() == '{"networks": ['
    )

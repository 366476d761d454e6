"""Long campaigns: the decoders under many more mutations than `make test` has time for.

Those of whole projects and images are tests/host/manifest/test_fuzzed_*.py.

`make soak` prints the seed; `make soak SEED=N` repeats a run.  Each campaign counts what it did and
fails when it did nothing."""

import importlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mutations import flipped

from clawlite.core.base.errors import CBORError, ParseError
from clawlite.core.formats import cbor
from clawlite.core.image.image import Image
from clawlite.core.line.frame import Framer
from clawlite.linux.io import jsontext

pytestmark = pytest.mark.soak

ROOT = Path(__file__).resolve().parents[2]
SEED = int(os.environ.get("CLAWLITE_SEED", "1"))
COUNT = int(os.environ.get("CLAWLITE_SOAK", "20000"))


def test_cbor():
    random_ = random.Random(SEED)
    whole = (ROOT / "tests" / "golden" / "gates" / "claw.cbor").read_bytes()
    image = Image(lambda offset, length: whole[offset : offset + length], len(whole))
    records = [image.part(3, *image.row(name)[1:3]) for name in image.names]
    refused = 0
    for _ in range(COUNT * 5):
        try:
            cbor.decode(flipped(random_.choice(records), random_))
        except CBORError:
            refused += 1
    assert refused > COUNT


def test_json_decoders_agree(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "firmware-host" / "micropython" / "base"))
    board = importlib.import_module("jsontext")
    random_ = random.Random(SEED)
    texts = [
        line.encode()
        for line in (ROOT / "tests" / "golden" / "gates-operator.golden.json")
        .read_text()
        .splitlines()
    ]
    accepted = 0
    for _ in range(COUNT * 5):
        data = flipped(random_.choice(texts), random_)
        answers = []
        for decoder in (jsontext.loads, board.loads):
            try:
                answers.append((True, decoder(data)))
            except ParseError:
                answers.append((False, None))
        assert answers[0] == answers[1], data
        accepted += answers[0][0]
    assert accepted > 0


def test_framer_stays_within_its_bounds():
    random_ = random.Random(SEED)
    for _ in range(COUNT // 10):
        framer = Framer(64, random_.random() < 0.5)
        data = bytes(random_.choice(b"\n\r\x1ea{") for _ in range(random_.randrange(2000)))
        while data:
            size = random_.randint(1, 300)
            framer.feed(data[:size])
            data = data[size:]
            while framer.next_event():
                pass
            assert len(framer._open) <= 64


def test_kill_at_any_moment_leaves_a_whole_image(tmp_path):
    """`clawlite build` is killed while it works: the image on disk is the old one or the new
    one, never a piece.
    """
    random_ = random.Random(SEED)
    command = [sys.executable, "-m", "clawlite"]
    environment = dict(os.environ, PYTHONPATH=str(ROOT))
    project = tmp_path / "g"
    subprocess.run(
        [*command, "new", str(project)], check=True, env=environment, capture_output=True
    )
    began = time.monotonic()
    subprocess.run(
        [*command, "build", str(project)], check=True, env=environment, capture_output=True
    )
    took = time.monotonic() - began
    for number in range(max(10, COUNT // 200)):
        text = (project / "reflex.toml").read_text()
        (project / "reflex.toml").write_text(text + f"# {number}\n")
        process = subprocess.Popen(
            [*command, "build", str(project)],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            process.wait(random_.uniform(0, took * 1.2))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
        data = (project / "claw.cbor").read_bytes()
        Image(lambda offset, length: data[offset : offset + length], len(data))

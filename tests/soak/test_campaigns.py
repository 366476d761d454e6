"""Long campaigns: the decoders and the compiler under many more mutations than `make test` has time for.

`make soak` prints the seed; `make soak SEED=N` repeats a run.  Each campaign counts what it did and fails when it did nothing.
"""
import importlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clawlite.core import cbor
from clawlite.core.errors import CBORError, ClawError, ImageError, ParseError
from clawlite.core.frame import Framer
from clawlite.core.image import Image
from clawlite.host import compiler, manifest
from clawlite.linux import jsontext

pytestmark = pytest.mark.soak

ROOT = Path(__file__).resolve().parents[2]
SEED = int(os.environ.get("CLAWLITE_SEED", "1"))
COUNT = int(os.environ.get("CLAWLITE_SOAK", "20000"))


def mutated(random_, data: bytes) -> bytes:
    """Return *data* with one to four bytes flipped, doubled, dropped, or cut."""
    data = bytearray(data)
    for _ in range(random_.randint(1, 4)):
        at = random_.randrange(len(data)) if data else 0
        kind = random_.randrange(5)
        if kind == 0 and data:
            data[at] ^= 1 << random_.randrange(8)
        elif kind == 1:
            data[at:at] = bytes([random_.randrange(256)])
        elif kind == 2 and data:
            del data[at:at + random_.randint(1, 8)]
        elif kind == 3:
            data[at:at] = data[at:at + random_.randint(1, 40)]
        else:
            del data[at:]
    return bytes(data)


@pytest.mark.parametrize("name", ["greenhouse", "gates"])
def test_images(name):
    random_ = random.Random(SEED)
    whole = (ROOT / "tests" / "golden" / name / "claw.cbor").read_bytes()
    refused = 0
    for _ in range(COUNT):
        data = mutated(random_, whole)
        try:
            image = Image(lambda offset, length: data[offset:offset + length], len(data))
            for tool in image.names:
                image.tool(tool)
        except ImageError:
            refused += 1
    assert refused > COUNT * 0.9


def test_cbor():
    random_ = random.Random(SEED)
    whole = (ROOT / "tests" / "golden" / "gates" / "claw.cbor").read_bytes()
    image = Image(lambda offset, length: whole[offset:offset + length], len(whole))
    records = [image.part(3, *image.row(name)[1:3]) for name in image.names]
    refused = 0
    for _ in range(COUNT * 5):
        try:
            cbor.decode(mutated(random_, random_.choice(records)))
        except CBORError:
            refused += 1
    assert refused > COUNT


def test_json_decoders_agree(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "firmware-host" / "micropython"))
    board = importlib.import_module("jsontext")
    random_ = random.Random(SEED)
    texts = [line.encode() for line in (ROOT / "tests" / "golden" / "gates-operator.golden.json").read_text().splitlines()]
    accepted = 0
    for _ in range(COUNT * 5):
        data = mutated(random_, random_.choice(texts))
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


def test_manifests(tmp_path):
    random_ = random.Random(SEED)
    source = ROOT / "tests" / "golden" / "gates"
    files = {path.name: path.read_bytes() for path in source.iterdir() if path.name != "claw.cbor"}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    built = refused = 0
    for _ in range(COUNT // 20):
        name = random_.choice(sorted(files))
        (tmp_path / name).write_bytes(mutated(random_, files[name]))
        try:
            compiler.build(manifest.load(tmp_path))
            built += 1
        except ClawError as e:
            assert str(e)
            refused += 1
        (tmp_path / name).write_bytes(files[name])
    assert built and refused


def test_kill_at_any_moment_leaves_a_whole_image(tmp_path):
    """`clawlite build` is killed while it works: the image on disk is the old one or the new one, never a piece."""
    random_ = random.Random(SEED)
    command = [sys.executable, "-m", "clawlite"]
    environment = dict(os.environ, PYTHONPATH=str(ROOT))
    project = tmp_path / "g"
    subprocess.run([*command, "new", str(project)], check=True, env=environment, capture_output=True)
    began = time.monotonic()
    subprocess.run([*command, "build", str(project)], check=True, env=environment, capture_output=True)
    took = time.monotonic() - began
    for number in range(max(10, COUNT // 200)):
        text = (project / "reflex.toml").read_text()
        (project / "reflex.toml").write_text(text + f"# {number}\n")
        process = subprocess.Popen([*command, "build", str(project)], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(random_.uniform(0, took * 1.2))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
        data = (project / "claw.cbor").read_bytes()
        Image(lambda offset, length: data[offset:offset + length], len(data))

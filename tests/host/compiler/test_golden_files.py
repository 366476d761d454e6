"""The golden images and transcripts are what today's sources give: they cannot go stale unseen."""

import importlib.util
import pathlib

import pytest

GOLDEN = pathlib.Path(__file__).parents[2] / "golden"
spec = importlib.util.spec_from_file_location("record", GOLDEN / "record.py")
record = importlib.util.module_from_spec(spec)
spec.loader.exec_module(record)


def test_golden_images_are_what_the_compiler_builds():
    for path, data in record.files().items():
        assert path.read_bytes() == data, (
            f"{path.name} is stale: run tests/golden/record.py and read the difference"
        )


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.steps.json")), ids=lambda path: path.stem)
def test_golden_transcripts_are_what_their_steps_give(path):
    golden = path.with_name(path.name.replace(".steps.", ".golden."))
    assert golden.read_text() == record.text(record.transcript(path))

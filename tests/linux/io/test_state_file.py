"""What a channel keeps over a restart: whole, or told to be damaged."""

import os

from clawlite.linux.io.state_file import StateFile

PAIRED = {"paired": ["ann", "b\u00f6b"], "last": 7}


def test_it_is_there_again_and_its_owners(tmp_path):
    state = StateFile(str(tmp_path), "jobs")
    state.data = dict(PAIRED)
    assert state.save() == "" and StateFile(str(tmp_path), "jobs").data == PAIRED
    assert (tmp_path / "jobs.json").stat().st_mode & 0o777 == 0o600


def test_a_file_of_an_earlier_version_is_read(tmp_path, capfd):
    (tmp_path / "jobs.json").write_text('{"paired":["ann"]}')
    assert (
        StateFile(str(tmp_path), "jobs").data == {"paired": ["ann"]}
        and capfd.readouterr().err == ""
    )


def test_each_flipped_bit_is_told_and_the_file_is_set_aside(tmp_path, capfd):
    path = tmp_path / "jobs.json"
    state = StateFile(str(tmp_path), "jobs")
    state.data = dict(PAIRED)
    state.save()
    data = path.read_bytes()
    for at in range(8 * len(data)):
        changed = bytearray(data)
        changed[at // 8] ^= 1 << at % 8
        path.write_bytes(changed)
        assert StateFile(str(tmp_path), "jobs").data == {}, at
        assert "was damaged and starts empty" in capfd.readouterr().err, at
        assert (tmp_path / "jobs.json.damaged").read_bytes() == changed and not os.path.exists(path)
        (tmp_path / "jobs.json.damaged").unlink()


def test_a_file_that_cannot_be_set_aside_is_told(tmp_path, capfd):
    (tmp_path / "jobs.json").write_text("{")
    for end in ("", *(".%d" % number for number in range(2, 9))):
        (tmp_path / ("jobs.json.damaged" + end)).mkdir()
    assert (
        StateFile(str(tmp_path), "jobs").data == {}
        and "cannot be set aside" in capfd.readouterr().err
    )

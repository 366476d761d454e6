"""The files in which limits are counted, by several processes and over faults."""

import os

from clawlite.linux.runtime.meters import CounterFile


def test_what_two_count_while_one_cannot_write_is_all_there(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path))
    one, two = CounterFile("shed", "meters", True), CounterFile("shed", "meters", True)
    assert one.count_use([["tokens", 1, 1]])
    os.mkdir(tmp_path / "shed/meters.json.new")  # in the way of what is written
    assert one.count_use([["tokens", 1, 2]]) and one.load() == {"tokens": [1, 3]}
    assert one.count_use([["tokens", 1, 4]]) and one.load() == {"tokens": [1, 7]}
    os.rmdir(tmp_path / "shed/meters.json.new")
    assert two.count_use([["tokens", 1, 100]])
    assert one.load() == {"tokens": [1, 107]}
    assert one.count_use([["tokens", 1, 8]])
    assert one.load() == two.load() == {"tokens": [1, 115]}
    assert capfd.readouterr().err.count("cannot be written") == 1
    os.mkdir(tmp_path / "shed/meters.json.new")
    assert one.count_use([["tokens", 2, 5]]) and one.load() == {"tokens": [2, 5]}
    assert capfd.readouterr().err.count("cannot be written") == 1, "told anew"

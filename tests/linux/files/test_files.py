"""Names and words of files that several parts of an agent share."""

from clawlite.linux.files.files import aside


def test_the_first_damaged_file_is_never_lost(tmp_path):
    path = str(tmp_path / "meters.json")
    names = []
    for _ in range(10):
        names.append(aside(path))
        with open(names[-1], "w"):
            pass
    assert names[:3] == [path + ".damaged", path + ".damaged.2", path + ".damaged.3"]
    assert names[7:] == [path + ".damaged.8"] * 3

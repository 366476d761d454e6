"""What does not fit 32 bits: numbers of limits, times, addresses and sizes, on machines of every
word length.
"""

import pytest


@pytest.mark.parametrize(
    "limits",
    [
        {"memory_mb": 4096},
        {"memory_mb": 1 << 20},
        {"max_open_files": 1 << 20},
        {"timeout_ms": 1 << 32},
        {"max_processes": 1 << 20},
    ],
    ids=lambda limits: "%s-%d" % next(iter(limits.items())),
)
def test_limits_beyond_a_word_are_no_error(place, limits):
    assert place.shell("echo runs", **limits)["output"] == "runs\n"


def test_times_beyond_2038(place):
    mounts = [[str(place.folder / "ws"), True]]
    said = place.shell(
        "echo x > late && touch -d @4300000000 late && stat -c %Y late && rm late", mounts=mounts
    )
    assert said["output"] == "4300000000\n"
    body = (
        "    os.chdir(%r)\n    open('late', 'w').close()\n    os.utime('late', (1, "
        "4300000000))\n    found = int(os.stat('late').st_mtime)\n    os.unlink('late')\n    "
        "return found\n"
    )
    assert place.python(body % mounts[0][0], mounts=mounts) == 4300000000


def test_files_beyond_a_word(place):
    said = place.shell(
        "truncate -s 5000000000 big && wc -c < big && tail -c 3 big | wc -c && rm big"
    )
    assert said["output"].split() == ["5000000000", "3"]

"""A /proc that hides (hidepid=invisible): also from a user its own processes, when nobody may
look into them.
"""

import pytest
from agents import eventually
from sandbox_places import host

FUNCTION = ["function", "tools.py", "def f():\n    return 1\n", "f", {}]


@pytest.fixture(scope="module", params=["N-user", "N-root", "L-user", "L-root"])
def place(request):
    profile, _, user = request.param.partition("-")
    with host(profile, user == "root", proc="hidepid=invisible") as one:
        assert one.ask(report=True)["profile"] == profile
        yield one


def test_what_a_call_beside_it_has_is_left_alone(place):
    """A supervisor that cannot be seen is there all the same: its call's secrets are not what a
    killed one left.
    """
    begun, other, seen = (place.folder / "ws" / name for name in ("begun", "other", "seen"))
    first = place.ask(
        start=True,
        profile={"injection": 2},
        files={"MINE": "mine"},
        job=[
            "command",
            [
                "sh",
                "-c",
                "touch begun; until test -e other; do sleep "
                "0.05; done; cp $MINE_FILE seen; touch begun; "
                "sleep 60",
            ],
        ],
    )["number"]
    eventually(begun.exists)
    begun.unlink()
    good, value = place.ask(
        profile={"injection": 2}, files={"OTHER": "x"}, job=["command", ["sh", "-c", "touch other"]]
    )["outcome"]
    assert good, value
    eventually(begun.exists)
    place.ask(cancel=first)
    assert seen.read_text() == "mine"
    for one in (begun, other, seen):
        one.unlink()


def test_what_cannot_be_counted_is_refused_by_name(place):
    is_blind = place.profile == "L" and not place.root
    good, value = place.run(FUNCTION, max_processes=10)
    assert good is not is_blind and (
        good
        or value[1] == -32010
        and "max_processes" in value[2]
        and "hidepid" in value[2]
        and value[3]
    ), value
    assert place.ask(report=True)["limits"]["max_processes"].startswith("refused") is is_blind
    job = [
        "function",
        "tools.py",
        "import os\ndef f():\n    return os.environ['SECRET']\n",
        "f",
        {},
        False,
        {"SECRET": "held"},
    ]
    assert (
        place.run(job) == (True, "held")
        and place.run(job, memory_mb=256) == (True, "held")
        and place.run(FUNCTION, memory_mb=256) == (True, 1)
    )


TREE = """import os, time
def f():
    keep = bytearray(40 << 20)
    os.fork()
    keep[::4096] = b"x" * len(keep[::4096])
    time.sleep(3600)
"""


def test_the_memory_of_who_holds_a_secret_is_counted(place):
    """Its supervisor has to see it: where memory_mb is watched it does not hide."""
    good, value = place.run(
        ["function", "tools.py", TREE, "f", {}, False, {"SECRET": "held"}], memory_mb=80
    )
    assert not good and "memory_mb" in value[2], value


def test_a_program_that_nobody_may_look_into_ends_the_call(place):
    text = 'cp /bin/sleep "$TMPDIR/program"; chmod 0111 "$TMPDIR/program"; "$TMPDIR/program" 3600'
    if not (place.profile == "L" and place.root):  # there the supervisor is root, and may
        assert place.shell(text, memory_mb=64)["ended"] == "memory_mb"


def test_the_memory_of_a_tree_that_can_be_seen_is_counted(place):
    text = (
        'python3 -c \'import os, time; a = bytearray(40 << 20); os.fork(); a[::4096] = b"x" * '
        "len(a[::4096]); time.sleep(3600)'"
    )
    assert place.shell(text, memory_mb=64)["ended"] == "memory_mb"


def test_a_limit_that_is_relaxed_is_kept_as_far_as_it_can_be():
    with host("L", False, proc="hidepid=invisible", relaxed=["max_processes"]) as place:
        body = """    n = 0
    try:
        while n < 1000:
            if os.fork() == 0:
                os._exit(0)
            n += 1
    except OSError:
        pass
    return n
"""
        # what else this user ran as the call began, and has ended since, leaves room for more
        assert 0 < place.python(body, max_processes=30) < 1000

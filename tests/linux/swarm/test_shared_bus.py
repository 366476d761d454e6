"""One end of a swarm's bus for all members that one process is: boards behind a gateway."""

import os

import pytest
from swarm_world import KINDS, World, now_ms, task, wall_ms

from clawlite.linux.swarm.bus import Bus
from clawlite.linux.swarm_commands.shared_bus import SharedBus


class Boards:
    """Members of "hand" that share an end; it stands among the ends of the world."""

    def __init__(self, world, count: int):
        self.bus = world.bus()
        self.shared = SharedBus(self.bus, now_ms)
        self.ends = []
        for number in range(count):
            end = self.shared.end(number)
            end.join("hand", 1)
            self.ends.append(end)


@pytest.fixture(params=KINDS)
def world(request, tmp_path):
    made = World(request.param, tmp_path)
    yield made
    made.close()


def present(lead) -> list:
    return sorted(lead.present().get("hand", ()))


def test_each_is_there_and_what_it_holds_is_its_own(world):
    lead, boards = world.bus("lead", 0), Boards(world, 3)
    world.until(lambda: present(lead) == [True] * 3)
    world.done(lead.put(task(0)))
    first, second, _ = boards.ends
    taken = world.until(lambda: first.take("hand", True, None))
    world.until(lambda: present(lead) == [False, True, True])
    assert first.holds(taken.id) and not second.holds(taken.id)
    assert not world.done(second.begins(taken.id)) and world.done(first.begins(taken.id))
    first.report(taken.id, "completed", {"text": "Dry."}, None, 0, "hand", True)
    world.until(lambda: lead.outcome(taken.id))
    world.until(lambda: present(lead) == [True] * 3)


def test_what_one_that_has_gone_was_at_begins_again_with_another(world):
    lead, boards = world.bus("lead", 0), Boards(world, 2)
    first, second = boards.ends
    world.done(lead.put(task(0)))
    taken = world.until(lambda: first.take("hand", True, None))
    first.leave()
    world.until(lambda: present(lead) == [True])
    again = world.until(lambda: second.reclaim(2, True) or second.take("hand", True, None))
    if isinstance(again, list):
        assert again == [(taken.id, "waiting", "its process ended")]
        again = world.until(lambda: second.take("hand", True, None))
    assert again.id == taken.id and second.holds(taken.id)


def test_each_has_the_new_reports_also_of_a_file_that_was_made_anew(tmp_path, capfd):
    bus = Bus(str(tmp_path / "swarm"), wall_ms, os.urandom)
    shared = SharedBus(bus, now_ms)
    ends = [shared.end(number) for number in range(2)]
    for end in ends:
        end.join("hand", 1)
    for _ in range(2):
        bus.put(task(0))
        bus.report(task(0).id, "completed", {}, None, 0, "hand")
        assert [end.new_reports() for end in ends] == [[task(0).id]] * 2
        assert [end.new_reports() for end in ends] == [[]] * 2
        (tmp_path / "swarm" / "swarm.db").unlink()
    bus.leave()
    assert "swarm.db was removed or replaced" in capfd.readouterr().err


def test_those_look_that_have_something_to_do(world):
    lead, boards = world.bus("lead", 0), Boards(world, 5)
    world.until(lambda: present(lead) == [True] * 5)
    world.ends.remove(boards.bus)  # its news are those of ``shared``

    def looked(most=1) -> set:
        found: set = set()

        def came():
            found.update(boards.shared.poll())
            return len(found) >= most

        world.until(came)
        return found

    for number in range(2):
        world.done(lead.put(task(number)))
    assert looked(2) == {0, 1}  # of five that are free
    world.until(lambda: boards.shared.poll() or boards.ends[1].take("hand", True, None))
    lead.broadcast("lead", {"all": True})
    assert looked(5) == {0, 1, 2, 3, 4}
    assert boards.ends[4].messages() == [("lead", {"all": True})]
    boards.ends[3].broadcast("hand", {"said": True})
    assert looked(4) >= {0, 1, 2, 4}
    assert boards.ends[0].messages() == [("lead", {"all": True}), ("hand", {"said": True})]
    assert boards.ends[3].messages() == [("lead", {"all": True})]
    world.ends.append(boards.bus)

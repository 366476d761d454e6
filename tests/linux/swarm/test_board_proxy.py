"""``clawlite swarm stand-in``: one process that is each member that is a board behind a gateway."""

import json
import resource

from agents import Agent, eventually, linux
from swarm_team import look_on, project


def test_more_boards_than_the_usual_limit_of_descriptors_allows(tmp_path):
    image = project(tmp_path, "hand")

    def few():
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, most))

    command = linux("swarm", "stand-in")
    with Agent(command, tmp_path, preexec_fn=few) as gateway:
        for number in range(40):
            gateway.line(json.dumps({"device": "board%d" % number, "join": image}))
        look = look_on(tmp_path)
        eventually(lambda: len(look.present().get("hand", ())) == 40)
        look.leave()
        gateway.end()
        assert gateway.wait() == 0 and gateway.text() == ""


def test_when_the_process_is_killed_all_of_its_boards_are_gone(tmp_path):
    image = project(tmp_path, "hand")
    with Agent(linux("swarm", "stand-in"), tmp_path) as gateway:
        for number in range(3):
            gateway.line(json.dumps({"device": "board%d" % number, "join": image}))
        look = look_on(tmp_path)
        eventually(lambda: len(look.present().get("hand", ())) == 3)
        gateway.line(json.dumps({"device": "board1", "gone": True}))
        eventually(lambda: len(look.present().get("hand", ())) == 2)
    eventually(lambda: "hand" not in look.present())
    look.leave()

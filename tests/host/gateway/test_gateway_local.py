"""Boards understand plain language by the local model of their gateway's machine: real MicroPython,
``clawlite gateway``, and the real model.
"""

from pathlib import Path

import local_model
import pytest
from gateways import HEAP, flashed, gateway, says, script
from local_model import needs_model
from sims import needs_micropython, needs_mpy_cross

from clawlite.core.image.image import Image
from clawlite.host.builder.build import build_beside
from clawlite.host.gateway.device import MAX_SPEAKER, _read_speaker
from clawlite.host.proxy.proxy import Runner
from clawlite.host.sim.sim import Sim

pytestmark = [needs_micropython, needs_mpy_cross]
SAY = '[local.say]\nread-soil = "The soil has {percent} % of water."\n[gateway]\n'


# that of a Pico W is 386k, in words of 64 bits
TAUGHT_HEAP = "280k"


def board(tmp_path, firmware, more: str = "", name: str = "garden", heap: str = HEAP, **how):
    """Build an agent for a board behind a gateway; return its folder and its virtual board."""
    folder = tmp_path / name
    local_model.project(folder, more=more + SAY, **how)
    image = build_beside(str(folder))
    return folder, Sim(
        folder=str(flashed(image, tmp_path / (name + "-flash"), firmware)), heap=heap
    )


def _serve(tmp_path, *words):
    """Start the gateway with the model, in a network of its own without a network."""
    env = local_model.environment(tmp_path)
    return gateway(tmp_path, *words, popen={"preexec_fn": local_model.alone}, **env)


@needs_model
def test_a_sentence_reads_waters_after_an_approval_and_asks_back(tmp_path, state, firmware):
    folder, sim = board(tmp_path, firmware, approve="require-approval")
    with sim, _serve(tmp_path, folder, "--port", sim.path) as running:
        assert says(running, "runs garden")
        said = script(
            tmp_path,
            sim.facts["id"],
            "how wet is the soil",
            "water for 5 seconds",
            "y",
            "water the plants",
            "20 seconds",
            "y",
            "don't water",
            "tell me a joke",
        )
    assert "The soil has 34 % of water." in said
    assert "Approve water(seconds=5)?" in said and "Watered for 5 s." in said
    assert "water: how many seconds?" in said
    assert "Approve water(seconds=20)?" in said and "Watered for 20 s." in said
    assert "I did nothing: you said what is not to be done." in said
    assert "I did not understand that as one of my tools." in said


RULES = '[[rule]]\nwhen = "*"\nsay = "By rule."\n'


@needs_model
def test_what_it_does_not_understand_the_next_provider_of_the_board_answers(
    tmp_path, state, firmware
):
    folder, sim = board(tmp_path, firmware, rules=RULES)
    with sim, _serve(tmp_path, folder, "--port", sim.path) as running:
        assert says(running, "runs garden")
        said = script(tmp_path, sim.facts["id"], "tell me a joke", "water for 5 seconds")
    assert "By rule." in said and "Watered for 5 s." in said and "I did not understand" not in said


READING = """[[reading]]
name = "soil"
tool = "read-soil"
field = "percent"
every = "1s"
"""


@needs_model
def test_a_board_understands_waters_learns_rehearses_and_forgets(tmp_path, state, firmware):
    folder, sim = board(
        tmp_path, firmware, "[teach]\n", heap=TAUGHT_HEAP, approve="require-approval", rules=READING
    )
    with sim, _serve(tmp_path, folder, "--port", sim.path) as running:
        assert says(running, "runs garden")
        said = script(
            tmp_path,
            sim.facts["id"],
            "is the bed too dry",
            "give the tomatoes a drink for 4 seconds",
            "y",
            "y",
            "every day at 7 give the tomatoes a drink for 5 seconds if the soil is below 30",
            "y",
            "/rules taught",
            "/rehearse water-1",
        )
        said += script(tmp_path, sim.facts["id"], "/rules forget water-1", "/rules taught")
    assert "Approve water(seconds=4)?" in said and "Watered for 4 s." in said
    row = "water-1: Each day at 07:00 (UTC), if soil < 30: call water(seconds=5)."
    assert "Teach this rule?" in said and "Taught: " + row in said
    assert said.count(row) == 3 and "It plays what is on record" in said
    assert "Rule water-1 is forgotten." in said and "Nothing was taught yet." in said


def test_a_gateway_without_the_model_says_so_and_the_next_provider_answers(
    tmp_path, state, firmware
):
    folder, sim = board(tmp_path, firmware, rules=RULES)
    none = tmp_path / "none"
    none.mkdir()
    with sim, gateway(tmp_path, folder, "--port", sim.path, CLAWLITE_LOCAL=none) as running:
        assert says(running, "runs garden")
        said = script(tmp_path, sim.facts["id"], "water for 5 seconds")
        assert says(running, "clawlite local fetch")
    assert "By rule." in said and "the local model is not on this machine" in said
    assert said.count("local model") == 1 and "Watered" not in said


@pytest.mark.parametrize(
    "told, speaker",
    [
        (["console", True], ("console", True)),
        (["telegram/7", False], ("telegram/7", False)),
        (["x", 1], ("x", False)),
        (["y" * 500, True], ("y" * MAX_SPEAKER, True)),
        (None, None),
        ("console", None),
        ([True, True], None),
        (["console"], None),
        ({"0": "console"}, None),
    ],
)
def test_who_speaks_is_untrusted_input(told, speaker):
    assert _read_speaker(told) == speaker


def test_runners_at_the_proxy_are_not_offered_it(tmp_path):
    local_model.project(tmp_path / "garden", more=SAY)
    data = Path(build_beside(str(tmp_path / "garden"))).read_bytes()
    image = Image(lambda offset, length: data[offset : offset + length], len(data), 8)
    assert Runner("runner", image, None, None, lambda: {}).providers == []

"""What the local model is for, whole: a new agent without a key and without a network understands a
sentence that no pattern has, waters after an approval, and learns, rehearses and forgets a rule.
"""

from pathlib import Path

from agents import Agent, clawlite, linux
from local_model import TIMEOUT_MS, alone, environment, needs_model

from clawlite.core.image.image import REFLEX, Image
from clawlite.core.providers.reflex import Reflex
from clawlite.protocols.teach.clause import propose

CLAUSE = "give the tomatoes a drink for 5 seconds"


def _new(tmp_path) -> Path:
    done = clawlite("new", "garden", "--local", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    settings = tmp_path / "garden" / "clawlite.toml"
    settings.write_text(settings.read_text() + "\n[local]\ntimeout_ms = %d\n" % TIMEOUT_MS)
    assert clawlite("build", cwd=tmp_path / "garden").returncode == 0
    return tmp_path / "garden"


def _children(pid: int) -> list:
    words = Path("/proc/%d/task/%d/children" % (pid, pid)).read_text().split()
    return [one for child in words for one in (int(child), *_children(int(child)))]


@needs_model
def test_a_new_agent_understands_waters_learns_rehearses_and_forgets(tmp_path):
    folder = _new(tmp_path)
    data = (folder / "claw.cbor").read_bytes()
    image = Image(lambda offset, length: data[offset : offset + length], len(data), 8)
    patterns = Reflex(image.section(REFLEX))
    # neither the patterns nor the words of the tools have it: the model reads it
    assert not patterns.fits("is the bed too dry") and not patterns.fits(CLAUSE)
    found = propose(CLAUSE, image, None)
    assert found is None or found.question
    env = environment(tmp_path)
    with Agent(
        linux("run", folder), tmp_path, terminal=True, env={**env, "TERM": "dumb"}, preexec_fn=alone
    ) as agent:
        agent.expect("> ")
        agent.line("is the bed too dry")
        agent.expect(" %.\n")
        agent.line("give the tomatoes a drink for 4 seconds")
        agent.expect("Did you mean: water, seconds 4? [y/N]\n")
        agent.line("y")
        agent.expect("Approve water(seconds=4)?")
        agent.line("y")
        agent.expect("Watered for 4 s")
        agent.line("every day at 7 " + CLAUSE)
        agent.expect("Teach this rule?\n")
        agent.expect("water-1: Each day at 07:00 (UTC): call water(seconds=5).\n")
        agent.expect("it would have run once, at 7:00, 5 s in all.")
        agent.line("y")
        agent.expect("Taught: water-1")
        # who reads sentences and who reads clauses share one process, and its engine
        assert len(_children(agent.process.pid)) == 2
        agent.line("/rehearse water-1")
        agent.expect("water-1")
        agent.line("/rules taught")
        agent.expect("water-1: Each day at 07:00 (UTC): call water(seconds=5).")
        agent.line("/rules forget water-1")
        agent.expect("Rule water-1 is forgotten.")
        agent.line("/rules taught")
        agent.expect("Nothing was taught yet.")

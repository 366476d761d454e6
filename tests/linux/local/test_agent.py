"""An agent with builtin:local, whole, in a network namespace without a network."""

import json
import os
import select
import subprocess
import sys

from local_model import alone, environment, in_turn, needs_model, project

CLAWLITE = [sys.executable, "-m", "clawlite"]


def _play(tmp_path, lines: str, **how):
    made = project(tmp_path / "agent", **how)
    env = environment(tmp_path)
    return subprocess.run(
        CLAWLITE + ["run", str(made)],
        input=lines,
        capture_output=True,
        text=True,
        env=env,
        timeout=900,
        preexec_fn=alone,
    )


@needs_model
def test_a_sentence_reads_a_question_waters_and_a_negation_does_nothing(tmp_path):
    done = _play(
        tmp_path,
        "how wet is the soil\nwater the plants\n20 seconds\ndon't water\ntell me a joke\n",
        more='[local.say]\nread-soil = "The soil has {percent} %."\n',
    )
    said = done.stdout.splitlines()
    assert "The soil has 34 %." in said, done.stdout + done.stderr
    assert "water: how many seconds?" in said and "Watered for 20 s." in said
    assert "I did nothing: you said what is not to be done." in said
    assert any(line.startswith("I did not understand that") for line in said)
    assert "seconds=" not in done.stdout


@needs_model
def test_policy_and_approval_follow_as_ever(tmp_path):
    done = _play(tmp_path, "water for 5 seconds\ny\n", approve="require-approval")
    assert "Approve water(seconds=5)?" in done.stdout and "Watered for 5 s." in done.stdout


@needs_model
def test_its_processes_end_with_a_killed_agent(tmp_path):
    made = project(tmp_path / "agent")
    agent = subprocess.Popen(
        CLAWLITE + ["run", str(made)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(tmp_path),
        preexec_fn=in_turn,
    )
    agent.stdin.write("how wet is the soil\n")
    agent.stdin.flush()
    while "34" not in agent.stdout.readline():
        pass
    below = _children(agent.pid)
    assert len(below) == 2
    watched = [os.pidfd_open(pid) for pid in below]
    agent.kill()
    agent.wait()
    for fd in watched:
        assert select.select([fd], [], [], 60)[0]
        os.close(fd)
    agent.stdin.close()
    agent.stdout.close()


def _children(pid: int) -> list:
    found = []
    with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
        for child in map(int, file.read().split()):
            found += [child, *_children(child)]
    return found


def test_without_engine_the_next_provider_answers(tmp_path):
    made = project(tmp_path / "agent", rules='[[rule]]\nwhen = "* wet *"\nsay = "Ask later."\n')
    env = dict(environment(tmp_path), CLAWLITE_LOCAL=str(tmp_path))
    done = subprocess.run(
        CLAWLITE + ["ask", "how wet is the soil", str(made)],
        capture_output=True,
        text=True,
        env=env,
    )
    assert done.stdout == "Ask later.\n"
    assert done.stderr.count("\n") == 1 and "clawlite local fetch" in done.stderr


def test_an_agent_without_it_loads_nothing_of_it(tmp_path):
    code = (
        "import sys; import clawlite.linux.runtime.shell, clawlite.linux.runtime.providers; "
        "print([name for name in sys.modules if '.local' in name or name in ('re', 'json')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert json.loads(done.stdout) == []


def test_an_agent_with_it_loads_little(tmp_path):
    code = (
        "import sys; import clawlite.linux.runtime.shell, clawlite.linux.runtime.providers; "
        "from clawlite.linux.local import model_client, offer, model_files as m; m.find_folder(); "
        "print([name for name in ('re', 'json', 'enum', 'socket', 'typing', 'ctypes', 'hashlib', "
        "'ssl', 'clawlite.linux.net.connections') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr

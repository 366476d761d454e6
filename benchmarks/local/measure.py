"""The numbers of the local model: how many sentences are understood, how long one takes, and how
much memory its engine has, and the agent more than one without it.

    python benchmarks/local/measure.py [--sentences] [--times] [--memory] [--growth] [--into FILE]

Without an option all four.  Raw rows are appended to FILE (benchmarks/local/results.jsonl): one of
each sentence, and one with what they come to.  Quiet machines give other times than busy ones: a
row says the load.
"""

import argparse
import json
import os
import platform
import pty
import select
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from clawlite.linux.local import confined, model_files  # noqa: E402
from clawlite.linux.local.evaluation import Evaluation, read_sentences, summary  # noqa: E402
from clawlite.linux.local.model_client import spawn  # noqa: E402

SETS = "greenhouse", "freezer", "hens", "home"
REPEATS = 7
MANY_TOOLS, MANY_EXAMPLES = 12, 300
CLAWLITE = [sys.executable, "-m", "clawlite"]
NO_RULE = "let it rain for four seconds"  # no rule of the greenhouse fits it
PROMPT = b"> "


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("sentences", "times", "memory", "growth"):
        parser.add_argument("--" + name, action="store_true")
    parser.add_argument("--into", default=str(HERE / "results.jsonl"))
    wanted = parser.parse_args()
    everything = not (wanted.sentences or wanted.times or wanted.memory or wanted.growth)
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        if wanted.sentences or everything:
            rows += play_sentences()
        if wanted.times or everything:
            rows += measure_times(cache)
        if wanted.memory or everything:
            rows.append(measure_memory())
        if wanted.growth or everything:
            rows += [measure_growth(cache, terminal) for terminal in (False, True)]
    with open(wanted.into, "a", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps({**machine(), **row}, ensure_ascii=False, sort_keys=True) + "\n")
    for row in rows:
        if row["what"] != "sentence":
            print(json.dumps(row, sort_keys=True))


def machine() -> dict:
    """Return what each row says of where it was measured."""
    return {
        "machine": platform.machine(),
        "processors": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "model": model_files.MODEL,
        "load": round(os.getloadavg()[0], 1),
    }


def read_setup(name: str) -> dict:
    """Return what an image would have for the local model, of the set *name*."""
    found = json.loads((HERE / (name + ".json")).read_text(encoding="utf-8"))
    found.update({"do": "setup", "timeout_ms": 60000, "idle_ms": 0, "warm": False, "say": {}})
    return found


def play_sentences() -> list:
    """Return a row for each sentence of all sets, and one for all of them."""
    rows, unmeant = [], 0
    for name in SETS:
        evaluation = Evaluation(read_setup(name))
        try:
            played = evaluation.play(read_sentences(str(HERE / (name + ".try.jsonl"))))
            unmeant += evaluation.count_unmeant(played)
        finally:
            evaluation.close()
        rows += [{"what": "sentence", "set": name, **row} for row in played]
    found = summary(rows, unmeant)
    good = found["right"] + found["asked"]
    share = {"right_or_asked_percent": round(100 * good / len(rows), 1)}
    return [*rows, {"what": "sentences", **found, **share}]


class Mind:
    """The process that understands sentences, as an agent starts it."""

    def __init__(self, setup: dict):
        self.pid, self._line = spawn()
        self._line.sendall(confined.frame(json.dumps(setup).encode()))

    def say(self, text: str) -> dict:
        asked = {"do": "propose", "text": text, "clause": False}
        self._line.sendall(confined.frame(json.dumps(asked).encode()))
        found = json.loads(confined.receive(self._line.recv))
        assert "error" not in found, found
        return found

    def end(self):
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        self._line.close()


def of_size(tools: int, examples: int) -> dict:
    """Return a setup with so many tools and examples, those of all sets one after the other."""
    setup = read_setup(SETS[0])
    setup["tools"], setup["examples"] = [], []
    for name in SETS:
        own = read_setup(name)
        known = {tool["name"] for tool in setup["tools"]}
        setup["tools"] += [tool for tool in own["tools"] if tool["name"] not in known]
        setup["examples"] += own["examples"]
    setup["tools"] = setup["tools"][:tools]
    names = {tool["name"] for tool in setup["tools"]}
    fitting = [one for one in setup["examples"] if one["tool"] in names or not one["tool"]]
    more = [dict(one, say="%s %d" % (one["say"], at)) for at in range(1, 99) for one in fitting]
    setup["examples"] = (fitting + more)[:examples]
    return setup


def measure_times(cache: str) -> list:
    """Return rows of the first sentence after a start, with vectors that were never computed and
    with those of the cache, and of the sentences after it; 8 tools.
    """
    setup = of_size(8, 40)
    first, later = [], []
    begun = time.monotonic()
    mind = Mind(setup)
    mind.say("water the tomatoes for 12 seconds")
    never_s = time.monotonic() - begun
    mind.end()
    for _ in range(REPEATS):
        begun = time.monotonic()
        mind = Mind(setup)
        mind.say("water the tomatoes for 12 seconds")
        first.append(time.monotonic() - begun)
        for text in ("how wet is the soil", "run the pump for 7 seconds", "tell me a joke") * 5:
            begun = time.monotonic()
            mind.say(text)
            later.append(time.monotonic() - begun)
        mind.end()
    return [
        {"what": "first sentence, new examples", "tools": 8, "s": round(never_s, 3)},
        spread("first sentence", first),
        spread("later sentences", later),
    ]


def spread(what: str, seconds: list) -> dict:
    ordered = sorted(seconds)
    return {
        "what": what,
        "tools": 8,
        "n": len(ordered),
        "min_s": round(ordered[0], 3),
        "p50_s": round(statistics.median(ordered), 3),
        "max_s": round(ordered[-1], 3),
        "s": [round(one, 3) for one in seconds],
    }


def measure_memory() -> dict:
    """Return a row of what engine and process have resident, with many tools and examples."""
    mind = Mind(of_size(MANY_TOOLS, MANY_EXAMPLES))
    mind.say("water the tomatoes for 12 seconds")
    children = Path("/proc/%d/task/%d/children" % (mind.pid, mind.pid)).read_text().split()
    found = {
        "what": "memory",
        "tools": MANY_TOOLS,
        "examples": MANY_EXAMPLES,
        "engine_rss_mb": sum(kilobytes(int(pid), "status", "VmRSS") for pid in children) / 1000,
        "process_rss_mb": kilobytes(mind.pid, "status", "VmRSS") / 1000,
    }
    mind.end()
    return found


def measure_growth(folder: str, terminal: bool) -> dict:
    """Return a row of what the greenhouse's process has for itself after a sentence that no rule
    fits, with the local model and without.

    terminal  it is asked at a terminal, else by a pipe
    """
    found = {}
    for option in ("--local", "--offline"):
        where = "%s/%s%d" % (folder, option.strip("-"), terminal)
        subprocess.run([*CLAWLITE, "new", where, option], check=True, capture_output=True)
        subprocess.run([*CLAWLITE, "run"], cwd=where, stdin=subprocess.DEVNULL, check=True)
        if option == "--local":
            with open(where + "/clawlite.toml", "a", encoding="utf-8") as file:
                file.write("\n[local]\ntimeout_ms = 60000\n")
        found[option] = statistics.median(ask_once(where, terminal) for _ in range(3))
    return {
        "what": "growth",
        "terminal": terminal,
        "with_kb": found["--local"],
        "without_kb": found["--offline"],
        "growth_kb": found["--local"] - found["--offline"],
    }


def ask_once(project: str, terminal: bool) -> int:
    """Return the private kB of *project*'s agent, once it has answered a sentence."""
    ours, theirs = pty.openpty()
    reads = theirs if terminal else subprocess.PIPE
    agent = subprocess.Popen([*CLAWLITE, "run"], cwd=project, stdin=reads, stdout=theirs)
    said = agent.stdin.fileno() if agent.stdin else ours
    read_until(ours, PROMPT if terminal else b"\n")
    os.write(said, NO_RULE.encode() + b"\n")
    read_until(ours, b"[y/N]" if "local" in Path(project).name else b"Try:")
    found = sum(
        kilobytes(agent.pid, "smaps_rollup", "Private_" + one) for one in ("Clean", "Dirty")
    )
    agent.kill()
    agent.wait()
    for fd in (ours, theirs):
        os.close(fd)
    if agent.stdin:
        agent.stdin.close()
    return found


def read_until(fd: int, wanted: bytes):
    """Read *fd* until *wanted* came."""
    found = b""
    while wanted not in found:
        assert select.select([fd], [], [], 300)[0], found
        found += os.read(fd, 65536)


def kilobytes(pid: int, file: str, field: str) -> int:
    for line in Path("/proc/%d/%s" % (pid, file)).read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    return 0


if __name__ == "__main__":
    main()

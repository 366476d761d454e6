"""One turn of clawlite beside other agents: ``agents.py PYTHON [-o FILE.jsonl]``, from ``make
bench-peers``.

PYTHON is that of an environment with agents.requirements.txt.  Each agent is started, asked
``howdy`` over plain HTTP by benchmarks/llm.py, which answers at once, and ends; in turns.  Each
must print the server's answer.  The first round is not counted: it compiles and makes folders.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from suites.provider import SAYS, Server  # noqa: E402
from targets import JudgedBench as Bench  # noqa: E402

from clawlite.core.base.errors import ClawError  # noqa: E402
from clawlite.host.bench.bench import text  # noqa: E402

HERE = Path(__file__).resolve().parent
# naive comes last: no agent, but what everybody would write first
PEERS = ("exoclaw", "nanobot-ai", "pythonclaw", "naive")
ROUNDS = 5
TEXT = "howdy"
# A small process starts each: what its parent had counts as a process' own memory (getrusage(2)).
_ONCE = """
import os, sys
_, status, used = os.wait4(os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ), 0)
with open(sys.argv[1], "w") as file:
    file.write("[%r, %d]" % (used.ru_utime + used.ru_stime, used.ru_maxrss))
sys.exit(os.waitstatus_to_exitcode(status) != 0)
"""
MODEL = "llama3.2"


def ours(bench: Bench, url: str) -> list:
    """Return the command of one turn of the greenhouse template over *url*."""
    from clawlite.host.builder.build import build_beside
    from clawlite.host.projects import new

    folder = os.path.join(bench.make("ours"), "greenhouse")
    new.new(folder, endpoint=url)
    main = os.path.join(bench.package, "clawlite", "__main__.py")
    return [sys.executable, "-I", "-S", main, "ask", TEXT, build_beside(folder)]


def command(name: str, python: str, home: str, url: str) -> tuple:
    """Return (command, what it reads) of one turn of the peer *name*, its settings in *home*."""
    beside = Path(python).parent
    if name == "naive":
        return [sys.executable, "-I", "-S", HERE / "naive_once.py", url, TEXT], b""
    if name == "exoclaw":
        return [python, HERE / "exoclaw_once.py", url, TEXT], b""
    if name == "nanobot-ai":
        settings = {
            "agents": {"defaults": {"model": MODEL, "provider": "custom"}},
            "providers": {"custom": {"apiKey": "none", "apiBase": url}},
        }
        path = _write(home, "nanobot.json", settings)
        words = ["agent", "-m", TEXT, "-c", path, "-w", os.path.join(home, "workspace")]
        return [beside / "nanobot", *words, "--no-markdown"], b""
    service = {"apiKey": "none", "baseUrl": url, "model": MODEL}
    _write(home, "pythonclaw.json", {"llm": {"provider": "deepseek", "deepseek": service}})
    return [beside / "pythonclaw", "chat"], TEXT.encode() + b"\nexit\n"


def _write(folder: str, name: str, settings: dict) -> str:
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(settings, file)
    return path


def turn(words: list, given: bytes, home: str, environment: dict) -> tuple:
    """Run one command to its end; return (milliseconds of processor time, MiB at most).

    Raises ``ClawError`` when it does not print the answer.
    """
    usage = os.path.join(home, "usage.json")
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _ONCE, usage, *words],
        env=environment,
        cwd=home,
        input=given,
        capture_output=True,
    )
    if SAYS.strip() not in done.stdout:
        said = (done.stderr or done.stdout)[-400:].decode(errors="replace")
        raise ClawError(
            f"{' '.join(map(str, words[:2]))} ended with {done.returncode} and did not print the "
            f"answer: {said}",
            "pip install -r benchmarks/peers/agents.requirements.txt",
        )
    with open(usage, encoding="ascii") as file:
        seconds, kib = json.load(file)
    return seconds * 1e3, kib / 1024


def rows(bench: Bench, python: str, rounds: int):
    """Yield rows: processor time, memory and request of one turn of each agent, and what ours takes
    of the fastest peer's time.
    """
    with Server(bench) as server:
        url = f"http://127.0.0.1:{server.port}/v1"
        homes = {name: bench.make(name) for name in ("clawlite", *PEERS)}
        commands = {name: command(name, python, homes[name], url) for name in PEERS}
        commands = {"clawlite": (ours(bench, url), b""), **commands}
        found: dict = {name: [] for name in commands}
        sizes = {}
        for _ in range(rounds + 1):
            for name, (words, given) in commands.items():
                home = homes[name]
                environment = {
                    "PATH": os.environ.get("PATH", os.defpath),
                    "HOME": home,
                    "PYTHONCLAW_HOME": home,
                    "CLAWLITE_STATE": os.path.join(home, "state"),
                }
                found[name].append(turn(words, given, home, environment))
                sizes[name] = len(server.last(1)[0])
    for name, samples in found.items():
        samples = samples[1:]
        milliseconds, most = ([one[at] for one in samples] for at in (0, 1))
        note = "processor time of the whole process"
        yield bench.row("peers", f"one turn, {name}", "ms", milliseconds, note=note)
        yield bench.row("peers", f"one turn, memory, {name}", "MiB", most, note="at most, VmHWM")
        yield bench.row(
            "peers", f"one turn, request, {name}", "B", [sizes[name]], note="head and body"
        )
    own, *others = (
        (name, statistics.median(one[0] for one in samples[1:])) for name, samples in found.items()
    )
    agents = [one for one in others if one[0] != "naive"] or others
    fastest = min(agents, key=lambda one: one[1])
    note = f"medians; the fastest is {fastest[0]}"
    yield bench.row(
        "peers", "one turn over the fastest agent", "ratio", [own[1] / fastest[1]], note=note
    )


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("python", help="that of an environment with agents.requirements.txt")
    parser.add_argument("-o", "--output", help="file that rows are added to, as JSON lines")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="samples of each; default 5")
    given = parser.parse_args(arguments)
    python = os.path.abspath(given.python)  # each runs in a folder of its own
    with tempfile.TemporaryDirectory(prefix="clawlite-bench-") as folder:
        try:
            for row in rows(Bench(folder, given.rounds), python, given.rounds):
                print(text(row), flush=True)
                if given.output:
                    with open(given.output, "a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")
        except (ClawError, OSError) as e:
            hint = getattr(e, "hint", "")
            print(f"clawlite: {getattr(e, 'message', e)}{hint and ' - ' + hint}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

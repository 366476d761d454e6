"""``clawlite local try``: how well the local model understands sentences for an agent's tools.

Nothing runs: the sentences are played against the tools and examples of the image alone.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

from clawlite.core.base.errors import ClawError
from clawlite.core.image.image import WIRE
from clawlite.linux.io.printing import print_line
from clawlite.linux.local.engine import Engine
from clawlite.linux.local.examples import NONE
from clawlite.linux.local.model_files import LocalError
from clawlite.linux.local.understanding import ACT, ASK, NOTHING, Proposal, Understanding
from clawlite.protocols.image.features import LOCAL_API

DEFAULT = "try.jsonl"  # beside the agent
ENOUGH = 4  # examples of a tool
TWINS = 0.75  # so near are the examples of two tools that they are hard to tell apart
_API, _PREFIX = 1, 21  # of a row of PROVIDERS
_PATIENT_MS = 60000  # nobody waits for one of these answers
RIGHT, ASKED, WRONG, ABSTAINED = "right", "asked", "wrong", "abstained"


def setup_of(image) -> dict:
    """Return what the image has for its local model.  Raises ``ClawError``."""
    for number in image.agent.providers:
        row = image.provider(number - 2) if number > 1 else None
        if row is not None and row[_API] == LOCAL_API:
            offset, length, _ = row[_PREFIX]
            return json.loads(image.part(WIRE, offset, length))
    raise ClawError(
        "this agent has no provider builtin:local",
        'give it one with the endpoint "builtin:local" (docs/local.md)',
    )


def read_sentences(path: str) -> list:
    """Return [{"say", "want"}, ...] of the file *path*.  Raises ``ClawError``."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, ValueError) as e:
        said = e.strerror if isinstance(e, OSError) else "it is not UTF-8 text"
        raise ClawError("%s: %s" % (path, said), "name a file of sentences") from None
    found = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            found.append(_sentence(line, "%s:%d" % (path, number)))
    if not found:
        raise ClawError("%s holds no sentence" % path, _FORM)
    return found


_FORM = 'write lines such as {"say": "water for 5 seconds", "want": [["water", {"seconds": 5}]]}'


def _sentence(line: str, where: str) -> dict:
    try:
        one = json.loads(line)
    except ValueError as e:
        raise ClawError("%s: no JSON: %s" % (where, e), _FORM) from None
    if not isinstance(one, dict) or not isinstance(one.get("say"), str) or "want" not in one:
        raise ClawError(
            "%s: expected an object with say and want, found %.60s" % (where, line), _FORM
        )
    want = one["want"]
    good = want is None or isinstance(want, list)
    for call in want or () if good else ():
        good = good and isinstance(call, list) and len(call) == 2
        good = good and isinstance(call[0], str) and isinstance(call[1], dict)
    if not good:
        raise ClawError("%s: want: expected null or [[tool, {arguments}], ...]" % where, _FORM)
    return one


class Evaluation:
    """Sentences played against one agent.

    setup  of ``setup_of``
    """

    def __init__(self, setup: dict):
        self._has_answered = False
        self._reads = {tool["name"] for tool in setup["tools"] if tool["reads"]}
        self._known = Understanding(
            setup["tools"], setup["examples"], lambda: Engine(max(setup["timeout_ms"], _PATIENT_MS))
        )

    def close(self):
        """End the engine."""
        self._known.close()

    def play(self, sentences: list) -> list:
        """Return a row for each of *sentences*: "say", "want", "got" (what would be called
        unasked), "asked" (what a question would propose), "missing" (the argument that it asks
        for), "confidence", "ms", "verdict", "text".
        """
        rows = []
        for one in sentences:
            begun = time.monotonic()
            found = self._propose(one["say"])
            ms = round((time.monotonic() - begun) * 1000)
            row = {
                "say": one["say"],
                "want": one["want"],
                "got": found.calls if found.kind == ACT else [],
                "asked": found.calls if found.kind == ASK else [],
                "missing": found.missing,
                "confidence": round(found.confidence, 3),
                "ms": ms,
                "text": found.text,
            }
            rows.append(dict(row, verdict=self.judge(row)))
        return rows

    def _propose(self, said: str) -> Proposal:
        """Return what *said* asks for; an engine that fails is none of that sentence's answers."""
        try:
            return self._known.propose(said)
        except LocalError as e:
            self._known.close()
            if not self._has_answered:
                raise
            return Proposal(NOTHING, text=e.message)
        finally:
            self._has_answered = True

    def judge(self, row: dict) -> str:
        """Return RIGHT, ASKED (a question that names the right call), WRONG or ABSTAINED."""
        want, got, asked = row["want"], row["got"], row["asked"]
        acts = [call for call in got if call[0] not in self._reads]
        if want is None:
            return WRONG if acts else RIGHT
        if got:
            return RIGHT if same(got, want) else WRONG
        if asked:
            return ASKED if want and _names(asked, want, row["missing"]) else WRONG
        return ABSTAINED if want else RIGHT

    def count_unmeant(self, rows: list) -> int:
        """Return how many of *rows* call something with side effects that nobody meant."""
        count = 0
        for row in rows:
            acts = [call for call in row["got"] if call[0] not in self._reads]
            meant = [call for call in row["want"] or () if call[0] not in self._reads]
            count += bool(acts) and not same(acts, meant)
        return count

    def hints(self, setup: dict) -> list:
        """Return lines about tools with too few examples, and about near twins."""
        counts: dict = {}
        for one in setup["examples"]:
            counts[one.get("tool")] = counts.get(one.get("tool"), 0) + 1
        found = [
            "%s has %d examples: write %d or more"
            % (tool["name"], counts.get(tool["name"], 0), ENOUGH)
            for tool in setup["tools"]
            if counts.get(tool["name"], 0) < ENOUGH
        ]
        for first, second, score in self._known.twins():
            if score >= TWINS and NONE not in (first, second):
                found.append(
                    "%s and %s are near twins: one tool with an enum is often better"
                    % (first, second)
                )
        return found


def same(got: list, want: list) -> bool:
    """Return whether the calls *got* are those of *want*, in any order."""
    key = lambda call: json.dumps(call, sort_keys=True)
    return sorted(map(key, got)) == sorted(map(key, want))


def _names(asked: list, want: list, missing: str) -> bool:
    """Return whether the question about *asked* names the call that is wanted; one that asks for
    an argument names all others.
    """
    if not missing:
        return same(asked, want)
    rest = [[name, {k: v for k, v in given.items() if k != missing}] for name, given in want]
    return same(asked, rest)


def summary(rows: list, unmeant: int) -> dict:
    """Return the counts of *rows*."""
    count = {name: sum(row["verdict"] == name for row in rows) for name in _VERDICTS}
    times = sorted(row["ms"] for row in rows)
    questions = sum(bool(row["asked"]) for row in rows)
    return {
        "sentences": len(rows),
        **count,
        "questions": questions,
        "unmeant": unmeant,
        "ms_p50": times[len(times) // 2],
        "ms_max": times[-1],
    }


_VERDICTS = (RIGHT, ASKED, WRONG, ABSTAINED)


def _open_image(name: str):
    """Return the image that *name* means: itself, or what its manifest is compiled to now, in a
    folder that is gone then.  Raises ``ClawError``.
    """
    from clawlite.linux.files import files

    if os.path.isdir(name):
        made = [os.path.join(name, one) for one in _MANIFESTS]
        found = [one for one in made if os.path.isfile(one)]
        name = found[0] if found else os.path.join(name, "claw.cbor")
    if name.endswith(".cbor") or files.is_image(name):
        return files.open_image(name)
    with tempfile.TemporaryDirectory() as folder:
        image = os.path.join(folder, "claw.cbor")
        build = [sys.executable, "-m", "clawlite", "build", name, "-o", image]
        done = subprocess.run(build, capture_output=True, text=True)
        if done.returncode:
            raise ClawError(
                "%s cannot be built: %s" % (name, done.stderr.strip()[-600:]), "clawlite check"
            )
        return files.open_image(image)


_MANIFESTS = ("claw.yaml", "claw.yml", "claw.json")


def show(file, manifest, as_json: bool) -> int:
    """Print what became of the sentences; return the exit code.  Raises ``ClawError``."""
    folder = manifest or "."
    folder = folder if os.path.isdir(folder) else os.path.dirname(folder)
    setup = setup_of(_open_image(manifest or "."))
    sentences = read_sentences(file or os.path.join(folder, DEFAULT))
    evaluation = Evaluation(setup)
    try:
        rows = evaluation.play(sentences)
        found = summary(rows, evaluation.count_unmeant(rows))
        hints = evaluation.hints(setup)
    finally:
        evaluation.close()
    if as_json:
        print(json.dumps({"summary": found, "hints": hints, "rows": rows}))
    else:
        print_line(*text(rows, found, hints))
    return 0


def text(rows: list, found: dict, hints: list) -> list:
    """Return the lines for a person."""
    lines = []
    for row in rows:
        what = row["got"] or row["asked"]
        said = " and ".join("%s %s" % (name, json.dumps(given)) for name, given in what)
        said = ("asks: " if row["asked"] else "") + said if what else row["text"] or "nothing"
        lines.append("%-9s %5d ms  %s -> %s" % (row["verdict"], row["ms"], row["say"], said))
    head = "%(sentences)d sentences: %(right)d right, %(asked)d asked, %(wrong)d wrong, "
    head += "%(abstained)d abstained; %(unmeant)d would have acted unmeant; "
    head += "half within %(ms_p50)d ms, all within %(ms_max)d ms"
    return lines + [head % found] + ["hint: " + line for line in hints]

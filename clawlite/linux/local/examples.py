"""Which tools a sentence is near to: its vector beside those of examples.

The vectors are those of the engine, without their mean, as int8: they are computed once for the
same examples, and lie in the cache of this machine.
"""

import hashlib
import json
import os
import struct
from array import array
from operator import mul

from clawlite.linux.local import model_files

NONE = ""  # the tool of sentences that mean none
_SHIPPED = os.path.join(os.path.dirname(__file__), "none.jsonl")


def read_none() -> list:
    """Return the shipped sentences that mean no tool."""
    with open(_SHIPPED, encoding="utf-8") as file:
        return [json.loads(line)["say"] for line in file if line.strip()]


def cache_folder() -> str:
    """Return the folder of this machine's vectors."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "clawlite", "local")


class Vectors:
    """The examples of an agent, and how near a sentence is to them.

    examples  [(sentence, tool or NONE), ...]
    embed     function(text) -> array of floats
    """

    def __init__(self, examples: list, embed, folder: str = ""):
        self._embed = embed
        self._tools = [tool for _, tool in examples]
        texts = [text for text, _ in examples]
        raw = self._read(texts, folder or cache_folder())
        self._mean = [sum(column) / len(raw) for column in zip(*raw)] if raw else []
        self._rows = [self._small(vector) for vector in raw]

    def _read(self, texts: list, folder: str) -> list:
        """Return the vectors of *texts*, from the cache where it has them all."""
        wanted = "\n".join([model_files.WEIGHTS_HASH, *texts]).encode()
        path = os.path.join(folder, hashlib.sha256(wanted).hexdigest()[:32] + ".vectors")
        found = _load(path, len(texts))
        if found is None:
            found = [self._embed(text) for text in texts]
            _save(path, found)
        return found

    def _small(self, vector) -> array:
        """Return *vector* without the mean, with a length of about 127 times the root of its
        size, as int8.
        """
        centred = [a - b for a, b in zip(vector, self._mean)]
        most = max(map(abs, centred), default=0) or 1
        return array("b", [round(127 * value / most) for value in centred])

    def scores(self, text: str) -> list:
        """Return [(score, tool), ...], the nearest first: of each tool the mean of the two
        examples that are nearest to *text*.
        """
        mine = self._small(self._embed(text))
        size = _length(mine)
        near = {}
        for row, tool in zip(self._rows, self._tools):
            near.setdefault(tool, []).append(sum(map(mul, mine, row)) / (size * _length(row)))
        found = []
        for tool, values in near.items():
            values.sort(reverse=True)
            best = values[:2]
            found.append((sum(best) / len(best), tool))
        return sorted(found, reverse=True)

    def twins(self) -> list:
        """Return [(tool, tool, how near the means of their examples are), ...], the nearest
        first.
        """
        sums: dict = {}
        for row, tool in zip(self._rows, self._tools):
            mean = sums.get(tool)
            sums[tool] = list(row) if mean is None else [a + b for a, b in zip(mean, row)]
        names = sorted(sums)
        found = []
        for at, one in enumerate(names):
            for other in names[at + 1 :]:
                near = sum(map(mul, sums[one], sums[other]))
                found.append((one, other, near / (_length(sums[one]) * _length(sums[other]))))
        return sorted(found, key=lambda row: -row[-1])


def _length(row) -> float:
    return sum(map(mul, row, row)) ** 0.5 or 1.0


def _load(path: str, count: int):
    try:
        with open(path, "rb") as file:
            head = file.read(8)
            rows, size = struct.unpack("<II", head)
            if rows != count or not 0 < size <= 16384:
                return None
            data = array("f")
            data.frombytes(file.read(rows * size * 4))
    except (OSError, ValueError, struct.error):
        return None
    if len(data) != rows * size:
        return None
    return [data[at * size : (at + 1) * size] for at in range(rows)]


def _save(path: str, vectors: list):
    """Write the vectors for the next start; a machine that cannot is only slower."""
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(path + ".part", "wb") as file:
            file.write(struct.pack("<II", len(vectors), len(vectors[0]) if vectors else 0))
            for vector in vectors:
                file.write(vector.tobytes())
        os.replace(path + ".part", path)
    except OSError:
        pass

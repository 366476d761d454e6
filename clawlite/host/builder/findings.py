"""Where a problem stands in its line, for people and for editors, and SARIF of what was found.

1. Problems know a line.  The column is looked up when one is shown, in the file as it is now: to
   note it for each value of each file would take memory in every build.
2. SARIF 2.1.0 (OASIS), with what code hosts read of it: rule, level, message, file, line, column.
"""

import json
import re

from clawlite.host.base.problems import Problem

_TEXT = re.compile(r"\S+")
WIDEST = 200  # characters of a line that are shown
SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


def find_place(problem) -> tuple:
    """Return (line of the file without its end, column >= 1, length) of *problem*: its found value,
    else its last key, else all that stands in the line.  ("", 1, 0) when the file cannot be read.
    """
    try:
        with open(problem.file, encoding="utf-8", errors="replace") as file:
            lines = file.read().split("\n")
        text = lines[problem.line - 1] if problem.line else ""
    except (OSError, IndexError):
        text = ""
    words = [_plain(problem.found), *(str(key) for key in problem.path[::-1][:1])]
    for word in words:
        found = word and re.search(r"(?<![\w-])%s(?![\w-])" % re.escape(word), text)
        if found:
            return text, found.start() + 1, len(word)
    all_of_it = _TEXT.search(text)
    if not all_of_it:
        return text, 1, 0
    return text, all_of_it.start() + 1, len(text.strip())


def _plain(found: str) -> str:
    """Return the text of a value as it stands in a file: without the quotes of a message."""
    try:
        return str(json.loads(found))
    except ValueError:
        return found


def mark(problem: Problem, is_coloured: bool) -> list:
    """Return the lines that show *problem* at its place: the line of its file, and a mark under
    it.  [] where there is none.
    """
    text, column, length = find_place(problem)
    if not problem.line or not length or column > WIDEST:
        return []
    # one column for each character, whatever it is
    shown = "".join(one if one.isprintable() else " " for one in text[:WIDEST])
    sign = "^" * max(1, min(length, len(shown) - column + 1))
    if is_coloured:
        sign = f"\033[31m{sign}\033[0m"
    return ["    " + shown, " " * (column + 3) + sign]


def make_sarif(problems, warnings, version: str) -> dict:
    """Return a SARIF log.

    problems  Problem each: errors
    warnings  {file, line, message} each
    """
    results = [_result("error", "problem", one.text_without_place(), one) for one in problems]
    for one in warnings:
        results.append(_result("warning", "warning", one["message"], _Place(**one)))
    rules = [
        {"id": "problem", "shortDescription": {"text": "clawlite build refuses this"}},
        {"id": "warning", "shortDescription": {"text": "this is most likely not meant"}},
    ]
    driver = {"name": "clawlite check", "version": version, "rules": rules}
    return {
        "$schema": SARIF,
        "version": "2.1.0",
        "runs": [
            {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
        ],
    }


class _Place:
    """Where a warning stands; its column is that of what its line begins with."""

    path, found = (), ""

    def __init__(self, file: str, line: int, message: str):
        self.file, self.line, self.message = file, line, message


def _result(level: str, rule: str, message: str, problem) -> dict:
    found: dict = {"ruleId": rule, "level": level, "message": {"text": message}}
    if problem.file:
        place: dict = {"artifactLocation": {"uri": problem.file.replace("\\", "/")}}
        if problem.line:
            _, column, length = find_place(problem)
            place["region"] = {"startLine": problem.line, "startColumn": column}
            if length:
                place["region"]["endColumn"] = column + length
        found["locations"] = [{"physicalLocation": place}]
    return found

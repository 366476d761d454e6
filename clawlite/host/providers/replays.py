"""Compile a transcript (JSON Lines, named by ``replay`` in clawlite.toml) to the lists of
clawlite/core/providers/replay.py.

    {"user": "water the plants"}
        begins a turn; "user" may be null: any text fits
    {"say": "", "call": [{"tool": "water", "arguments": {"seconds": 5}}]}
        one reply of the provider, a round
    {"say": "Done."}
        a reply without a call ends the turn
"""

import json

from clawlite.host.base.problems import Problem, did_you_mean, value_text


def compile_replay(text: str, file: str, tools: list[str]) -> tuple[list, list[Problem]]:
    """Return (turns, problems).  A call of an unknown tool is no problem: a transcript may hold
    a model's mistakes.
    """
    turns, problems = [], []

    def report(line: int, message: str, expected: str = "", found: str = "", hint: str = ""):
        problems.append(Problem((), message, file, line, expected, found, hint))

    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except ValueError as e:
            report(number, f"not JSON: {e}", hint="write one JSON object on each line")
            continue
        if not isinstance(entry, dict):
            report(number, "", "an object", value_text(entry))
        elif "user" in entry:
            if not (entry["user"] is None or isinstance(entry["user"], str)) or len(entry) > 1:
                report(number, "", '{"user": text or null} alone')
            turns.append([entry["user"], []])
        elif not turns:
            report(number, "the first line begins a turn", '{"user": ...}')
        else:
            turns[-1][1].append(_round(entry, lambda *said, **more: report(number, *said, **more)))
    if not turns:
        report(0, "holds no turn", '{"user": ...} and the replies to it')
    for turn in turns:
        if not turn[1]:
            report(
                0,
                f"the turn {value_text(turn[0])} has no reply",
                hint="add a line with a reply below it",
            )
    return turns, problems


def _round(entry: dict, report) -> list:
    for key in entry:
        if key not in ("say", "call"):
            report(
                f"unknown field {value_text(key)}", hint=did_you_mean(key, ("say", "call", "user"))
            )
    say, calls = entry.get("say", ""), entry.get("call", [])
    if not isinstance(say, str):
        report("say", "text", value_text(say))
    if not isinstance(calls, list) or not all(
        isinstance(call, dict)
        and set(call) == {"tool", "arguments"}
        and isinstance(call["tool"], str)
        and isinstance(call["arguments"], dict)
        for call in calls
    ):
        report("call", '[{"tool": name, "arguments": {...}}, ...]', value_text(calls))
        calls = []
    return [say, [[call["tool"], call["arguments"]] for call in calls]]

"""How the reports of all parts of a task become one (CKP 0.2.0, 5.9 ``aggregation.strategy``).

    merge           every result, with who gave it.  Completed when all parts are, failed when none
                    has an answer, else partial.
    majority-vote   the answer that more than half of all parts gave.  A part without an answer is a
                    vote for nothing.  Without such a majority it is partial: the answer with most
                    votes; on a tie, that of the member that the manifest lists first.
    best-of-n       the result with the highest number in ``score``; on a tie, the first.  Any score
                    is better than none.  Where no result has one, the agent that coordinates picks
                    one, in a turn of its model.
    leader-decides  the agent that coordinates answers in a turn of its model, which gets all
                    results.
    chain           the result of the last part.  The first part without an answer ends the chain.

Results are compared as JSON values; of an agent's answer only its text counts, without white
space around it.  A part that gave no report in time, or whose report is ``failed``, has no answer.
With no answer at all a task has failed, whatever its strategy.
"""

from clawlite.protocols.swarm.swarm import (
    BEST_OF_N,
    CHAIN,
    COMPLETED,
    FAILED,
    LEADER_DECIDES,
    MAJORITY_VOTE,
    PARTIAL,
)

MISSING = "no report in time"


class Part:
    """A part of a task, and its report: *by* whom, *status* and *result*, None while there is
    none.
    """

    def __init__(self, identity: str, status: str | None = None, result: object = None) -> None:
        self.by, self.status, self.result = identity, status, result

    @property
    def is_answer(self) -> bool:
        return self.status is not None and self.status != FAILED

    def to_json(self) -> dict:
        if self.status is None:
            return {"by": self.by, "status": FAILED, "result": {"error": MISSING}}
        return {"by": self.by, "status": self.status, "result": self.result}


def aggregate(strategy: int, parts: list) -> tuple | None:
    """Return (status, result) of the whole, or None when a turn of the model has to decide.

    strategy  one of swarm.py
    parts     list of ``Part``, in the order of the manifest; in a chain in the order of its links,
              those that never began included
    """
    answers = [part for part in parts if part.is_answer]
    if not answers:
        return FAILED, {
            "error": "no part has an answer: %s" % _first_error(parts),
            "parts": _all(parts),
        }
    if strategy == CHAIN:
        return _chain(parts)
    if strategy == LEADER_DECIDES:
        return None
    if strategy == MAJORITY_VOTE:
        return _vote(parts, answers)
    if strategy == BEST_OF_N:
        return _best(answers)
    return _status(parts), _merge(parts, answers)


def pick(parts: list, text: str) -> tuple:
    """Return (status, result) of best-of-n after a turn has said *text*, which holds the number of
    the best answer, from 1 on.  A text without such a number leaves the first answer, as partial.
    """
    answers = [part for part in parts if part.is_answer]
    number = ""
    for character in text:
        if "0" <= character <= "9":
            number += character
        elif number:
            break
    if number and len(number) < 6 and 1 <= int(number) <= len(answers):
        best = answers[int(number) - 1]
        return best.status, best.result
    return PARTIAL, answers[0].result


def question(strategy: int, description: str) -> str:
    """Return the question to the coordinating agent's model; the parts go with it as data."""
    if strategy == BEST_OF_N:
        return (
            "Several agents have each done this task: %s\nSay the number of the best result, from 1"
            " for the first, and nothing else." % description
        )
    return (
        "Several agents have each done this task: %s\nDecide what its result is, and say it."
        % description
    )


def text_of(result: object) -> str | None:
    """Return the text of an agent's answer, None where *result* has another shape."""
    if isinstance(result, dict) and isinstance(result.get("text"), str):
        return result["text"]
    return None


def _chain(parts: list) -> tuple:
    for part in parts:
        if not part.is_answer:
            result = part.to_json()["result"]
            error = "%s, a link of the chain, has no answer: %s" % (part.by, _first_error([part]))
            return FAILED, {"error": error, "result": result}
    return _status(parts), parts[-1].result


def _vote(parts: list, answers: list) -> tuple:
    votes = []  # (answer, the parts that gave it)
    for part in answers:
        said = text_of(part.result)
        value = part.result if said is None else said.strip()
        for answer, same in votes:
            if answer == value and isinstance(answer, bool) == isinstance(value, bool):
                same.append(part)
                break
        else:
            votes.append((value, [part]))
    most = max((same for _, same in votes), key=len)  # the first of those that have as many
    result = most[0].result
    result = dict(result) if isinstance(result, dict) else {"result": result}
    result["votes"] = len(most)
    result["of"] = len(parts)
    return COMPLETED if 2 * len(most) > len(parts) else PARTIAL, result


def _best(answers: list) -> tuple | None:
    best, highest = None, 0.0
    for part in answers:
        score = part.result.get("score") if isinstance(part.result, dict) else None
        if isinstance(score, (int, float)) and not isinstance(score, bool):
            if best is None or score > highest:
                best, highest = part, score
    if best:
        return best.status, best.result
    return (answers[0].status, answers[0].result) if len(answers) == 1 else None


def _merge(parts: list, answers: list) -> dict:
    texts = [text_of(part.result) for part in answers]
    merged: dict[str, object] = {"parts": _all(parts)}
    if None not in texts:
        merged["text"] = "\n".join("%s: %s" % (answers[i].by, texts[i]) for i in range(len(texts)))
    return merged


def _all(parts: list) -> list:
    return [part.to_json() for part in parts]


def _status(parts: list) -> str:
    return COMPLETED if all(part.status == COMPLETED for part in parts) else PARTIAL


def _first_error(parts: list) -> str:
    """Return the first error of *parts*."""
    for part in parts:
        if part.status is None:
            return MISSING
        error = part.result.get("error") if isinstance(part.result, dict) else None
        if isinstance(error, str):
            return error
    return "nothing says why"

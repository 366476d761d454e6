"""How much a request asks for: the fields of both APIs that multiply or raise what is generated or
charged.

    choices    how many answers are generated: the largest of ``CHOICES``
    length     the most tokens of one answer: the largest of ``LENGTHS``; None: it does not say
    beside     tokens that are written beside the answers

1. Their names are matched without regard to case, because some servers read them so; a name in
   another case is refused, and so is a value of another type.
2. Which models answer is the agent's choice: fields that name others are refused.
3. What a provider charges beyond its price of a token cannot be counted: it is refused where the
   agent has a limit of money.

tests/host/proxy/test_amounts.py holds the tables to the request types of both vendors.
"""

from typing import NamedTuple

from clawlite.core.policy.meter import MAX_TOKENS
from clawlite.host.proxy.dialect import Refused, json_text

# best_of: of the older API of completions, which other servers took over; n_cmpl: llama.cpp's name;
# the last one: of servers over Hugging Face's library
CHOICES = ("n", "best_of", "n_cmpl", "num_return_sequences")
# from the third on: of OpenAI's newer API, of llama.cpp, of servers of Hugging Face, of Ollama, of
# vLLM, which writes at least so many, and of Alibaba, where thinking comes on top
LENGTHS = (
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "n_predict",
    "max_new_tokens",
    "num_predict",
    "min_tokens",
    "thinking_budget",
)
INNER_LENGTHS = (("thinking", "budget_tokens"), ("reasoning", "max_tokens"))
MODELS = ("fallbacks", "models")
# what costs nothing beyond tokens: field -> values, beside null
ORDINARY = {
    "service_tier": ("auto", "default", "flex", "standard_only"),
    "speed": ("standard",),
    "inference_geo": (),
    "web_search_options": (),
}
_TEXT = ["text"]  # of "modalities": sound has a price of its own
# types of tools that run where the runner is; every other one runs at the provider, for money
RUNNER_TOOLS = ("custom", "function", "bash_", "text_editor_", "memory_", "computer_", "browser_")
_ADVISOR = "advisor_"  # a tool that is another model
_COMPACTION = "compact"  # edits of a context that write a summary


class Amount(NamedTuple):
    choices: int
    length: int | None
    beside: int

    @property
    def total(self) -> int | None:
        """Tokens of all answers; None: the request does not say."""
        return None if self.length is None else self.length * self.choices + self.beside

    @property
    def least(self) -> int:
        """The fewest tokens that make sense to admit."""
        return self.choices + self.beside if self.total is None else self.total

    @property
    def most(self) -> int:
        """The most tokens that the request may come to."""
        return MAX_TOKENS * self.choices + self.beside if self.total is None else self.total


def amount(body: dict) -> Amount:
    """Return what *body* asks for.  Raises ``Refused``."""
    _check_names(body, (*CHOICES, *LENGTHS, *(outer for outer, _ in INNER_LENGTHS)))
    lengths = [_whole(body, name, 0) for name in LENGTHS]
    for outer, name in INNER_LENGTHS:
        inner = body.get(outer)
        if isinstance(inner, dict):
            _check_names(inner, (name,), outer + ".")
            lengths.append(_whole(inner, name, 0, outer + "."))
    choices = [_whole(body, name, 1) for name in CHOICES]
    return Amount(
        max((one for one in choices if one is not None), default=1),
        max((one for one in lengths if one is not None), default=None),
        _beside(body),
    )


def check_charges(body: dict, counts_money: bool) -> None:
    """Raise ``Refused`` for what other models would answer and, where the agent *counts_money*,
    for what costs more than its tokens.
    """
    _check_names(body, (*MODELS, *ORDINARY, "modalities", "tools"))
    for name in MODELS:
        if body.get(name):
            raise Refused(
                400,
                f"{name}: expected none, because the agent says which models answer",
                f"leave out {name}: the gateway asks the agent's providers in their order",
            )
    tools = [tool.get("type") for tool in body.get("tools") or ()]
    if any(isinstance(kind, str) and kind.lower().startswith(_ADVISOR) for kind in tools):
        raise Refused(
            400,
            "tools: expected none that is another model",
            "leave the advisor out: the agent says which models answer",
        )
    if counts_money:
        _check_prices(body, tools)


def _check_prices(body: dict, tools: list) -> None:
    why = "the agent has a limit of money, and what this costs cannot be counted"
    for name, values in ORDINARY.items():
        value = body.get(name)
        if value is not None and value not in values:
            expected = " or ".join(values) or "none"
            raise Refused(400, f"{name}: expected {expected}: {why}", f"leave out {name}")
    if body.get("modalities") not in (None, _TEXT):
        raise Refused(400, f"modalities: expected text alone: {why}", "leave out modalities")
    for kind in tools:
        if kind is not None and not (isinstance(kind, str) and kind.startswith(RUNNER_TOOLS)):
            found = str(kind)[:40]
            raise Refused(400, f"tools: {found} runs at the provider: {why}", f"leave out {found}")


def _check_names(body: dict, names: tuple, at: str = "") -> None:
    """Raise ``Refused`` for a name of *names* in another case."""
    for key in body:
        if key not in names and key.casefold() in names:
            raise Refused(400, f"{at}{key[:40]}: expected it as {key.casefold()}")


def _whole(body: dict, name: str, least: int, at: str = ""):
    """Return the whole number *name* of *body*, None where it has none.  Raises ``Refused``."""
    value = body.get(name)
    if value is None:
        return None
    if type(value) is not int or value < least:
        found = json_text(value)[:40]
        raise Refused(
            400, f"{at}{name}: expected a whole number of at least {least}, found {found}"
        )
    return value


def _beside(body: dict) -> int:
    """Return the tokens that are written beside the answers: of a prediction that the answer does
    not follow, and of summaries of the conversation.
    """
    managed = body.get("context_management")
    edits = managed.get("edits") if isinstance(managed, dict) else None
    kinds = [edit.get("type") for edit in edits or () if isinstance(edit, dict)]
    count = sum(isinstance(kind, str) and kind.startswith(_COMPACTION) for kind in kinds)
    count += body.get("compaction") is not None
    predicted = body.get("prediction")
    written = 0 if predicted is None else len(json_text(predicted)) // 4
    return count * MAX_TOKENS + written

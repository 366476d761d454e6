"""Which providers are asked, at what price, and within which limits of all of them
(clawlite.toml, CKP 5.2 and 5.8).
"""

import pytest
from provider_builds import build, opened, provider

from clawlite.host.base.problems import ManifestErrors
from clawlite.host.compiler import compiler, lint
from clawlite.host.manifest import manifest


def asked(built):
    """Return the names of the providers in the order in which they are asked."""
    image = opened(built)
    return [image.provider(number - 2)[0] for number in image.agent.providers]


def problems(*args, **more):
    with pytest.raises(ManifestErrors) as caught:
        build(*args, **more)
    return [problem.text() for problem in caught.value.problems]


def warnings(folder, *args, **more) -> str:
    """Return what the build warns of, a line each."""
    build(folder, *args, **more)
    loaded = manifest.load(folder)
    compiler.build(loaded)
    return "\n".join(message for _, message in loaded.notes)


CHEAP = {"hints": {"cost_priority": 0.9, "speed_priority": 0.5}}
CLEVER = {"hints": {"cost_priority": 0.1, "intelligence_priority": 0.8, "speed_priority": 0.5}}


@pytest.mark.parametrize(
    "prefer, order",
    [
        ("", ["clever", "cheap"]),
        ("cost", ["cheap", "clever", "third"]),
        ("intelligence", ["clever", "cheap"]),
        ("speed", ["clever", "cheap"]),
    ],
)
def test_a_hint_chooses_who_is_asked_first_and_its_fallbacks_stay_in_order(tmp_path, prefer, order):
    """5.2: hints, and fallback in array order."""
    providers = (
        provider("clever", ["cheap"], **CLEVER),
        provider("cheap", ["clever", "third"], **CHEAP)
        if prefer == "cost"
        else provider("cheap", **CHEAP),
        provider("third"),
    )
    if prefer == "cost":
        providers = (provider("clever", **CLEVER),) + providers[1:]
    built = build(tmp_path, *providers, settings='prefer = "%s"\n' % prefer if prefer else "")
    assert asked(built) == order
    told = lint.find(manifest.load(tmp_path))["warnings"]
    assert any("choose nothing" in warning["message"] for warning in told) == (not prefer)


def test_a_preference_that_no_hint_knows_is_refused(tmp_path):
    (told,) = problems(tmp_path, provider("one", **CHEAP), settings='prefer = "intelligence"\n')
    assert "clawlite.toml:1: prefer: no provider has hints.intelligence_priority" in told
    (told,) = problems(tmp_path, provider("one", **CHEAP), settings='prefer = "costs"\n')
    assert 'did you mean "cost"?' in told


def test_prices_and_the_strictest_limits_are_compiled(tmp_path):
    built = build(
        tmp_path,
        provider("one", ["two"]),
        provider("two"),
        limits=({"cost_per_day_usd": 10, "tokens_per_hour": 500}, {"cost_per_day_usd": 0.25}),
        settings='[prices.model-one]\ninput = 0.15\noutput = 0.6\n[prices."model-two"]\n'
        "input = 0\noutput = 0.0001\n",
    )
    image = opened(built)
    assert (image.agent.tokens_per_hour, image.agent.cost_per_day) == (500, 250000000)
    assert [image.provider(n)[20] for n in (0, 1)] == [[150, 600], [0, 1]], (
        "a price is never rounded down to nothing"
    )


def test_a_limit_of_money_does_not_count_what_has_no_price(tmp_path):
    told = warnings(
        tmp_path,
        provider("one", ["two"]),
        provider("two"),
        limits=({"cost_per_day_usd": 1},),
        settings='[prices."model-one"]\ninput = 1\noutput = 2\n',
    )
    assert (
        'cost_per_day_usd does not count "model-two"' in told
        and 'add [prices."model-two"] with input and output' in told
        and "model-one" not in told
    )
    for wrong in (
        "[prices.m]\ninput = -1\noutput = 0\n",
        "[prices.m]\ninput = 1\n",
        '[prices.m]\ninput = "1"\noutput = 1\n',
        "prices = 5\n",
    ):
        assert len(problems(tmp_path, provider("one"), settings=wrong)) == 1, wrong


def test_no_limit_is_not_a_limit_of_nothing(tmp_path):
    image = opened(
        build(
            tmp_path,
            provider("one", ["two"], limits={"tokens_per_day": 0, "requests_per_minute": 5}),
            provider("two"),
        )
    )
    assert image.provider(0)[14:18] == [0, None, 5, None] and image.provider(1)[14:18] == [None] * 4
    assert (image.agent.tokens_per_hour, image.agent.cost_per_day) == (None, None)


STEPS = 'def wait() -> str:\n    """Wait."""\n    yield 5\n    return "x"\n'


def test_budgets_of_a_turn_lower_what_there_is(tmp_path):
    image = opened(build(tmp_path, provider("one"), tools=STEPS))
    assert (
        image.agent.max_rounds,
        image.agent.turn_ms,
        image.tool("wait").timeout_ms,
        image.tool("wait").max_output,
    ) == (20, 600000, 0, 65536)
    image = opened(
        build(
            tmp_path,
            provider("one"),
            tools=STEPS,
            settings="[budget]\nmax_rounds = "
            "8\ntotal_timeout_ms = "
            "120000\n"
            "timeout_per_tool_ms = 30000\nmax_tool_result_bytes = 16384\n",
        )
    )
    assert (
        image.agent.max_rounds,
        image.agent.turn_ms,
        image.tool("wait").timeout_ms,
        image.tool("wait").max_output,
    ) == (8, 120000, 30000, 16384)


@pytest.mark.parametrize(
    "line",
    [
        "max_rounds = 0",
        "max_rounds = 21",
        "total_timeout_ms = 999",
        "timeout_per_tool_ms = 0",
        "max_tool_result_bytes = 65537",
        "rounds = 5",
    ],
)
def test_a_budget_out_of_its_range_is_refused(tmp_path, line):
    (told,) = problems(tmp_path, provider("one"), settings="[budget]\n%s\n" % line)
    assert "clawlite.toml:2: " in told


def test_a_tool_that_nothing_could_end_has_no_time_budget(tmp_path):
    (told,) = problems(
        tmp_path,
        provider("one"),
        tools='def f() -> str:\n    """F."""\n    return "x"\n',
        settings="[budget]\ntimeout_per_tool_ms = 5\n",
    )
    assert "f in tools.py runs in one piece" in told and "clawlite.toml:2" in told

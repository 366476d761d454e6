"""Limits of providers (CKP 0.2.0, 5.2): counted, held, and kept over days, restarts and clocks
that jump.
"""

from clawlite.core.base.errors import QuotaExceeded
from clawlite.core.policy.ledger import count_use
from clawlite.core.policy.meter import MAX_TOKENS, Meter
from clawlite.core.turns.history import History
from clawlite.core.turns.turn import Message

DAY = 86400


class Provider:
    def __init__(self, per_day=None, per_request=None, per_minute=None, window=None, prices=(0, 0)):
        self.name = "p"
        self.per_day, self.per_request, self.per_minute, self.window = (
            per_day,
            per_request,
            per_minute,
            window,
        )
        self.prices = prices


NOW = [0, 100 * DAY]


def meter(spent=None, epoch=100 * DAY, **limits):
    NOW[0], NOW[1] = 0, epoch
    spent = {} if spent is None else spent
    return Meter(lambda: (NOW[0], NOW[1]), lambda: spent, **limits)


def spend(meter, provider, read, written):
    """As a shell does it: what was spent is stored before anything else is asked."""
    entries = meter.count_answer(provider, read, written)
    count_use(meter._stored(), entries)
    return entries


def refused(meter, provider, asked):
    try:
        meter.admit_request(provider, asked)
    except QuotaExceeded as e:
        assert e.code == -32021
        return e.data["limit"]
    return None


def test_without_limits_an_answer_has_its_default():
    assert meter().admit_request(Provider(), 10**6) == MAX_TOKENS
    assert meter().count_answer(Provider(), 5, 5) == []


def test_a_day_refuses_the_request_that_would_exceed_it():
    """5.2: tokens_per_day is enforced, -32021 before the request."""
    m, p = meter(), Provider(per_day=1000)
    assert m.admit_request(p, 400) == 600
    assert spend(m, p, 400, 500) == [["p", 100, 900]]
    assert m.admit_request(p, 99) == 1
    assert refused(m, p, 100) == "tokens_per_day"
    NOW[1] += DAY
    assert m.admit_request(p, 100) == 900


def test_a_refusal_says_what_was_used_and_reserved():
    """9.4: errors have a message, and data with structured context."""
    m, p = meter({"p": [100, 990]}), Provider(per_day=1000)
    try:
        m.admit_request(p, 20, 30)
    except QuotaExceeded as e:
        assert e.data == {
            "provider": "p",
            "limit": "tokens_per_day",
            "max": 1000,
            "used": 990,
            "reserved": 50,
        }
        assert "990 are used" in e.message and "tokens_per_day is 1000" in e.message
    else:
        assert False


def test_what_was_spent_survives_a_restart():
    p = Provider(per_day=1000)
    assert refused(meter({"p": [100, 990]}), p, 20) == "tokens_per_day"
    assert meter({"p": [99, 990]}).admit_request(p, 20) == 980


def test_a_clock_that_is_unset_or_goes_back_begins_no_new_day():
    p = Provider(per_day=1000)
    assert refused(meter({"p": [100, 990]}, None), p, 20) == "tokens_per_day"
    assert refused(meter({"p": [100, 990]}, 50 * DAY), p, 20) == "tokens_per_day"
    m = meter({"p": [100, 990]}, 50 * DAY)
    assert spend(m, p, 5, 5) == [["p", 100, 10]]


def test_a_request_has_a_limit_of_its_own():
    m, p = meter(), Provider(per_request=100)
    assert m.admit_request(p, 99) == 1 and refused(m, p, 100) == "tokens_per_request"
    assert refused(m, Provider(window=100), 100) == "max_context_window"
    assert meter().admit_request(Provider(per_day=5000, per_request=300, window=400), 100) == 200


def test_a_limit_of_nothing_admits_nothing():
    for name in ("per_day", "per_request", "window"):
        assert refused(meter(), Provider(**{name: 0}), 1)
    try:
        meter().pause(Provider(per_minute=0))
    except QuotaExceeded as e:
        assert e.data["limit"] == "requests_per_minute"
    else:
        assert False


def test_an_hour_of_all_providers():
    """5.8: rate_limits.tokens_per_hour; an hour is one of UTC, and a clock that goes back begins
    none.
    """
    m, p = meter(per_hour=1000), Provider()
    assert m.admit_request(p, 400) == 600 and spend(m, p, 400, 500) == [[".tokens", 2400, 900]]
    other = Provider()
    other.name = "q"
    assert m.admit_request(other, 99) == 1 and refused(m, other, 100) == "tokens_per_hour"
    NOW[1] -= 7200
    assert refused(m, p, 100) == "tokens_per_hour"
    NOW[1] += 7200 + 3600
    assert m.admit_request(p, 100) == 900


def test_money_of_a_day_by_the_price_table():
    """5.8: rate_limits.cost_per_day_usd; -32021 before the request that would exceed it, and an
    answer no longer than it pays.
    """
    # a dollar; 1 and 4 dollars for a million
    m, p = meter(cost=10**9), Provider(prices=(1000, 4000))
    assert m.admit_request(p, 500000) == MAX_TOKENS
    assert (
        m.admit_request(p, 996000) == 1000
        and m.admit_request(p, 999996) == 1
        and refused(m, p, 999997) == "cost_per_day_usd"
    )
    assert spend(m, p, 500000, 100000) == [[".cost", 100, 900000000]]
    assert (
        m.admit_request(p, 0) == MAX_TOKENS
        and m.admit_request(p, 96000) == 1000
        and refused(m, p, 99997) == "cost_per_day_usd"
    )
    assert m.admit_request(Provider(), 10**9) == MAX_TOKENS, "what costs nothing goes on"
    NOW[1] += DAY
    assert m.admit_request(p, 500000) == MAX_TOKENS
    assert (
        refused(meter(cost=0), p, 1) == "cost_per_day_usd"
        and meter(cost=0).admit_request(Provider(), 1) == MAX_TOKENS
    )


def test_what_is_added_belongs_to_its_period():
    stored = {}
    for period, amount, wanted in (
        (5, 10, [5, 10]),
        (5, 1, [5, 11]),
        (4, 2, [5, 13]),
        (6, 3, [6, 3]),
    ):
        count_use(stored, [["p", period, amount]])
        assert stored == {"p": wanted}


def test_requests_per_minute_wait():
    m, p = meter(), Provider(per_minute=2)
    for _ in range(2):
        assert m.pause(p) == 0
        m.count_request(p)
        NOW[0] += 1000
    assert m.pause(p) == 58000
    NOW[0] = 59999
    assert m.pause(p) == 1
    NOW[0] = 60000
    assert m.pause(p) == 0
    assert m.pause(Provider()) == 0


def test_jitter_stays_in_its_range():
    m = meter()
    seen = [m.jitter(250) for _ in range(200)]
    assert min(seen) >= 0 and max(seen) <= 250 and len(set(seen)) > 50
    assert m.jitter(0) == 0


def conversation(sizes, **more):
    history = History(more.get("max_bytes", 65536))
    for number, size in enumerate(sizes):
        history.begin(Message("user", "%d" % number + "x" * size))
        history.turn.append(Message("assistant", "", [("c1", "t", "{}")]))
        history.turn.append(Message("tool", "result", (), "c1", "t"))
    return history


def numbers(messages):
    return [message.text[0] for message in messages if message.role == "user"]


def test_a_conversation_is_kept_in_order():
    assert numbers(conversation([1, 1, 1]).context()) == ["0", "1", "2"]


def test_what_is_left_out_are_whole_turns_and_never_parts_a_call_from_its_result():
    """5.2 max_context_window; a tool call without its result is an error to every provider."""
    for bytes in range(0, 2000, 7):
        history = conversation([100, 300, 50, 10])
        assert history.leave_out("p", bytes)
        messages = history.context("p")
        assert len(messages) % 3 == 0
        for at in range(0, len(messages), 3):
            assert [message.role for message in messages[at : at + 3]] == [
                "user",
                "assistant",
                "tool",
            ]
        assert numbers(messages)[-1] == "3"
        assert numbers(messages) == sorted(numbers(messages))
        size = sum([len(message.text) for message in history.context()])
        left = sum([len(message.text) for message in messages])
        assert size - left <= bytes or bytes < 460


def test_what_was_left_out_stays_left_out_for_that_provider_alone():
    history = conversation([10, 10, 10, 10])
    assert history.leave_out("p", 1)
    assert numbers(history.context("p")) == ["1", "2", "3"]
    assert numbers(history.context("q")) == numbers(history.context()) == ["0", "1", "2", "3"]
    history.begin(Message("user", "4"))
    assert numbers(history.context("p")) == ["1", "2", "3", "4"]
    history.restore([[Message("user", "r"), Message("assistant", "")]])
    assert numbers(history.context("p")) == ["1", "2", "3", "4"]
    assert numbers(history.context()) == ["r", "0", "1", "2", "3", "4"]
    assert history.leave_out("p", 100000) and not history.leave_out("p", 1)
    assert numbers(history.context("p")) == ["4"]


def test_turns_that_are_forgotten_are_no_longer_left_out():
    history = conversation([10, 10, 10, 10], max_bytes=700)
    assert history.leave_out("p", 1)
    for number in range(4, 9):
        history.begin(Message("user", "%d" % number + "x" * 300))
    assert numbers(history.context("p")) == numbers(history.context()) == ["6", "7", "8"]


def test_a_long_text_of_an_earlier_turn_is_shown_in_part():
    history = History(65536)
    for text in ("x" * 10, "é" * 6, "é" * 5, "now " * 10):
        history.begin(Message("user", text))
    assert [message.text for message in history.context("p", 10)] == [
        "x" * 10,
        "é" * 5 + "\n[truncated: true, original_bytes: 12]",
        "é" * 5,
        "now " * 10,
    ]
    assert history.context("p", 9)[1].text == "éééé\n[truncated: true, original_bytes: 12]"
    assert history.context()[1].text == "é" * 6


def test_old_turns_are_forgotten_at_the_bound():
    assert numbers(conversation([100, 100, 100, 100], max_bytes=700).context()) == ["1", "2", "3"]
    assert numbers(conversation([100, 100, 100], max_bytes=0).context()) == ["2"]


def test_what_rules_ask_about_a_day_is_counted_for_all_providers():
    """5.8 ``rate_limit``: tokens and money of a day, each only where some rule asks."""
    one, two = Provider(prices=(2, 3)), Provider()
    two.name = "q"
    for rates, expected in ((0, (0, 0)), (1, (60, 0)), (2, (0, 80)), (3, (60, 80))):
        spent = {}
        m = meter(spent, rates=rates)
        spend(m, one, 10, 20)
        spend(m, two, 30, 0)
        assert m.read_use_of_day() == expected and len(spent) == rates % 2 + rates // 2
    NOW[1] += DAY
    assert m.read_use_of_day() == (0, 0)

"""Limits of providers (CKP 0.2.0, 5.2): counted, held, and kept over days, restarts and clocks that jump."""
from clawlite.core.errors import QuotaExceeded
from clawlite.core.history import History
from clawlite.core.meter import MAX_TOKENS, Meter
from clawlite.core.turn import Message

DAY = 86400


class Provider:
    def __init__(self, per_day=0, per_request=0, per_minute=0, window=0):
        self.name = "p"
        self.per_day, self.per_request, self.per_minute, self.window = per_day, per_request, per_minute, window


class Answer:
    def __init__(self, input_tokens=None, output_tokens=None, text=""):
        self.input_tokens, self.output_tokens, self.text = input_tokens, output_tokens, text


NOW = [0, 100 * DAY]


def meter(spent=None, epoch=100 * DAY):
    NOW[0], NOW[1] = 0, epoch
    return Meter(lambda: (NOW[0], NOW[1]), spent)


def refused(meter, provider, asked):
    try:
        meter.allowed(provider, asked)
    except QuotaExceeded as e:
        assert e.code == -32021
        return e.data["limit"]
    return None


def test_without_limits_an_answer_has_its_default():
    assert meter().allowed(Provider(), 10 ** 6) == MAX_TOKENS
    assert meter().spend(Provider(), Answer(5, 5), 1) is None


def test_a_day_refuses_the_request_that_would_exceed_it():
    """5.2: tokens_per_day is enforced, -32021 before the request."""
    m, p = meter(), Provider(per_day=1000)
    assert m.allowed(p, 400) == 600
    assert m.spend(p, Answer(400, 500), 0) == {"p": [100, 900]}
    assert m.allowed(p, 99) == 1
    assert refused(m, p, 100) == "tokens_per_day"
    NOW[1] += DAY
    assert m.allowed(p, 100) == 900


def test_what_was_spent_survives_a_restart():
    p = Provider(per_day=1000)
    assert refused(meter({"p": [100, 990]}), p, 20) == "tokens_per_day"
    assert meter({"p": [99, 990]}).allowed(p, 20) == 980


def test_a_clock_that_is_unset_or_goes_back_begins_no_new_day():
    p = Provider(per_day=1000)
    assert refused(meter({"p": [100, 990]}, None), p, 20) == "tokens_per_day"
    assert refused(meter({"p": [100, 990]}, 50 * DAY), p, 20) == "tokens_per_day"
    m = meter({"p": [100, 990]}, 50 * DAY)
    assert m.spend(p, Answer(5, 5), 0) == {"p": [100, 1000]}


def test_tokens_are_estimated_when_the_provider_does_not_tell():
    assert meter().spend(Provider(per_day=1000), Answer(text="x" * 40), 7) == {"p": [100, 17]}


def test_a_request_has_a_limit_of_its_own():
    m, p = meter(), Provider(per_request=100)
    assert m.allowed(p, 99) == 1 and refused(m, p, 100) == "tokens_per_request"
    assert refused(m, Provider(window=100), 100) == "max_context_window"
    assert meter().allowed(Provider(per_day=5000, per_request=300, window=400), 100) == 200


def test_requests_per_minute_wait():
    m, p = meter(), Provider(per_minute=2)
    for _ in range(2):
        assert m.pause(p) == 0
        m.sent(p)
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
    assert numbers(conversation([1, 1, 1]).context(0)) == ["0", "1", "2"]


def test_trimming_forgets_whole_turns_and_never_parts_a_call_from_its_result():
    """5.2 max_context_window; a tool call without its result is an error to every provider."""
    for room in range(0, 2000, 7):
        messages = conversation([100, 300, 50, 10]).context(room)
        assert len(messages) % 3 == 0
        for at in range(0, len(messages), 3):
            assert [message.role for message in messages[at:at + 3]] == ["user", "assistant", "tool"]
        assert numbers(messages)[-1] == "3"
        assert numbers(messages) == sorted(numbers(messages))


def test_old_turns_are_forgotten_at_the_bound():
    assert numbers(conversation([100, 100, 100, 100], max_bytes=700).context(0)) == ["1", "2", "3"]
    assert numbers(conversation([100, 100, 100], max_bytes=0).context(0)) == ["2"]

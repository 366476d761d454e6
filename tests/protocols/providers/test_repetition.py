"""Whether an answer only repeats itself, however it is cut into pieces."""

from test_provider import STREAM, World, ask, chunked, failed, row

from clawlite.protocols.providers.repetition import LEAST, LONGEST, TIMES, Repetition

PARAGRAPH = "The soil is dry today, so I would water the plants for three seconds.\n\n"
SIZES = (1, 3, 7, 50, len(PARAGRAPH), 400)


def _ends(text: str, size: int):
    """Return after how many characters *text* is found to repeat itself, None when it is not."""
    found = Repetition()
    for start in range(0, len(text), size):
        if found.add(text[start : start + size].encode()):
            return start + size
    return None


def test_a_run_without_end_is_found_soon():
    numbers = "".join([str(n) for n in range(350)])
    for run in (
        "a",
        "ha ",
        "ha ha ha ha ha ha ha ha\n",
        PARAGRAPH,
        PARAGRAPH * 2 + "And so on.\n",
        "\u00fc" * 5 + "ber",
        numbers[: LONGEST // 2],
        numbers[: LONGEST - 50],
    ):
        for size in SIZES:
            at = _ends("I begin well. " + run * (12000 // len(run)), size)
            most = LEAST + (TIMES + 2) * len(run) + 600 + 4 * size
            assert at is not None and at <= most, (run[:20], size, at, most)


def test_what_goes_on_is_not():
    for text in (
        "a" * (LEAST - 1),
        PARAGRAPH * (TIMES - 1),
        "-" * 200 + "\n" + PARAGRAPH,
        "".join(["%d. Water plant %d.\n" % (n, n) for n in range(400)]),
        "".join(["| %d | dry | 21 %% | water |\n" % (n * n) for n in range(300)]),
        "".join(["%d " % (n % 2 + n // 7) for n in range(2000)]),
    ):
        for size in SIZES:
            assert _ends(text, size) is None, (text[:20], size)


def test_what_repeats_after_more_than_the_longest_run_is_not():
    run = "".join(["%d " % n for n in range(800)])
    assert len(run) > 2 * LONGEST
    for size in SIZES:
        assert _ends(run * 5, size) is None


def test_an_answer_that_only_repeats_itself_is_ended_and_not_tried_again():
    piece = b"""data: {"choices":[{"index":0,"delta":{"content":"%s"}}]}

""" % (b"ha " * 20)
    world = World(chunked([STREAM[0]] + [piece] * 100))
    e = failed(world, row(stream=True), repetition=Repetition)
    world = World(chunked([STREAM[0]] + [piece] * 100))
    reply = ask(world, row(stream=True), repetition=Repetition)
    assert e.message == "provider p: the answer repeated itself and was cut (tried 1 of 3)"
    assert reply.text == "From rules." and len(world.requests) == 1

"""``clawlite ask``: one turn, and the exit code that says how it went."""

import signal

import pytest
from agents import Agent, eventually, linux

DRY = "The soil is dry: 21 %. I would water it for 3 seconds.\n"


def _ask(image, tmp_path, text, *flags, terminal=False):
    return Agent(linux("ask", text, image, *flags), tmp_path, terminal)


def test_without_a_tool_it_is_an_answer_and_0(greenhouse_image, tmp_path):
    with _ask(greenhouse_image, tmp_path, "hello") as agent:
        assert agent.wait() == 0 and agent.errors() == ""
        assert (
            agent.text()
            == "Hello! Ask me: is the soil dry? Or tell me: water the plants for 5 seconds.\n"
        )


def test_without_a_terminal_what_asks_first_is_denied_and_the_flag_is_named(
    greenhouse_image, tmp_path
):
    with _ask(greenhouse_image, tmp_path, "is the soil dry?") as agent:
        assert agent.wait() == 5 and agent.errors() == ""
        assert agent.text() == DRY + (
            "Not watered. water: not approved: it asks first; answer "
            "with --approve, or ask on a terminal\n"
        )


def test_its_input_is_not_touched(greenhouse_image, tmp_path):
    """``while read line; do clawlite ask ...; done`` must keep its own input."""
    with _ask(greenhouse_image, tmp_path, "water the plants for 1 seconds") as agent:
        agent.send("y\n")
        assert agent.wait() == 5


def test_approve_answers_yes(greenhouse_image, tmp_path):
    with _ask(greenhouse_image, tmp_path, "water the plants for 1 seconds", "--approve") as agent:
        assert agent.wait() == 0 and agent.text() == "Watered for 1 s.\n"


@pytest.mark.parametrize(
    "typed, code, said",
    [
        ("y\n", 0, "careful ran"),
        ("n\n", 5, "not approved: the person said no"),
        ("\x04", 5, "not approved: nobody is at the console"),
    ],
)
def test_on_a_terminal_the_person_is_asked(bench, marks, typed, code, said):
    with bench("ask", text="careful", terminal=True) as agent:
        agent.expect("[y/N] ")
        agent.send(typed)
        assert agent.wait() == code
        assert said in agent.text() and (marks / "careful").exists() == (code == 0)


def test_ctrl_c_at_the_question_is_130(bench, marks):
    with bench("ask", text="careful", terminal=True) as agent:
        agent.expect("[y/N] ")
        agent.send(b"\x03")
        assert agent.wait() == 130 and not (marks / "careful").exists()


@pytest.mark.parametrize(
    "tool, on, off", [("pump 60000", "pump-on", "pump-off"), ("hang", "hang-on", "hang-off")]
)
def test_ctrl_c_during_a_tool_is_130_and_ends_it(bench, marks, tool, on, off):
    with bench("ask", text=tool, terminal=True) as agent:
        eventually((marks / on).exists)
        agent.rest()
        agent.send(b"\x03")
        assert agent.wait() == 130
        assert (
            (marks / off).exists()
            and agent.text() in ("", "^C")
            and agent.errors() == "Interrupted.\n"
        )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_turn_that_a_signal_ended_is_no_success(bench, marks, number):
    with bench("ask", text="pump 60000") as agent:
        eventually((marks / "pump-on").exists)
        agent.signal(number)
        assert agent.wait() == 128 + number
        assert (marks / "pump-off").exists()


@pytest.mark.parametrize("terminal", [False, True])
def test_a_text_that_is_too_long_fails_and_ends(greenhouse_image, tmp_path, terminal):
    with _ask(greenhouse_image, tmp_path, "x" * 20000, terminal=terminal) as agent:
        assert agent.wait() == 2 and agent.text() == ""
        assert (
            "20000 characters; a message has at most" in agent.errors()
            and len(agent.errors().splitlines()) == 1
        )


@pytest.mark.parametrize("text", ["", "   "])
def test_an_empty_text_is_refused(greenhouse_image, tmp_path, text):
    # a manifest goes through a second start
    for target in (greenhouse_image, greenhouse_image.parent):
        with Agent(linux("ask", text, target), tmp_path) as agent:
            assert agent.wait() == 2
            assert agent.text() == "" and "expected a text" in agent.errors()


def test_a_tool_that_policy_denies_is_5(greenhouse_image, tmp_path):
    from clawlite.host.builder.build import build_beside
    from clawlite.host.projects.new import new

    new(str(tmp_path / "p"), offline=True)
    claw = tmp_path / "p/claw.yaml"
    tools = claw.read_text().replace("adc-read@", "digital-write@")  # which no rule allows
    claw.write_text(tools)
    rules = tmp_path / "p/reflex.toml"
    rules.write_text(
        rules.read_text() + '\n[[rule]]\nwhen = "pump on"\ncall = "digital-write"\n'
        'arguments = { pin = "pump", value = true }\n'
    )
    with _ask(build_beside(str(tmp_path / "p")), tmp_path, "pump on") as agent:
        assert agent.wait() == 5
        assert (
            agent.text()
            == "Policy denied: rule default-deny blocks digital-write: not on the list of this "
            "greenhouse\n"
        )


def test_a_reader_that_is_gone_is_no_traceback(bench):
    with bench("ask", text="pump 100") as agent:
        agent.stop_reading()
        assert agent.wait() in (0, 1) and "Traceback" not in agent.errors()

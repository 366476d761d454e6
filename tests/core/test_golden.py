"""The same transcripts on every runtime: whole turns, approvals and sessions, effect by effect."""

import transcripts

# Loaded before the tests: not linked, as they are here, they nest as no board's imports do.
import clawlite.scan.injection
import clawlite.scan.known_secrets
import clawlite.scan.leaks  # noqa: F401


def read(name):
    with open(transcripts.FOLDER + name + ".golden.json", "rb") as file:
        data = file.read()
    return transcripts.decoder()[0](data)


def check(name):
    difference = transcripts.play(read(name))
    assert difference is None, "%s, step %s\nexpected %s\n     got %s" % tuple([name] + difference)


def test_greenhouse_on_the_console():
    check("greenhouse-console")


def test_gates_on_the_console():
    check("gates-console")


def test_gates_for_an_operator():
    check("gates-operator")


def test_what_strangers_say_for_an_operator():
    check("guarded-operator")


def test_what_strangers_say_on_the_console():
    check("guarded-console")


def test_skills_on_the_console():
    check("skills-console")


def test_9_1_and_9_3_1_for_an_operator_of_level_2():
    check("session-operator")


def test_9_3_1_and_11_for_an_operator_of_level_1():
    check("least-operator")


def test_9_3_4_for_an_operator_of_level_3():
    check("memory-operator")


def test_9_3_4_over_a_conversation_at_the_console():
    check("talking-console")


def test_a_wrong_transcript_is_told():
    transcript = read("gates-console")
    transcript["steps"][1][3][0][1] = "Thrice."
    assert transcripts.play(transcript)[0][1] == "line"

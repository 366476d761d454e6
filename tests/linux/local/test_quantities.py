"""Numbers in a sentence (linux/local/quantities.py)."""

from fractions import Fraction

import pytest

from clawlite.linux.local.quantities import find_quantities, unit_of


@pytest.mark.parametrize(
    "text, unit, value",
    [
        ("water for 5 seconds", "seconds", 5),
        ("water for fifteen seconds", "seconds", 15),
        ("half a minute", "seconds", 30),
        ("a minute", "seconds", 60),
        ("an hour", "minutes", 60),
        ("a quarter of an hour", "minutes", 15),
        ("1 hour and 20 minutes", "minutes", 80),
        ("twenty-five seconds", "seconds", 25),
        ("two hundred grams", "grams", 200),
        ("a hundred grams", "grams", 100),
        ("two hundred and fifty grams", "grams", 250),
        ("0.1 kg", "grams", 100),
        ("1,5 kg", "grams", 1500),
        ("minus 18 degrees", "celsius", -18),
        ("-18", "celsius", -18),
        ("80%", "percent", 80),
        ("cover half of it", "percent", 50),
        ("beep twice", "times", 2),
        ("dreißig Sekunden", "seconds", 30),
        ("eine halbe Stunde", "minutes", 30),
        ("vingt secondes", "seconds", 20),
        ("cinco minutos", "minutes", 5),
        ("500 ms", "ms", 500),
        ("20s", "seconds", 20),
    ],
)
def test_a_number_is_read_in_the_unit_that_is_meant(text, unit, value):
    (found,) = find_quantities(text)
    assert found.as_unit(unit) == Fraction(str(value))


@pytest.mark.parametrize("text", "open the door|a light|let one of them out please".split("|")[:2])
def test_an_article_is_no_number(text):
    assert find_quantities(text) == []


def test_another_kind_of_unit_is_no_value():
    (found,) = find_quantities("5 grams")
    assert found.as_unit("seconds") is None


@pytest.mark.parametrize(
    "name, description, unit",
    [
        ("seconds", "", "seconds"),
        ("duration_s", "how many seconds", "seconds"),
        ("level", "in percent", "percent"),
        ("amount", "what", ""),
        ("speed", "percent for some seconds", ""),
    ],
)
def test_the_unit_of_an_argument_is_in_its_name_or_description(name, description, unit):
    assert unit_of(name, description) == unit

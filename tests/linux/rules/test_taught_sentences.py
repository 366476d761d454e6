"""Sentences become the right rows, or an honest question: two sets of benchmarks/teach."""

import pytest
from taught_sentences import measure


@pytest.mark.parametrize("name", ["dev", "held"])
def test_of_sentences_at_least_four_in_five_are_right_or_asked(name):
    row = measure(name)
    assert row["beyond"] == 0
    assert row["right"] + row["asked"] >= 0.8 * row["sentences"] and row["wrong"] <= 2

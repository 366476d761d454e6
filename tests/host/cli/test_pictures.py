"""The pictures of the documents show what is there now: tests/pictures.py made them."""

from xml.etree import ElementTree

import pictures


def test_the_session_is_what_a_run_shows():
    drawn = pictures.draw_session(pictures.play_session())
    assert (pictures.IMAGES / "session.svg").read_text() == drawn, "make pictures"
    root = ElementTree.fromstring(drawn)
    tags = {one.tag.rpartition("}")[2] for one in root.iter()}
    assert tags == {"svg", "style", "rect", "circle", "text", "tspan"}  # no script, no image
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")
    said = "\n".join("".join(one.itertext()) for one in root if one.tag.endswith("text"))
    assert "[y/N] y\nWatered for 3 s." in said and "* rule ask-before-watering" in said

"""The pictures of the documents show what is there now: tests/helpers/pictures.py made them."""

from xml.etree import ElementTree

import pictures
import pytest


def test_the_session_is_what_a_run_shows():
    drawn = pictures.draw_session(pictures.play_session("greenhouse"))
    assert (pictures.IMAGES / "session.svg").read_text() == drawn, "make pictures"
    root = ElementTree.fromstring(drawn)
    tags = {one.tag.rpartition("}")[2] for one in root.iter()}
    assert tags == {"svg", "style", "rect", "circle", "text", "tspan"}  # no script, no image
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")
    said = "\n".join("".join(one.itertext()) for one in root if one.tag.endswith("text"))
    assert "[y/N] y\nWatered for 3 s." in said and "* rule ask-before-watering" in said


@pytest.mark.parametrize("template", [one["name"] for one in pictures.list_drawn()])
def test_the_gallery_shows_what_a_template_is_and_does_now(template):
    shown = (pictures.IMAGES / "gallery" / f"{template}.svg").read_text()
    assert shown == pictures.draw_template(template), "make pictures"
    ElementTree.fromstring(shown)
    assert "http" not in shown.replace("http://www.w3.org/2000/svg", "")


def test_the_page_of_the_gallery_has_each_template_with_a_picture():
    page = (pictures.ROOT / "docs/gallery.md").read_text()
    assert page == pictures.write_page(), "make pictures"
    files = {path.stem for path in (pictures.IMAGES / "gallery").glob("*.svg")}
    assert files == {one["name"] for one in pictures.list_drawn()}
    assert all(f"](images/gallery/{name}.svg)" in page for name in files)

"""The udev rules that a maker copies are those of the board profiles; test_docs.py holds the file
to them.
"""

import re

from documents import load_site

from clawlite.host.boards import boards


def test_every_board_with_usb_ids_has_a_rule_and_no_other():
    rules = load_site("reference").write_udev_rules()
    found = re.findall(r'idVendor\}=="(\w{4})", ATTRS\{idProduct\}=="(\w{4})"', rules)
    assert {f"{vendor}:{product}".upper() for vendor, product in found} == {
        usb for profile in boards.load_all() for usb in profile.usb or ()
    }
    assert len(found) == len(set(found)) > 3

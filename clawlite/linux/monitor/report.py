"""``clawlite report``: what an agent did and used, as one HTML file that needs no network."""

import os
import time

from clawlite.core.base.errors import ClawError
from clawlite.linux.admin.rehearse import seconds_of
from clawlite.linux.admin.trace import mending, open_image_of
from clawlite.linux.files import files
from clawlite.linux.io.jsontext import document
from clawlite.linux.io.printing import print_line


def write(file: str, manifest, since: str, replace: bool, as_json: bool) -> int:
    """Write a report; return the exit code.  Raises ``ClawError``.

    file     where it goes
    since    how long ago it begins, "1d"
    replace  a file that is there is replaced
    """
    from clawlite.linux.monitor.report_facts import Facts
    from clawlite.linux.monitor.report_page import make_page

    now_s = int(time.time())
    from_s = now_s - seconds_of(since)
    image = open_image_of(manifest)
    if os.path.lexists(file) and not replace:
        raise ClawError("%s is there already" % file, "name another file, or add --replace")
    facts = Facts(image, from_s, now_s)
    data = make_page(facts).encode("utf-8", "replace")
    with mending("the report cannot be written"):
        files.replace_file(file, data)
    if as_json:
        told = {"file": file, "bytes": len(data), "turns": len(facts.turns)}
        print(document({**told, "calls": len(facts.calls), "rule_runs": len(facts.runs)}))
    else:
        print_line(
            "%s: %d turns, %d calls, %d runs of rules; open it in any browser"
            % (file, len(facts.turns), len(facts.calls), len(facts.runs))
        )
    return 0

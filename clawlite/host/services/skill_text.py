"""A service's skill: markdown with YAML front matter, whose description gives its purpose."""

from clawlite.host.base import yaml_text
from clawlite.host.base.document import refuse

MAX_TEXT = 32768  # bytes
_MARK = "---"


def description_and_body(text: str, file: str) -> tuple:
    """Return (description, body) of *text*; without front matter the description is "".

    file  as the user would open it
    Raises ``ManifestErrors`` with one problem.
    """
    lines = text.lstrip("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != _MARK:
        return "", _body(text, file)
    ends = [number for number, line in enumerate(lines) if number and line.rstrip() == _MARK]
    if not ends:
        message = f"the front matter has no end: {_MARK}"
        refuse(file, 1, message, hint=f"end it with a line {_MARK}")
    data = yaml_text.read("\n".join(["", *lines[1 : ends[0]]]).encode(), file).data
    about = data.get("description", "") if isinstance(data, dict) else None
    if not isinstance(about, str):
        wanted = "expected front matter with a description, a text"
        refuse(file, 1, wanted, hint="write description: TEXT between the lines ---")
    return " ".join(about.split()), _body("\n".join(lines[ends[0] + 1 :]), file)


def _body(text: str, file: str) -> str:
    text = text.strip()
    if not text:
        refuse(file, 1, "the skill says nothing", hint="write its text below the front matter")
    return text + "\n"

"""Problems of a manifest: one record each, shown all together.

1. A problem says what is wrong, where (file, line, path), what was expected, what was found, and
   what to do.
2. Nothing here raises on the first one: stages add to one ``Problems`` and raise at the end.
3. The same record serves people (``text``) and ``--json`` (``to_json``).
"""

import dataclasses
import difflib
import errno
import os
import re
import shlex

from clawlite.core.base.errors import ClawError
from clawlite.core.base.printable import escape_ends, escape_line

# a hostile file can hold 100,000 mistakes; nobody reads past the first screens
MAX_SHOWN = 100
LATER = "not supported by this version of clawlite"
NOT_ASKED = "is not known yet"  # a build asks for it, and this is no mistake in a check
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


@dataclasses.dataclass(frozen=True)
class Problem:
    """One mistake.

    path      tuple of keys and indexes in *file*, () for the file itself
    message   one sentence without a full stop; may be "" when expected and found say it all
    file      as the user would open it; line >= 1, or 0 when only the file is known
    expected, found, hint   "" when they add nothing
    """

    path: tuple
    message: str
    file: str = ""
    line: int = 0
    expected: str = ""
    found: str = ""
    hint: str = ""

    def text(self) -> str:
        """Return one line: ``file:line: path: message, expected X, found Y - hint``."""
        where = f"{self.file}:{self.line}" if self.line else self.file
        return ": ".join(filter(None, (where, self.text_without_place())))

    def text_without_place(self) -> str:
        """Return ``path: message, expected X, found Y - hint``."""
        said = [
            part
            for part in (
                self.message,
                f"expected {self.expected}" if self.expected else "",
                f"found {self.found}" if self.found else "",
            )
            if part
        ]
        head = [part for part in (path_text(self.path), ", ".join(said)) if part]
        return ": ".join(head) + (f" - {self.hint}" if self.hint else "")

    def to_json(self) -> dict:
        """Return the documented keys of ``--json``: all of them, always."""
        return {
            "file": self.file,
            "line": self.line,
            "path": path_text(self.path),
            "message": self.message,
            "expected": self.expected,
            "found": self.found,
            "hint": self.hint,
        }


class ManifestErrors(ClawError):
    """A manifest is refused.  ``problems``: every Problem, by file and line; ``lines``, ``str()``:
    one line for each.
    """

    code = -32060

    def __init__(self, problems):
        self.problems = sorted(
            set(problems), key=lambda p: (p.file, p.line, path_text(p.path), p.message)
        )
        shown = [p.text() for p in self.problems[:MAX_SHOWN]]
        if len(self.problems) > MAX_SHOWN:
            shown.append(f"... and {len(self.problems) - MAX_SHOWN} more")
        self.lines = [escape_ends(line) for line in shown]
        super().__init__(
            "\n".join(self.lines),
            data={"problems": [p.to_json() for p in self.problems[:MAX_SHOWN]]},
        )


class LinesError(ClawError):
    """An error with more lines than one.  ``lines``: the message with its hint, then *more*."""

    def __init__(self, message: str, hint: str, more):
        more = [escape_ends(line) for line in more]
        super().__init__("\n".join([message, *more]), hint)
        self.lines = [f"{message}{' - ' + hint if hint else ''}", *more]


class QuotingError(LinesError):
    """An error that quotes lines of strangers, each behind "  | ", so that none looks like one of
    clawlite's own.
    """

    def __init__(self, message: str, hint: str, quoted_lines):
        super().__init__(message, hint, ["  | " + line for line in quoted_lines])


class Problems:
    """What the stages of the compiler found so far."""

    def __init__(self):
        self.found = []

    def add(
        self,
        place,
        path: tuple,
        message: str,
        expected: str = "",
        found: str = "",
        hint: str = "",
        key: bool = False,
    ) -> None:
        """Add one problem at *path* below *place* (``document.Place``); *key* points at the key,
        not the value.
        """
        file, line = place.where(path, key)
        self.found.append(Problem(place.full(path), message, file, line, expected, found, hint))

    def add_excess(self, place, path: tuple, value: int | None, most: int, owner: str) -> None:
        """Add one when *value* is declared, and more than *owner* takes."""
        if value and value > most:
            expected, hint = f"at most {most} on {owner}", f"set it to {most} or less"
            self.add(place, path, "", expected, str(value), hint)

    def extend(self, errors: ManifestErrors) -> None:
        self.found.extend(errors.problems)

    def raise_all(self) -> None:
        """Raise ``ManifestErrors`` when there is at least one problem."""
        if self.found:
            raise ManifestErrors(self.found)


def path_text(path: tuple) -> str:
    """Return ``spec.tools[2].inline`` for ("spec", "tools", 2, "inline"); odd keys are quoted."""
    out = ""
    for step in path:
        if isinstance(step, int):
            out += f"[{step}]"
        elif _PLAIN_KEY.match(step):
            out += f".{step}" if out else step
        else:
            out += f"[{enquote(step)}]"
    return out


def enquote(text: str) -> str:
    """Return *text* in double quotes on one line, of at most 60 characters."""
    return f'"{escape_line(text, 60)}"'


def value_text(value: object) -> str:
    """Return how a message names a value that was found: ``"objet"``, ``true``, ``a list``,
    ``nothing``.
    """
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return enquote(value)
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "a mapping"
    return f"a {type(value).__name__}"  # TOML has dates


def did_you_mean(word: object, names) -> str:
    """Return ``did you mean "object"?`` for the nearest of *names*, or "" when none is near.

    Letters that only changed places always count; else the cut-off grows for short words: "get" is
    not a misspelt "set"."""
    if not isinstance(word, str) or not 2 <= len(word) <= 100:
        return ""
    word = word.lower().replace("_", "-")
    plain = {name.lower().replace("_", "-"): name for name in names}
    near = [name for name in plain if sorted(name) == sorted(word)]
    near = near or difflib.get_close_matches(word, plain, 1, 0.75 if len(word) < 5 else 0.7)
    return f"did you mean {enquote(plain[near[0]])}?" if near else ""


class CommandFailed(ClawError):
    """What was asked is right, and could not be done."""

    exit_code = 1


def one_of(names) -> str:
    """Return ``"a", "b" or "c"`` for the names in their order."""
    words = [enquote(name) for name in names]
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]


def make_write_error(path: str, e: OSError, otherwise: str) -> ClawError:
    """Return the error of a file that cannot be written; exit code 1 when its disk is full or
    fails: what the command was given is right.

    otherwise  the next step where the disk is not to blame
    """
    hint = disk_hint(e.errno)
    folder = os.path.dirname(path)
    if e.errno == errno.ENOENT and folder:
        otherwise = f"make its folder (mkdir -p {shlex.quote(folder)}), or {otherwise}"
    return (CommandFailed if hint else ClawError)(f"{path}: {e.strerror}", hint or otherwise)


def disk_hint(code) -> str:
    """Return the next step after the error *code* (errno) of a file, "" when the disk is not to
    blame.
    """
    if code == errno.ELOOP:
        return "remove that link"
    if code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "make room"
    return "look at the disk or the card: it fails" if code == errno.EIO else ""


def error_sentence(e: ClawError) -> str:
    """Return the sentence for whoever runs this command."""
    return f"{e.message} - {e.hint}" if e.hint else e.message


def client_sentence(e: ClawError) -> str:
    """Return the sentence for a client of a gateway, a device or a runner.  It does not learn where
    a provider is: a hint that names an address is for whoever runs the gateway.
    """
    hint = "the output of clawlite gateway says what to do" if "://" in e.hint else e.hint
    return f"{e.message} - {hint}" if hint else e.message


def network_reason(e: OSError) -> str:
    """Return why a connection could not be made, in the words of the system: asyncio has its own
    ("Connect call failed"), and joins those of several addresses.
    """
    found = re.search(r"\[Errno (\d+)\]", str(e))
    code = e.errno or (int(found[1]) if found else 0)
    return os.strerror(code).lower() if code > 0 else e.strerror or str(e)

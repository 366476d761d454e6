"""Lines that a person typed before, those of earlier starts too; and what Tab may complete.

1. The file has one line for each: JSON text, so that a line break of a paste stays inside.  It is
   the user's alone (0600), is read when a person first asks for an earlier line, and is written
   anew when it has twice as many lines as count.
2. No secret is kept: not what the agent knows as one, nor what looks like a token or a password,
   nor an answer to a question.
3. What cannot be read or written is left: a history is no reason for an error.
"""

import os

MOST = 500  # lines
LONGEST = 4096  # characters of a line that is kept
_TOKEN = 12  # characters of the shortest word that may be one; what a label names may be shorter
_LABELS = ("password", "passwd", "passphrase", "secret", "token", "api key", "api_key", "apikey")


class History:
    """lines: the oldest first."""

    def __init__(self, path=None, hides=None):
        """path: of the file, None for none; hides(text): whether the agent knows it as a secret."""
        self.lines: list = []
        self._path, self._hides, self._is_read = path, hides, path is None

    def add(self, text: str):
        """Keep a line that was sent, unless it is the last one or holds a secret."""
        if not text.strip() or len(text) > LONGEST or self.lines[-1:] == [text]:
            return
        self.lines = self.lines[1 - MOST :] + [text]
        if self._path is not None and not self._is_secret(text):
            self._write("a", [text])

    def load(self):
        """Put what earlier starts had before what this one has, once."""
        if self._is_read:
            return
        self._is_read = True
        import json

        found = []
        try:
            with open(self._path, encoding="utf-8", errors="replace") as file:
                for line in file:
                    try:
                        text = json.loads(line)
                    except ValueError:
                        continue
                    if isinstance(text, str) and found[-1:] != [text]:
                        found.append(text)
        except OSError:
            return
        mine = len(self.lines)
        if len(found) > 2 * MOST:
            self._write("w", found[-MOST:])
        earlier = found[: len(found) - mine] if found[len(found) - mine :] == self.lines else found
        self.lines = (earlier + self.lines)[-MOST:]

    def find(self, words: str, back: int) -> int:
        """Return how far back the newest line stands that holds *words* and is older than the one
        *back* lines ago (1: the last; 0: none yet); 0 where there is none.
        """
        for older in range(back + 1, len(self.lines) + 1):
            if words in self.lines[-older]:
                return older
        return 0

    def _write(self, mode: str, lines: list):
        import json

        whole = self._path + ".new" if mode == "w" else self._path
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        flags |= os.O_TRUNC if mode == "w" else os.O_APPEND
        try:
            fd = os.open(whole, flags, 0o600)
            try:
                os.write(fd, "".join(json.dumps(one) + "\n" for one in lines).encode())
            finally:
                os.close(fd)
            if mode == "w":
                os.replace(whole, self._path)
        except OSError:
            pass

    def _is_secret(self, text: str) -> bool:
        if self._hides is not None and self._hides(text):
            return True
        lower = text.lower()
        for label in _LABELS:
            at = lower.find(label) + len(label)
            if at >= len(label) and lower[at:].lstrip().startswith(("=", ":", "is ")):
                return True
        if not any(len(word) >= _TOKEN for word in text.split()):
            return False
        from clawlite.scan.leaks import find

        return bool(find(text.encode("utf-8", "replace")))


def complete(before: str, words: list) -> tuple:
    """Return (how many characters of the end of *before* are replaced, candidates, sorted):
    commands in front, else *words* and files of the current folder.
    """
    start = before.rfind(" ") + 1
    word = before[start:]
    if word.startswith("/") and start == 0:
        found = [one for one in words if one.startswith(word)]
    else:
        found = [one for one in words if word and one.startswith(word) and one[0] != "/"]
        found += _files(word) if word else []
    return len(word), sorted(set(found))


def _files(word: str) -> list:
    """Return the names of files that begin with *word*; folders end with a slash."""
    folder, _, begun = word.rpartition("/")
    folder = folder + "/" if "/" in word else ""
    try:
        with os.scandir(folder or ".") as entries:
            return [
                folder + one.name + ("/" if one.is_dir() else "")
                for one in entries
                if one.name.startswith(begun) and (begun or one.name[0] != ".")
            ]
    except OSError:
        return []

"""Finds prompt injections by patterns: whether an untrusted text gives the agent orders (CKP 0.2.0,
5.8, 10.2).

    text -> pieces (fold.py) -> words -> one letter per word -> an automaton over these letters

1. The host defines which words count and their letters (host/policy/injections.py).  A word without
   meaning ("the") is left out, and any other word is ``_``.  The automaton comes from the image,
   and is linear for every text.
2. Words are looked up as they are, without leet (``1gn0re``), joined (``i g n o r e``, ``ig nore``)
   and split (``ignoreprevious``).  Base64 is decoded up to two times.
3. This is only a speed bump.  The real protection is the policy, which limits what a model can do.
"""

from clawlite.core.formats.automaton import search
from clawlite.scan.fold import PIECE, ROOMY_PIECE, fold, pieces, strip_comments, unwrap

_PLAIN, _LEET = "oieastasil", "013457@$!|"
_MARKS = '\\"#%&()*+,-./:;<=>?[]^_`{}~\n\r\t\x0b\x0c\x1c\x1d\x1e\x1f'
_LONG = 15  # letters from which on a word may be several words joined
_DEEDS, _THINGS = "VFNRAWQ", "IPSXKTZGDuhm"  # host/policy/injections.py, WORDS
_NEAR = 12  # words between the two
_MOST = 14  # letters of the longest word that counts
# times that a text is checked: as it is, then twice with its base64 decoded
_WRAPPED = 3


class Words:
    """{word: letter} as one text for each first letter, which takes a fifth of a dict's heap on a
    board.  ``get`` works like that of a dict.
    """

    def __init__(self, words: list):
        self._texts = {}
        for letter, named in words:
            for word in named.split(" "):
                self._texts[word[0]] = (
                    self._texts.get(word[0], " ") + word + ":" + (letter or "-") + " "
                )

    def get(self, word: str):
        """Return the letter of *word*, "" for a word without meaning, None for an unknown one."""
        text = self._texts.get(word[:1])
        at = -1 if text is None else text.find(" " + word + ":")
        if at < 0:
            return None
        letter = text[at + len(word) + 2]
        return "" if letter == "-" else letter


class Patterns:
    """The patterns of an image.

    table     automaton over letters
    words     list of (letter, words with spaces between); words with the letter "" have no meaning
    literals  list of str, in lower case: a text with one of them is an injection
    roomy     bool, the words become a dict
    alive     function() or None: called for each piece of a text, for a watchdog
    """

    def __init__(self, table: bytes, words: list, literals: list, roomy: bool = True, alive=None):
        self._alive = alive
        self._table = table
        self._literals = literals
        self._piece = ROOMY_PIECE if roomy else PIECE
        self._longest = max([len(literal) for literal in literals] or [1])
        self._verbs = ""
        for letter, named in words:
            if letter == "V":
                self._verbs = named
        self._known = (
            {word: letter for letter, named in words for word in named.split(" ")}
            if roomy
            else Words(words)
        )
        # finds words whose inner letters are in another order: "ignroe" is still readable
        self._mixed = {}
        for word in self._known if roomy else ():
            if len(word) > 4:
                self._mixed.setdefault((word[0], word[-1], len(word)), {})[
                    "".join(sorted(word))
                ] = self._known[word]

    def found(self, text: str) -> bool:
        """Return whether *text* gives orders.  Cost: linear; about 3 ms for 64 KB of ASCII on
        CPython.
        """
        for _ in range(_WRAPPED):
            hidden = []
            if self._speaks(pieces(text, self._piece), hidden):
                return True
            if (
                "--" in text or "</" in text or "&#" in text or "&lt;" in text or "\\u" in text
            ) and self._speaks(strip_comments(pieces(text, self._piece)), None):
                return True
            if not hidden:
                break
            text = " ".join(hidden)
        return False

    def doubts(self, text: str) -> bool:
        """Return whether *text* has a verb of orders near one of their objects, or contains encoded
        text.
        """
        spelled, hidden = Spelled(self._known, self._verbs, {}), []
        for piece in pieces(text, self._piece):
            hidden.append(unwrap(piece))
            spelled.add(fold(piece).lower())
        deed = thing = -_NEAR
        letters = spelled.end()
        for at in range(len(letters)):
            if letters[at] in _DEEDS:
                deed = at
            elif letters[at] in _THINGS:
                thing = at
            if deed >= 0 and thing >= 0 and abs(deed - thing) < _NEAR:
                return True
        return "".join(hidden) != ""

    def _speaks(self, parts, hidden) -> bool:
        """Return whether a text gives orders.

        parts   its pieces
        hidden  list that gets the texts that its base64 decodes to, or None
        """
        spelled, before = Spelled(self._known, self._verbs, self._mixed), ""
        for piece in parts:
            if hidden is not None:
                inside = unwrap(piece)
                if inside:
                    hidden.append(inside)
            if self._alive:
                self._alive()
            piece = fold(piece).lower()
            before += piece
            for literal in self._literals:
                if literal in before:
                    return True
            before = before[-self._longest :]
            spelled.add(piece)
        return search(self._table, spelled.end().encode())


class Spelled:
    """The letters of a text, one for each word that counts, from its pieces.

    known  {word: letter}
    verbs  words with spaces between: a long word that contains one of them is split
    mixed  {(first letter, last letter, length): {letters of the word, sorted: letter}}
    """

    def __init__(self, known, verbs: str, mixed: dict):
        self._known = known
        self._verbs = verbs
        self._mixed = mixed
        self._out = []
        self._singles = ""  # letters that stood alone
        self._last = ""  # an unknown word: joined with the next it may be known

    def add(self, text: str):
        """Add the words of a piece in lower case, which ends at the end of a word."""
        for mark in _MARKS:
            if mark in text:
                text = text.replace(mark, " ")
        known, out = self._known, self._out
        for word in text.replace("'", "").replace("\u2019", "").split():
            if len(word) == 1:
                self._singles += word
                continue
            if self._singles:
                self._together()
            letter = known.get(word)
            if letter is None:
                self._last = self._unknown(word, self._last)
            else:
                self._last = ""
                out.append(letter)

    def end(self) -> str:
        """Return the letters of all words; the text is complete."""
        if self._singles:
            self._together()
        return "".join(self._out)

    def _together(self):
        singles, self._singles = self._singles, ""
        letter = self._known.get(singles)
        if letter is None:
            self._unknown(singles, "")
        else:
            self._out.append(letter)

    def _unknown(self, word: str, last: str) -> str:
        """Add the letters of a *word* that is not known as it is.

        last  the word before it when that is unknown, too, else ""
        Returns the plain form of *word* when it stays unknown, else "".
        """
        known, letter = self._known, None
        plain = word.strip("!|")
        if plain != word:
            letter = known.get(plain)
        if letter is None and len(plain) <= _MOST and not word.isalpha() and not plain.isdigit():
            if plain != word:  # !gnore
                letter = known.get(
                    "".join([_PLAIN[_LEET.find(c)] if c in _LEET else c for c in word])
                )
            plain = "".join([_PLAIN[_LEET.find(c)] if c in _LEET else c for c in plain])
            letter = known.get(plain) if letter is None else letter
        if letter is None and 4 < len(plain) <= _MOST:
            like = self._mixed.get((plain[0], plain[-1], len(plain)))
            letter = like.get("".join(sorted(plain))) if like else None
        if letter is None and "@" in word and "@" in word[1:-1]:
            letter = "h"  # somebody's address
        if letter is None and last:
            letter = known.get(last + plain)
            if letter is not None:
                self._out.pop()  # the "_" of the first half
        if letter is not None:
            self._out.append(letter)
            return ""
        if len(word) >= _LONG:
            for verb in self._verbs.split(" "):
                if verb in word:
                    self._split(word)
                    return ""
        self._out.append("_")
        return plain

    def _split(self, word: str):
        pos = 0
        while pos < len(word):
            for size in range(_MOST, 1, -1):
                letter = self._known.get(word[pos : pos + size])
                if letter is not None:
                    self._out.append(letter)
                    pos += size
                    break
            else:
                self._out.append("_")
                pos += 1

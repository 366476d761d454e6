"""Prompt injection by patterns: whether a text that nobody vouches for gives the agent orders (CKP 0.2.0, 5.8, 10.2).

    text -> entities and escapes -> letters that look like others -> words -> one letter a word -> an automaton over these letters

1. The host says which words count and what their letters are (host/guards.py); a word that says nothing ("the") is left out, any other
   is ``_``.  The automaton is one of the image's: linear for every text.
2. Words are looked up as they are, without leet (``1gn0re``), put together (``i g n o r e``, ``ig nore``) and taken apart
   (``ignoreprevious``).  Base64 is decoded once.
3. A speed bump: what a model does with a text is decided by what policy lets it do.
"""
from binascii import a2b_base64

from clawlite.core.automaton import search

_LEET = {"0": "o", "1": "i", "3": "e", "4": "a", "5": "s", "7": "t", "@": "a", "$": "s", "!": "i", "|": "l"}
_MARKS = "\\\"#%&()*+,-./:;<=>?[]^_`{}~\n\r\t\x0b\x0c"
_ENTITIES = (("&nbsp;", " "), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&shy;", ""), ("&amp;", "&"))
_LATIN = ("AAAAAAACEEEEIIIIDNOOOOOxOUUUUYTsaaaaaaaceeeeiiiidnooooo/ouuuuytyAaAaAaCcCcCcCcDdDdEeEeEeEeEeGgGgGgGgHhHhIiIiIiIiIiIiJjKkkLlLlLlLlLl"
          "NnNnNnnNnOoOoOoOoRrRrRrSsSsSsSsTtTtTtUuUuUuUuUuUuWwYyYZzZzZzs")
_LOOKS = {}
for _like, _plain in (("\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u04bb\u0501\u051b\u051d\u043a\u043c\u0442\u043d\u0432\u0433\u0438\u043f",
                       "aeopcyxijshdqwkmthbrnn"),
                      ("\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03b1\u03b2\u03b5\u03b7\u03b9\u03ba\u03bd\u03bf"
                       "\u03c1\u03c2\u03c3\u03c4\u03c5\u03c7\u03b3\u03c9", "ABEZHIKMNOPTYXabeniknopcstuxyw"),
                      ("\u1d00\u0299\u1d04\u1d05\u1d07\ua730\u0262\u029c\u026a\u1d0a\u1d0b\u029f\u1d0d\u0274\u1d0f\u1d18\u0280\ua731\u1d1b\u1d1c\u1d20\u1d21"
                       "\u028f\u1d22\u0261\u0251\u0131", "abcdefghijklmnoprstuvwyzgai")):
    for _at in range(len(_like)):
        _LOOKS[_like[_at]] = _plain[_at]
_LONG = 15                      # letters of a word that may be several
_DEEDS, _THINGS = "VFNRAWQ", "IPSXKTZGDuhm"          # host/injections.py, WORDS
_NEAR = 12                      # words between the two
_MOST = 14                      # letters of the longest word that counts


class Patterns:
    """What an image says of injections.

    table     automaton over letters
    words     list of (letter, words with spaces between): of the letter "" are words that say nothing
    literals  list of str, in lower case: one of them is enough
    """

    def __init__(self, table: bytes, words: list, literals: list):
        self._table = table
        self._literals = literals
        self._letters = {}
        self._verbs = []
        for letter, named in words:
            for word in named.split(" "):
                self._letters[word] = letter
                if letter == "V":
                    self._verbs.append(word)

    def found(self, text: str) -> bool:
        """Return whether *text* gives orders.  Cost: linear; about 2 ms for 64 KB of ASCII on CPython."""
        text = _decoded(text)
        if self._speaks(text) or "<!--" in text and self._speaks(_without_comments(text)):
            return True
        hidden = _base64(text)
        return bool(hidden) and self._speaks(hidden)

    def doubts(self, text: str) -> bool:
        """Return whether *text* has a word for what orders do near one for what they do it to, or is written so that nobody can read it."""
        text = _decoded(text)
        if _base64(text):
            return True
        deed = thing = -_NEAR
        letters = self._letters_of(fold(text).lower())
        for at in range(len(letters)):
            if letters[at] in _DEEDS:
                deed = at
            elif letters[at] in _THINGS:
                thing = at
            if deed >= 0 and thing >= 0 and abs(deed - thing) < _NEAR:
                return True
        return False

    def _speaks(self, text: str) -> bool:
        text = fold(text).lower()
        for literal in self._literals:
            if literal in text:
                return True
        return search(self._table, self._letters_of(text).encode())

    def _letters_of(self, text: str) -> str:
        """Return the letters of *text*, in lower case, one for each word that counts."""
        for mark in _MARKS:
            text = text.replace(mark, " ")
        return self._spelled(text.replace("'", "").replace("\u2019", "").split())

    def _spelled(self, words: list) -> str:
        known, out = self._letters, []
        singles, last = "", ""
        for word in words:
            if len(word) == 1:
                singles += word
                continue
            if singles:
                self._unknown(singles, "", out)
                singles = ""
            letter = known.get(word)
            if letter is None:
                last = self._unknown(word, last, out)
            else:
                last = ""
                out.append(letter)
        if singles:
            self._unknown(singles, "", out)
        return "".join(out)

    def _unknown(self, word: str, last: str, out: list) -> str:
        """Add the letters of a *word* that is not known as it stands; *last* is the one before it, if that was not either.

        Returns *word* when it says nothing to us.
        """
        plain = word.strip("!|")
        if len(plain) <= _MOST and not plain.isalpha() and not plain.isdigit() and plain not in self._letters:
            plain = "".join([_LEET.get(c, c) for c in plain])
        letter = self._letters.get(plain)
        if letter is None and last:
            letter = self._letters.get(last + plain)
            if letter is not None:
                out.pop()               # what stood for the first half
        if letter is not None:
            out.append(letter)
            return ""
        if len(word) >= _LONG:
            for verb in self._verbs:
                if verb in word:
                    self._parted(word, out)
                    return ""
        out.append("_")
        return plain

    def _parted(self, word: str, out: list):
        pos = 0
        while pos < len(word):
            for size in range(_MOST, 1, -1):
                letter = self._letters.get(word[pos:pos + size])
                if letter is not None:
                    out.append(letter)
                    pos += size
                    break
            else:
                out.append("_")
                pos += 1


def fold(text: str) -> str:
    """Return *text* with letters that look like ASCII as that, without accents and without what cannot be seen."""
    if len(text.encode()) == len(text):
        return text
    return "".join([c if c < "\x80" else _LOOKS[c] if c in _LOOKS else _folded(c) for c in text])


def _folded(c: str) -> str:
    code = ord(c)
    if 0xC0 <= code < 0xC0 + len(_LATIN):
        return _LATIN[code - 0xC0]
    if 0x300 <= code < 0x370 or 0x200B <= code < 0x2010 or 0x202A <= code < 0x202F or 0x2060 <= code < 0x2070 \
            or 0xFE00 <= code < 0xFE10 or code in (0xAD, 0x34F, 0x180E, 0xFEFF):
        return ""
    if 0xFF01 <= code < 0xFF5F:
        return chr(code - 0xFEE0)
    if 0xE0020 <= code < 0xE007F:                   # tags: ASCII that nobody sees
        return chr(code - 0xE0000)
    if 0x1D400 <= code < 0x1D6A4:                   # mathematical alphabets
        at = (code - 0x1D400) % 52
        return chr(65 + at if at < 26 else 71 + at)
    if 0x1D7CE <= code < 0x1D800:
        return chr(48 + (code - 0x1D7CE) % 10)
    if 0x24B6 <= code < 0x24EA:                     # in circles, in squares
        return chr(97 + (code - 0x24B6) % 26)
    if 0x1F130 <= code < 0x1F18A:
        return chr(97 + (code - 0x1F130) % 32 % 26)
    if 0x1F1E6 <= code < 0x1F200:
        return chr(97 + code - 0x1F1E6)
    if code == 0xA0 or 0x2000 <= code < 0x2070 and code != 0x2019 or 0x3000 <= code < 0x3040:
        return " "
    return c


def _decoded(text: str) -> str:
    """Return *text* with HTML's entities and the escapes of JSON and URLs as what they stand for."""
    if "&" in text:
        for name, plain in _ENTITIES:
            text = text.replace(name, plain)
        text = _numbers(text, "&#", ";")
    if "\\" in text:
        text = _numbers(text.replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "\r"), "\\u", "")
    return text.replace("%20", " ")


def _numbers(text: str, mark: str, stop: str) -> str:
    parts = text.split(mark)
    for at in range(1, len(parts)):
        part = parts[at]
        end = part.find(stop, 0, 9) if stop else 4
        digits, base = (part[1:end], 16) if stop and part[:1] in ("x", "X") else (part[:end], 10 if stop else 16)
        try:
            parts[at] = chr(int(digits, base)) + part[end + len(stop):]
        except (ValueError, OverflowError):
            parts[at] = mark + part
    return "".join(parts)


def _without_comments(text: str) -> str:
    parts = text.split("<!--")
    return "".join([parts[0]] + [part[part.find("-->") + 3:] if "-->" in part else part for part in parts[1:]])


def _base64(text: str) -> str:
    """Return what the base64 in *text* decodes to, where that is text."""
    out = []
    for word in text.split():
        word = word.strip("\"'`,;()<>.")
        if len(word) >= 20 and not word.strip("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-"):
            word = word.rstrip("=").replace("-", "+").replace("_", "/")
            try:
                data = a2b_base64(word + "=" * (-len(word) % 4))
                if not data.strip(bytes(range(32, 127)) + b"\t\r\n"):
                    out.append(str(data, "utf-8"))
            except ValueError:
                pass
    return "".join(out)

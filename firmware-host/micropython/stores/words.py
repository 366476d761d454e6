"""The words of a text, as in linux/memory/search.py, for ports without unicodedata: runs of letters
and digits, without case and marks.

1. This module knows ASCII; Latin-1 and Latin Extended-A; the case of Greek and Cyrillic, and their
   letters with marks; combining marks.
2. Any other character from U+0080 on counts as a letter, except punctuation, symbols and emoji,
   which separate words.
"""

import re

# one character at a time: a repetition would recurse on a board for each character
_BETWEEN = re.compile(b"[^a-z0-9\x80-\xff]")
# U+00C0..U+017F: the letter without its mark; "*": no mark, only case; "?": two letters or none
_LATIN = (
    b"aaaaaa*ceeeeiiii*nooooo *uuuuy**aaaaaa*ceeeeiiii*nooooo "
    b"*uuuuy*yaaaaaaccccccccdd**eeeeeeeeeegggggggghh**iiiiiiiii*??jjkk*llllll??**nnnnnn?**"
    b"oooooo**rrrrrrsssssssstttt**uuuuuuuuuuuuwwyyyzzzzzzs"
)
_MARKED = "ΆΈΉΊΌΎΏΐΪΫάέήίΰϊϋόύώЀЁЃЇЌЍЎЙйѐёѓїќѝўȘșȚț"
_PLAIN = "αεηιουωιιυαεηιυιυουωеегікиуииеегікиуsstt"
_APART = (
    (0x80, 0xA9),
    (0xAB, 0xB1),
    (0xB4, 0xB4),
    (0xB6, 0xB8),
    (0xBB, 0xBF),
    (0x2000, 0x206F),
    (0x20A0, 0x20CF),
    (0x2190, 0x245F),
    (0x2500, 0x2BFF),
    # of U+0080.. what parts words
    (0x3000, 0x3004),
    (0x3008, 0x3020),
    (0xFE00, 0xFE6F),
    (0x1F000, 0x1FAFF),
)
_LETTERS = {0xAA: "a", 0xB2: "2", 0xB3: "3", 0xB5: "μ", 0xB9: "1", 0xBA: "o"}


def words(text: str) -> list:
    """Return the words of *text*, each as bytes of UTF-8."""
    data = text.lower().encode()
    if len(data) > len(text):
        data = "".join([c if c < "\x80" else _fold(c) for c in text.lower()]).encode()
    return [word for word in _BETWEEN.split(data) if word]


def _fold(c: str) -> str:
    """Return a character from U+0080 on in the form that it has in a word; a space when it
    separates words, nothing for a mark.
    """
    n = ord(c)
    if 0xC0 <= n < 0x180:
        plain = chr(_LATIN[n - 0xC0])
        if plain == "?":
            return c
        if plain != "*":
            return plain
        upper = n < 0xDF or n > 0x100 and n not in (0x131, 0x138) and n % 2 == (n in (0x141, 0x142))
        return chr(n + (32 if n < 0x100 else 1)) if upper else c
    if 0x391 <= n <= 0x3A9 or 0x410 <= n <= 0x42F and n != 0x419:
        return chr(n + 32)
    at = _MARKED.find(c)
    if at >= 0:
        return _PLAIN[at]
    if 0x400 <= n <= 0x40F:
        return chr(n + 80)
    if 0x300 <= n <= 0x36F:
        return ""
    for first, last in _APART:
        if first <= n <= last:
            return " "
    return _LETTERS.get(n, c)

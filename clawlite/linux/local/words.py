"""Which words of a sentence a tool's examples know: vectors see what is alike, and take a garage
for a hen house.
"""

from clawlite.linux.local import quantities
from clawlite.linux.local.grounding import POLES, words_of

# Words that say nothing of what is meant, in English, German, French and Spanish.
_EMPTY = set(
    """
a an the this that these those some any it its i you me my your we us our he she they them their
be is are am was were been do does did has have had can could would should shall will may might
must to for of on in at into onto from with by and or but so then now just please right away
immediately quickly there here all again still yet too also very how what which who where why when
much many want need like go get make let give put set turn switch run take keep check tell show
read look see hey hi ok okay well kindly if whether not no yes up down out off over back time
little more der die das den dem des ein eine einen einem einer eines ich du er sie es wir ihr mich
mir dir ist sind bin war waren hat haben habe kann kannst soll sollen und oder zu im am in an auf
für mit von bitte mal jetzt sofort noch wie was wer wo wieviel viel viele mach mache stell stelle
schalte gib lass zeig zeige gerade da hier vom zum zur ob nicht le la les l un une des du de d au
aux et ou en dans sur pour avec je tu il elle nous vous ils est sont a ai as ont peux quel quelle
quels quelles combien comment mets fais plaît maintenant el los las lo uno una unos del al y o en
con por para yo tú mi tu su me te se está es son hay qué cuál cuánto cuánta cuántos cómo pon haz
favor ahora
""".split()
)
_ENDINGS = ("ing", "ers", "er", "en", "es", "ed", "st", "e", "s", "n", "t")


def stem(word: str) -> str:
    """Return *word* without an ending, so that heize, heizen and heizt are one word."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return (
                stem(word[: -len(ending)]) if ending in ("s", "ing", "ed") else word[: -len(ending)]
            )
    return word


def content(text: str) -> set:
    """Return the stems of the words of *text* that say what is meant: no numbers, no units."""
    numbers = quantities.find_quantities(text)
    rest, at = "", 0
    for one in numbers:
        rest, at = rest + text[at : one.start] + " ", one.end
    found = words_of(rest + text[at:])
    return {
        stem(word) for word in found if word not in _EMPTY and len(word) > 1 and not word.isdigit()
    }


class Vocabulary:
    """What each tool's examples, name and description say.

    lines  {tool: [text, ...]}
    """

    def __init__(self, lines: dict):
        self._known = {}
        for tool, texts in lines.items():
            self._known[tool] = set().union(*(content(text) for text in texts))
        self._poles = {
            tool: {POLES[word] for text in texts for word in words_of(text) if word in POLES}
            for tool, texts in lines.items()
        }

    def unknown(self, tool: str, text: str) -> set:
        """Return the words of *text* that nothing of *tool* has; a word that means the same as
        one of its own (unlock, open) is known.
        """
        poles = self._poles.get(tool, ())
        alike = {stem(word) for word in words_of(text) if POLES.get(word, ()) in poles}
        return content(text) - self._known.get(tool, set()) - alike

    def coverage(self, tool: str, text: str) -> float:
        """Return the part of the words of *text* that *tool* knows, those of few tools counting
        most.
        """
        total = known = 0.0
        for word in content(text):
            owners = sum(word in words for words in self._known.values())
            weight = 1 / max(1, owners)
            total += weight
            if word in self._known.get(tool, ()):
                known += weight
        return known / total if total else 0.0

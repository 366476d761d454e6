"""A sentence of a person as words that the grammar knows: English ones, whatever the language was.

A word keeps the place where it stands in the text, so that what is left over can be quoted as it
was typed.  German, French and Spanish words of times, days, comparisons and limits are translated
here; what a rule does is left as it is.
"""

from clawlite.core.teach.row_text import DAY_NAMES, MONTH_NAMES

DAYS, MONTHS = tuple(DAY_NAMES.split()), MONTH_NAMES.split()
# a phrase, and the words that it means; those of more words come first (``PHRASES``)
_MEANINGS = """
each=every
everyday=every day
daily=every day
hourly=every 1 hours
nightly=every night
weekdays=weekday
working days=weekday
workdays=weekday
workday=weekday
weekends=weekend
as soon as=when
whenever=when
every time=when
each time=when
in case=when
provided that=only if
provided=only if
as long as=only if
but only if=only if
only when=only if
but only when=only if
and only if=only if
while=only if
except when=unless
except if=unless
but not if=unless
but not when=unless
not if=unless
not when=unless
at or below=below
at or above=above
smaller than=below
less than=below
lower than=below
drier than=below
colder than=below
under=below
fewer than=below
bigger than=above
greater than=above
more than=above
higher than=above
warmer than=above
hotter than=above
wetter than=above
over=above
exceeds=above
exceed=above
no more often than=at most
not more often than=at most
no more than=at most
not more than=at most
not above=at most
no above=at most
never above=at most
up to=at most
maximum=at most
max=at most
per=a
daybreak=sunrise
dawn=sunrise
sun rise=sunrise
the sun rises=sunrise
sundown=sunset
dusk=sunset
sun set=sunset
the sun sets=sunset
midday=noon
mornings=morning
evenings=evening
nights=night
afternoons=afternoon
o'clock=oclock
a.m=am
p.m=pm
sec=seconds
secs=seconds
second=seconds
s=seconds
min=minutes
mins=minutes
minute=minutes
hour=hours
h=hours
hr=hours
hrs=hours
week=weeks
month=months
jeden tag=every day
jeden morgen=every morning
jeden abend=every evening
jede nacht=every night
jede stunde=every hours
jede minute=every minutes
täglich=every day
stündlich=every 1 hours
taeglich=every day
jeden=every
jede=every
jedes=every
alle=every
werktags=every weekday
werktag=weekday
wochentag=weekday
wochenende=weekend
morgen früh=tomorrow morning
morgen abend=tomorrow evening
morgen=tomorrow
morgens=in the morning
abends=in the evening
nachts=at night
heute=today
um=at
uhr=oclock
wenn=when
sobald=when
falls=only if
nur falls=only if
nur wenn=only if
außer wenn=unless
unter=below
niedriger als=below
weniger als=below
kleiner als=below
kälter als=below
über=above
höher als=above
mehr als=above
größer als=above
wärmer als=above
ist=is
sinkt=falls
steigt=rises
fällt=falls
wird=becomes
sekunden=seconds
sekunde=seconds
minuten=minutes
stunden=hours
stunde=hours
tag=day
tage=days
woche=weeks
lang=long
höchstens=at most
maximal=at most
einmal=once
zweimal=twice
dreimal=3 times
am tag=a day
pro tag=a day
pro stunde=a hours
pro woche=a weeks
mal=times
erinnere mich=remind me
erinnere mich daran=remind me
zwischen=between
und=and
bis=to
sonnenaufgang=sunrise
sonnenuntergang=sunset
mittags=at noon
mitternacht=midnight
montag=monday
dienstag=tuesday
mittwoch=wednesday
donnerstag=thursday
freitag=friday
samstag=saturday
sonntag=sunday
montags=every monday
dienstags=every tuesday
mittwochs=every wednesday
donnerstags=every thursday
freitags=every friday
samstags=every saturday
sonntags=every sunday
bitte=please
dann=then
grad=degrees
prozent=%
boden=soil
bodenfeuchte=soil moisture
erde=soil
temperatur=temperature
luftfeuchtigkeit=humidity
feuchtigkeit=humidity
licht=light
helligkeit=light
tür=door
fenster=window
tous les jours=every day
tous les matins=every morning
tous les soirs=every evening
tous les=every
toutes les=every
chaque=every
jour=day
jours=days
matin=morning
soir=evening
nuit=night
demain matin=tomorrow morning
demain soir=tomorrow evening
demain=tomorrow
aujourd'hui=today
à=at
heures=hours
heure=hours
quand=when
lorsque=when
dès que=when
si=when
seulement si=only if
sauf si=unless
inférieur à=below
inférieure à=below
en dessous de=below
au-dessous de=below
sous=below
moins de=below
supérieur à=above
supérieure à=above
au-dessus de=above
au dessus de=above
plus de=above
dépasse=above
descend=falls
monte=rises
est=is
secondes=seconds
seconde=seconds
semaine=weeks
au plus=at most
au maximum=at most
une fois=once
deux fois=twice
trois fois=3 times
fois=times
par jour=a day
par heure=a hours
par semaine=a weeks
rappelle-moi=remind me
rappelle moi=remind me
lever du soleil=sunrise
coucher du soleil=sunset
midi=noon
minuit=midnight
lundi=monday
mardi=tuesday
mercredi=wednesday
jeudi=thursday
vendredi=friday
samedi=saturday
dimanche=sunday
pendant=for
dans=in
et=and
entre=between
degrés=degrees
température=temperature
humidité=humidity
lumière=light
sol=soil
porte=door
todos los días=every day
todos los dias=every day
todas las mañanas=every morning
todas las noches=every night
todos los=every
todas las=every
cada día=every day
cada dia=every day
cada=every
día=day
días=days
mañana por la mañana=tomorrow morning
mañana=tomorrow
hoy=today
a las=at
a la=at
horas=hours
hora=hours
minutos=minutes
minuto=minutes
segundos=seconds
segundo=seconds
semana=weeks
cuando=when
solo si=only if
sólo si=only if
por debajo de=below
menor que=below
menos de=below
por encima de=above
mayor que=above
más de=above
supera=above
baja=falls
sube=rises
está=is
esté=is
como máximo=at most
una vez=once
dos veces=twice
tres veces=3 times
veces=times
al día=a day
al dia=a day
por día=a day
por hora=a hours
recuérdame=remind me
recuerdame=remind me
amanecer=sunrise
atardecer=sunset
mediodía=noon
medianoche=midnight
lunes=monday
martes=tuesday
miércoles=wednesday
jueves=thursday
viernes=friday
sábado=saturday
domingo=sunday
durante=for
en=in
y=and
grados=degrees
temperatura=temperature
humedad=humidity
luz=light
suelo=soil
puerta=door
"""
# words that mean one thing in each language, but another in English: only with others of their own
_ONLY_OF = {
    "si": ("est", "sous", "dépasse", "inférieur", "supérieur", "está", "baja", "sube", "supera"),
    "en": ("segundos", "minutos", "horas", "hora"),
    "y": ("las", "cada", "todos", "los"),
    "et": ("à", "chaque", "tous", "les"),
    "mal": ("tag", "stunde", "woche"),
    "baja": ("de", "por", "cuando", "si"),
    "sous": ("est", "descend", "quand", "si"),
    "um": ("uhr", "täglich", "jeden", "morgen", "heute", "tag"),
    "alle": ("stunden", "minuten", "tage", "sekunden"),
    "falls": ("ist", "unter", "über", "um", "uhr", "jeden"),
    "tag": ("jeden", "am", "pro"),
    "est": ("quand", "si", "lorsque", "dès", "seulement"),
    "bis": ("zwischen", "uhr"),
    "par": ("jour", "heure", "semaine"),
    "dans": ("minutes", "heures", "heure", "secondes", "jours"),
    "over": (),
}


class Word:
    """A word: its *text*, as the grammar knows it, and from where to where it stands."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self.text, self.start, self.end = text, start, end


def _read_meanings() -> dict:
    """Return {first word: [(words, meaning), ...]}, the longest first."""
    found = {}
    for line in _MEANINGS.strip().split("\n"):
        phrase, _, meaning = line.partition("=")
        words = phrase.split()
        found.setdefault(words[0], []).append((words, meaning.split()))
    for rows in found.values():
        rows.sort(key=lambda row: -len(row[0]))
    return found


def lower(text: str) -> str:
    """Return *text* in lower case, with the capitals of Latin-1: MicroPython knows ASCII's."""
    return "".join(
        [
            chr(ord(c) + 32) if "A" <= c <= "Z" or "\xc0" <= c <= "\xde" and c != "\xd7" else c
            for c in text
        ]
    )


def split_words(text: str) -> list:
    """Return the ``Word``s of *text* as they stand there: "7am" has two, "7:30" and "0.5" one."""
    found, at, text = [], 0, lower(text).replace("\u2019", "'")
    while at < len(text):
        start, c = at, text[at]
        if _is_digit(c):
            while at < len(text) and (
                _is_digit(text[at])
                or text[at] in ":.h"
                and at + 1 < len(text)
                and _is_digit(text[at + 1])
            ):
                at += 1
        elif _is_letter(c):
            while at < len(text) and (
                _is_letter(text[at])
                or _is_digit(text[at])
                or text[at] in "-'."
                and at + 1 < len(text)
                and _is_letter(text[at + 1])
            ):
                at += 1
        else:
            at += 1
            if c not in ',.;:%?!"-<>=&+':
                continue
        found.append(Word(text[start:at], start, at))
    return found


def read_words(text: str) -> list:
    """Return the ``Word``s of *text* in the grammar's own words."""
    meanings, words, found, at = _read_meanings(), split_words(text), [], 0
    present = [word.text for word in words]
    while at < len(words):
        for phrase, meaning in meanings.get(present[at], ()):
            end = at + len(phrase)
            if present[at:end] == phrase and (len(phrase) > 1 or _is_meant(phrase[0], present)):
                found += [Word(one, words[at].start, words[end - 1].end) for one in meaning]
                at = end
                break
        else:
            found.append(words[at])
            at += 1
    return found


def _is_meant(word: str, present: list) -> bool:
    """Return whether *word* is of its language: others of that one are *present*."""
    others = _ONLY_OF.get(word)
    return not others or any([one in present for one in others])


def _is_digit(c: str) -> bool:
    return "0" <= c <= "9"


def _is_letter(c: str) -> bool:
    return "a" <= c <= "z" or c == "_" or c >= "\x80" and c not in "\u00b0\u201c\u201d\u201e\u2013"

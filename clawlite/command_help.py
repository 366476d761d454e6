"""What the command line says of itself, made from the table in verbs.py: the help, the scripts by
which shells complete words, and docs/commands.md (``python -m clawlite.command_help``).
"""

import sys
import textwrap

from clawlite.agent_verbs import HERE, HIDDEN, MANY, REQUIRED, THERE
from clawlite.command_words import one_of, verbs_below
from clawlite.verbs import GROUPS, SAME, VERBS

WIDTH = 80
_COLUMN = 15  # where a list says what a verb does
_WIDEST = 26  # of the column of options
_HELP = ("-h, --help", "show this, and exit")
_SCRIPTS = {
    "bash": """\
_clawlite() {
  local IFS=$'\\n'
  COMPREPLY=($(clawlite completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
}
complete -o default -o bashdefault -F _clawlite clawlite
""",
    "zsh": """\
#compdef clawlite
_clawlite() {
  local -a found
  found=("${(@f)$(clawlite completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  found=("${(@)found/$'\\t'/:}")
  if [[ -z "$found" ]]; then
    _files
  else
    _describe clawlite found
  fi
}
if [[ "$funcstack[1]" == _clawlite ]]; then
  _clawlite "$@"
else
  compdef _clawlite clawlite
fi
""",
    "fish": """\
function __clawlite_words
  set -l words (commandline -opc) (commandline -ct)
  set -l found (clawlite completion words -- $words[2..] 2>/dev/null)
  if test -n "$found"
    printf '%s\\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c clawlite -f -a '(__clawlite_words)'
""",
}


def overview() -> str:
    """Return what ``clawlite --help`` says."""
    lines = [
        "usage: clawlite COMMAND [ARGUMENTS]...",
        "       clawlite COMMAND --help",
        "",
        "Claw Kernel Protocol agents for small boards.",
    ]
    for group in GROUPS:
        lines += ["", group + ":"]
        lines += _list([verb for verb in VERBS.values() if verb.group == group])
    rows = [("--version", "show the version, and exit"), _HELP]
    lines += ["", "Options:", *_columns(rows, _COLUMN)]
    lines += ["", "MANIFEST is claw.yaml in the current folder unless named."]
    return "\n".join(lines)


def usage(verb) -> str:
    """Return the line that says how *verb* is called."""
    words = ["usage: clawlite", verb.name]
    if not (verb.run or verb.there):
        return " ".join([*words, "COMMAND [ARGUMENTS]..."])
    shown = [option for option in verb.options if option.place != HIDDEN]
    words += [verb.words] if verb.words else []
    words += [_call(option) for option in shown if option.kind == REQUIRED]
    words += ["[OPTIONS]"] if any(option.kind != REQUIRED for option in shown) else []
    return " ".join(words)


def text(verb) -> str:
    """Return the help of *verb*."""
    below = verbs_below(verb.name)
    lines = [usage(verb)]
    if below and verb.run:
        names = "|".join(one.name.rpartition(" ")[2] for one in below)
        lines.append("       clawlite %s %s --help" % (verb.name, names))
    lines += ["", *textwrap.wrap(verb.about, WIDTH)]
    if below:
        lines += ["", "Commands:", *_list(below)]
    rows, words = _rows(verb), len([one for one in verb.words_by_name.values() if _about(one)])
    column = 4 + min(_WIDEST, max([len(called) for called, _ in rows]))
    if words:
        lines += ["", "Arguments:", *_columns(rows[:words], column)]
    return "\n".join([*lines, "", "Options:", *_columns(rows[words:], column)])


def reference() -> str:
    """Return docs/commands.md."""
    lines = [
        "# Commands",
        "",
        "<!-- written by make commands -->",
        "",
        "Made from the table of the command line (clawlite/verbs.py) by `make commands`. `clawlite",
        "COMMAND --help` says the same. [errors.md](errors.md) has the exit codes.",
    ]
    for group in GROUPS:
        lines += ["", "## " + group]
        for verb in VERBS.values():
            if VERBS[verb.name.partition(" ")[0]].group == group and verb.about:
                lines += ["", "### `%s`" % usage(verb).partition(": ")[2], ""]
                lines += textwrap.wrap(_escape(verb.about), 100)
                rows = [row for row in _rows(verb) if row is not _HELP]
                lines += [""] if rows else []
                for row in rows:
                    bullet = "- `%s`: %s" % (row[0], _escape(row[1]))
                    lines += textwrap.wrap(bullet, 100, subsequent_indent="  ")
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    for mark in "[]_*<":
        text = text.replace(mark, "\\" + mark)
    return text


def _first(about: str) -> str:
    return about.partition(". ")[0].rstrip(".") + "."


def _list(verbs: list) -> list:
    """Return a line for each of *verbs*, with the names of those below it where there is room."""
    rows = []
    for verb in verbs:
        below = ", ".join([one.name.rpartition(" ")[2] for one in verbs_below(verb.name)])
        about = _first(verb.about)
        more = "%s (%s)" % (about.rstrip("."), below)
        is_short = below and _COLUMN + len(more) <= WIDTH
        rows.append((verb.name.rpartition(" ")[2], more if is_short else about))
    return _columns(rows, _COLUMN)


def _call(option) -> str:
    return (option.name + " " + option.metavar).strip()


def _rows(verb) -> list:
    """Return (how it is written, what it does) of the words and options of *verb*."""
    rows = [(one.name, _about(one)) for one in verb.words_by_name.values() if _about(one)]
    shown = [one for one in verb.options if one.place != HIDDEN]
    return rows + [(_call(one), _about(one)) for one in shown] + [_HELP]


def _about(option) -> str:
    parts = [option.about] if option.about else []
    if isinstance(option.kind, tuple) and isinstance(option.kind[0], str):
        parts.append(one_of(option.kind))
    if option.kind == MANY:
        parts.append("may be repeated")
    if option.place in (HERE, THERE):
        parts.append("not with --port" if option.place == HERE else "with --port")
    if option.default is not None:
        default = option.default
        parts.append("default: %s" % (int(default) if isinstance(default, float) else default))
    return "; ".join(parts)


def _columns(rows: list, column: int) -> list:
    lines = []
    for head, about in rows:
        head = "  " + head
        if len(head) + 2 > column:
            lines.append(head)
            head = ""
        indent = " " * column
        wrapped = textwrap.wrap(about, WIDTH, initial_indent=indent, subsequent_indent=indent)
        lines += [head.ljust(column) + wrapped[0][column:], *wrapped[1:]]
    return lines


# -- completion


def print_script(shell: str) -> None:
    """Print the script by which *shell* completes words."""
    print(_SCRIPTS[shell], end="")


def print_candidates(word: list, names) -> None:
    """Print what the last of *word* may become, each with what it is; nothing: it is a file."""
    for name, about in candidates(word, names):
        print("%s\t%s" % (name, about))


def candidates(words: list, names) -> list:
    """Return [(word, what it is)] that the last of *words* may become; []: what files there are.

    names  function("BOARD" or "TEMPLATE") -> names
    """
    *before, typed = words or [""]
    before = [word for word in before if word != "="]  # bash makes three words of --board=pico
    typed = "" if typed == "=" else typed
    head, equals, _ = typed.partition("=")
    head = head + equals if equals else ""
    verb, rest = _find_verb(before)
    if verb is None:
        found = [(one.name, _first(one.about)) for one in VERBS.values() if one.group]
        return [] if rest else _near(found, typed)
    options = {one.name: one for one in verb.options if one.place != HIDDEN}
    asked = options.get(head.rstrip("=") or (rest[-1] if rest else ""))
    if asked and asked.metavar:
        return _near([(head + value, "") for value in _values(asked, names)], typed)
    if typed.startswith("-"):
        found = [(one.name, one.about) for one in options.values() if one.name not in rest]
        return _near([*found, ("--help", _HELP[1])], typed)
    plain = [word for word in rest if not word.startswith("-")]
    found = [(one.name.rpartition(" ")[2], _first(one.about)) for one in verbs_below(verb.name)]
    places = verb.words.split()
    if len(plain) < len(places):
        name = places[len(plain)].strip("[].")
        option = verb.words_by_name.get(name)
        found = [] if plain else found
        values = option.kind if option and isinstance(option.kind, tuple) else names(name)
        found += [(value, "") for value in values]
    return _near(found if not plain or places else [], typed)


def _find_verb(before: list) -> tuple:
    """Return (``Verb``, words behind it); (None, *before*) where no verb begins."""
    name, rest = "", list(before)
    while rest:
        longer = (name + " " + rest[0]).strip()
        longer = SAME.get(longer, longer)
        if longer not in VERBS:
            break
        name, rest = longer, rest[1:]
    return VERBS.get(name), rest


def _values(option, names) -> list:
    if isinstance(option.kind, tuple) and isinstance(option.kind[0], str):
        return list(option.kind)
    return names(option.metavar)


def _near(found: list, typed: str) -> list:
    return [(name, about) for name, about in found if name.startswith(typed)]


if __name__ == "__main__":
    sys.stdout.write(reference())

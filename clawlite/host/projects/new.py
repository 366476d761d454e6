"""Make a project from a template: a folder that builds and runs as it is."""

import contextlib
import os
import re
import sys

from clawlite.core.base.errors import ClawError
from clawlite.host.base.problems import did_you_mean, make_write_error
from clawlite.host.base.without_links import Below
from clawlite.host.boards import boards
from clawlite.host.builder import editor_schemas
from clawlite.host.projects import new_board
from clawlite.host.providers.remotes import endpoint_problem

FOLDER = os.path.join(os.path.dirname(__file__), "templates")
DEFAULT = "greenhouse"
# of a template that wants a model, when nobody names one
ENDPOINT, MODEL = "http://127.0.0.1:11434/v1", "llama3.2"
WITH_MODEL = ("chat", "greenhouse")
TEAM = "team"  # the template of several agents, each in a folder of its own
LINUX = (TEAM, "files", "notes")  # their tools are not on boards
# boards that have too little heap or flash for rules beside a channel
TOO_SMALL = {"bell": ("esp32",)}
_EARLIER = {"swarm": TEAM}  # names that templates had
_LONGEST_TEAM = 54  # characters of its name: the agents' names have more
LOCAL = """\
    - inline:                           # a small model in this machine: clawlite local fetch (docs/local.md)
        name: "words"
        protocol: "custom"
        endpoint: "builtin:local"
        model: "needle-3"
        auth: { type: "none" }
        fallback: [ { provider_ref: "reflex" } ]
"""  # noqa: E501
RULES = """\
    - inline:                           # rules instead of a model: works without a network (reflex.toml)
        name: "reflex"
        protocol: "custom"
        endpoint: "builtin:reflex"
        model: "reflex"
        auth: { type: "none" }"""  # noqa: E501
REMOTE = """\
    - inline:                           # asked first; a key would be named with auth.secret_ref, and never stand here
        name: "model"
        protocol: "openai-compatible"
        endpoint: "{endpoint}"
        model: "{model}"
        auth: { type: "none" }
        retry: { max_attempts: 1 }      # the rules answer at once instead
        limits: { max_context_window: 4096, tokens_per_request: 2048 }     # request and answer: a small model may run on
        fallback: [ { provider_ref: "reflex" } ]
"""  # noqa: E501
# a small model invents what a sensor says; the rules of chat are for when none is there
RULES_FIRST = ("greenhouse",)
_RULES = 'reflex = "reflex.toml"\n'
_RULES_FIRST = """\
[reflex]
file = "reflex.toml"
first = true                            # a rule that fits answers at once; without one the model is asked
"""  # noqa: E501
_RULES_FIRST_INLINE = 'reflex = { file = "reflex.toml", first = true }\n'
# a semantic store of a template, and what it is where the local model makes vectors
_BY_WORDS = 'search: { strategy: "fts-only", top_k: 10 }'
_BY_MEANING = """\
embedding: { provider_ref: "words", model: "needle-3", dimensions: 3072 },
            search: { strategy: "hybrid", top_k: 10 }"""
# NAME.digital.EXT takes the place of NAME.EXT for a board without an ADC
_DIGITAL = ".digital."
_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9-]{0,62}\Z")


def _is_template(name: str) -> bool:
    return any("claw.yaml" in files for _, _, files in os.walk(os.path.join(FOLDER, name)))


def templates() -> list[str]:
    """Return the names of the templates."""
    # a folder that was a template once may still hold what Python compiled there
    return sorted(filter(_is_template, os.listdir(FOLDER)))


def new(
    path: str,
    template: str = DEFAULT,
    endpoint: str = None,
    model: str = None,
    offline: bool = False,
    board: str = None,
    local: bool = False,
) -> list[str]:
    """Write a project into the folder *path*, which must not exist or be empty; return the files,
    relative to it, without the schemas for editors.

    endpoint, model  of a server with an OpenAI-compatible API, asked before the rules; None:
                     ENDPOINT and MODEL
    offline          True: no model is asked, the rules alone answer
    local            True: the local model is asked where no rule fits
    board            name of one whose pins and network the settings are to fit
    The agent is called as the folder is, with - for _; those of a swarm begin so.  Raises
    ``ClawError``.
    """
    if not path:
        raise ClawError("NAME is empty", "name the new folder: clawlite new greenhouse")
    wrong = endpoint_problem(endpoint, True) if endpoint else ""
    if wrong:
        raise ClawError(
            f"--endpoint {endpoint}: {wrong}",
            "give the address of an API, such as http://127.0.0.1:8080/v1",
        )
    if (endpoint or model) and template not in WITH_MODEL:
        raise ClawError(
            f"the template {template} takes no model", f"templates that do: {', '.join(WITH_MODEL)}"
        )
    if (endpoint or model) and offline:
        raise ClawError(
            "--offline asks no model, --endpoint and --model name one", "leave one of them out"
        )
    folder = os.path.basename(os.path.abspath(path))
    name = folder.replace("_", "-")
    if not _NAME.match(name):
        near = re.sub(r"[. ]+", "-", name)
        raise ClawError(
            f"{folder!r} cannot name an agent: expected 1 to 63 letters, digits and hyphens",
            f"did you mean {near}?" if _NAME.match(near) else "choose another folder name",
        )
    template = _EARLIER.get(template, template)
    if template not in templates():
        raise ClawError(
            f"unknown template {template!r}; there are: {', '.join(templates())}",
            did_you_mean(template, templates()),
        )
    profile = boards.profile(board) if board else None
    _check_board(template, profile)
    if template == TEAM and len(name) > _LONGEST_TEAM:
        raise ClawError(
            f"{name!r} is too long for a swarm: expected at most {_LONGEST_TEAM} characters",
            "choose another folder name",
        )
    if os.path.exists(path) and (not os.path.isdir(path) or os.listdir(path)):
        raise ClawError(
            f"{path} exists and is not empty",
            "choose another name: nothing of yours is overwritten",
        )
    if local:
        _check_local(template, endpoint or model, profile)
    remote = template in WITH_MODEL and not offline and not local
    source = os.path.join(FOLDER, template)
    # the local model is asked where there are sentences for it, after the rules
    first = (_RULES, _RULES_FIRST_INLINE) if local else ("", "")
    digital = template != TEAM and profile is not None and not profile.pins.adc
    settings = None
    if template != TEAM:
        settings = _settings(source, profile, digital, remote and (endpoint or ENDPOINT))
        settings = settings.replace(*first)
    written = []
    by_meaning = (_BY_WORDS, _BY_MEANING) if local else ("", "")
    providers = (
        "  providers:\n"
        + (
            REMOTE.replace("{endpoint}", endpoint or ENDPOINT).replace("{model}", model or MODEL)
            if remote
            else LOCAL * local
        )
        + RULES
    )
    for folder, folders, files in os.walk(source):
        folders[:] = sorted(f for f in folders if f != "__pycache__")
        for file in sorted(file for file in files if _DIGITAL not in file):
            relative = os.path.relpath(os.path.join(folder, file), source)
            try:
                _copy(
                    _variant(os.path.join(folder, file), digital),
                    path,
                    relative.replace(os.sep, "/"),
                    name,
                    providers,
                    settings,
                    digital,
                    first if "sentences.jsonl" in files else ("", ""),
                    by_meaning,
                )
            except OSError as e:
                _take_back(path, [*written, relative])
                raise make_write_error(
                    os.path.join(path, relative), e, "choose a folder that you may write to"
                ) from None
            written.append(relative)
    _write_schemas(path, written)
    return written


def _write_schemas(path: str, written: list) -> None:
    """Write what editors read beside the files *written* of the folder *path*, or remove them."""
    try:
        editor_schemas.write(path)
    except OSError as e:
        _take_back(path, [*written, *editor_schemas.OF_PROJECT])
        raise make_write_error(
            os.path.join(path, editor_schemas.FOLDER), e, "choose a folder that you may write to"
        ) from None


def _check_board(template: str, profile) -> None:
    """Raise ``ClawError`` for a board that *template* cannot run on."""
    if profile is None:
        return
    if template in LINUX and profile.runtime == "micropython":
        raise ClawError(
            f"the template {template} is for this machine or a Raspberry Pi, "
            f"and {profile.name} is neither",
            "leave --board out; docs/swarm-boards.md then puts its shed on a board"
            if template == TEAM
            else "leave --board out, or choose another --template: clawlite new --list",
        )
    if profile.name in TOO_SMALL.get(template, ()):
        raise ClawError(
            f"the template {template} needs more heap or flash than {profile.name} has",
            "choose another board, such as pico2-w or esp32-c3, or a Raspberry Pi",
        )


def can_understand(template: str, board: str | None) -> bool:
    """Return whether an agent of *template* can ask the local model here, on a machine that has its
    engine; *board*: the name of another machine, for which it is made.
    """
    is_able = sys.platform == "linux" and sys.maxsize > 1 << 32
    if board is not None or not is_able or os.uname().machine not in ("x86_64", "aarch64"):
        return False
    return template in _able_templates() and (os.cpu_count() or 1) > 1


def _able_templates() -> list:
    return [
        name
        for name in templates()
        if any("sentences.jsonl" in files for _, _, files in os.walk(os.path.join(FOLDER, name)))
    ]


def _check_local(template: str, remote, profile) -> None:
    """Raise ``ClawError`` where the local model cannot be asked."""
    able = _able_templates()
    if template not in able:
        raise ClawError(
            f"the template {template} has no tools for the local model",
            f"templates that do: {', '.join(able)}",
        )
    if remote:
        raise ClawError(
            "--local asks the model in this machine, --endpoint and --model name another one",
            "leave one of them out, and add the other to claw.yaml",
        )
    if profile is not None and profile.runtime == "micropython":
        raise ClawError(
            f"the local model runs on Linux, and not on {profile.name}",
            "leave --local out, or choose a Raspberry Pi with 64 bits",
        )


def _take_back(path: str, files: list) -> None:
    """Remove *files* of the folder *path*, and it: half a project is in the way of the next try."""
    for file in files:
        with contextlib.suppress(OSError):
            os.remove(os.path.join(path, file))
    for folder in sorted(
        {os.path.dirname(os.path.join(path, file)) for file in files} | {path},
        key=len,
        reverse=True,
    ):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def _variant(file: str, digital: bool) -> str:
    """Return the path of what stands for the template's *file* on a board without an ADC, when
    *digital*, or *file*.
    """
    stem, extension = os.path.splitext(file)
    other = stem + _DIGITAL + extension[1:]
    return other if digital and os.path.exists(other) else file


def _settings(source: str, board, digital: bool, endpoint) -> str:
    """Return the clawlite.toml of the template in the folder *source* for *board*, a profile or
    None.

    endpoint  of the model that is asked, or False
    """
    with open(_variant(os.path.join(source, "clawlite.toml"), digital), encoding="utf-8") as file:
        text = file.read()
    if endpoint:
        text = (
            text.replace(_RULES, _RULES_FIRST) if os.path.basename(source) in RULES_FIRST else text
        )
    return new_board.fit(text, board, endpoint) if board else text


def _copy(
    source: str,
    root: str,
    target: str,
    name: str,
    providers: str,
    settings,
    digital: bool,
    first: tuple,
    by_meaning: tuple,
) -> None:
    os.makedirs(root, exist_ok=True)
    below = Below(root)
    below.make_folders(os.path.dirname(target))
    with open(source, encoding="utf-8") as file:
        text = file.read()
    # only the root names the agent; braces elsewhere are slots
    if target.endswith("claw.yaml"):
        text = text.replace("{name}", name).replace("{providers}", providers)
        text = text.replace(*by_meaning)
        if digital:
            text = text.replace("clawlite/adc-read@", "clawlite/digital-read@")
    elif target.endswith("clawlite.toml"):
        text = text.replace(*first) if settings is None else settings
    with open(below.create(target), "w", encoding="utf-8") as file:
        file.write(editor_schemas.first_line(target) + text)

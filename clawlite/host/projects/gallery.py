"""What a project may begin as: the templates, with what each is."""

import os

from clawlite.host.projects.new import DEFAULT, FOLDER, TEAM, WITH_MODEL, templates

_TEAM = "A team of agents that give each other tasks: a leader, a gardener, and a shed on a board."


def describe() -> list[dict]:
    """Return {name, about, model} of each template, the default one first; model: whether one may
    be asked.
    """
    names = sorted(templates(), key=lambda name: (name != DEFAULT, name))
    return [{"name": name, "about": _about(name), "model": name in WITH_MODEL} for name in names]


def _about(name: str) -> str:
    """Return the sentence with which the template's claw.yaml begins."""
    if name == TEAM:
        return _TEAM
    with open(os.path.join(FOLDER, name, "claw.yaml"), encoding="utf-8") as file:
        return file.readline().lstrip("# ").rstrip("\n")

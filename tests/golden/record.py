"""Record golden transcripts again, and the golden images: ``python tests/golden/record.py``.

``gates``, ``guarded``, ``least``, ``memory``, ``skills`` and ``talking`` are manifests of their own; ``greenhouse`` is the template, of which only the image and tools.py are kept here.
Each ``NAME.steps.json`` holds what goes in: {"agent", "mode", "links", "steps": [[at_ms, what, argument], ...]};
``NAME.golden.json`` gets the same with the effects of each step.  Read the difference before you commit it.
"""
import json
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE.parent.parent), str(HERE.parent / "core")]

from clawlite.host.compiler import compiler
from clawlite.host.manifest import manifest
from clawlite.host.projects import new       # noqa: E402
import transcripts                                           # noqa: E402


def files() -> dict[pathlib.Path, bytes]:
    """Return what lies in the agents' folders, built now: {path: bytes}."""
    built = {HERE / name / "claw.cbor": compiler.build(manifest.load(HERE / name)).data for name in ("gates", "guarded", "least", "memory", "skills", "talking")}
    with tempfile.TemporaryDirectory() as folder:
        project = pathlib.Path(folder) / "greenhouse"
        new.new(str(project), offline=True)
        built[HERE / "greenhouse" / "claw.cbor"] = compiler.build(manifest.load(project)).data
        built[HERE / "greenhouse" / "tools.py"] = (project / "tools.py").read_bytes()
    return built


def transcript(path: pathlib.Path) -> dict:
    """Return the transcript of a steps file, played now."""
    script = json.loads(path.read_text())
    player = transcripts.Player(script["agent"], script["mode"], script.get("links"))
    script["steps"] = [[at, what, argument, player.step(at, what, argument)] for at, what, argument in script["steps"]]
    player.close()
    return script


def text(script: dict) -> str:
    """Return a transcript as JSON with one line for each step and each effect, so that a difference reads well."""
    head = {key: script[key] for key in script if key != "steps"}
    lines = [json.dumps(head, ensure_ascii=False)[:-1] + ', "steps": [']
    for number, (at, what, argument, effects) in enumerate(script["steps"]):
        lines.append(f"[{at}, {json.dumps(what)}, {json.dumps(argument, ensure_ascii=False)}, [")
        lines += ["    " + json.dumps(effect, ensure_ascii=False, sort_keys=True) + ("," if effect is not effects[-1] else "")
                  for effect in effects]
        lines.append("]]" + ("," if number < len(script["steps"]) - 1 else ""))
    return "\n".join(lines + ["]}"]) + "\n"


if __name__ == "__main__":
    for path, data in files().items():
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    for path in sorted(HERE.glob("*.steps.json")):
        path.with_name(path.name.replace(".steps.", ".golden.")).write_text(text(transcript(path)))

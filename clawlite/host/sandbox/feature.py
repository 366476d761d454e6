"""The Sandbox, as the compiler sees it."""

from clawlite.core.image.image import LOCAL, SANDBOX
from clawlite.host.base.document import LinePlace
from clawlite.host.base.problems import LATER, enquote
from clawlite.host.boards import boards
from clawlite.host.models.feature import Feature, Requirement
from clawlite.host.sandbox import sandbox_errors, sandbox_warnings, sandboxes, without_effect
from clawlite.host.sandbox.model import SandboxSpec


def check(manifest, at_use: bool) -> None:
    if manifest.sandbox:
        _check_level(manifest, manifest.sandbox)
        sandbox_errors.refuse(manifest)
    sandboxes.refuse_rules(manifest)


def _check_level(manifest, sandbox) -> None:
    spec = sandbox.spec
    if spec.level not in ("none", "process"):
        able = [board.name for board in boards.load_all() if "process" in board.sandbox.levels]
        manifest.problem(
            sandbox,
            ("level",),
            f'level "{spec.level}" is {LATER}',
            '"none" or "process"',
            hint=f"process works on {', '.join(able)}, none on every board",
        )
    elif spec.runtime != "native":
        manifest.problem(
            sandbox,
            ("runtime",),
            f'runtime "{spec.runtime}" at level {spec.level} is {LATER}',
            '"native"',
            hint="leave it out",
        )
    limits = spec.resource_limits
    for field in sandboxes.LIMITS if limits is not None else ():
        if getattr(limits, field) == 0:
            manifest.problem(
                sandbox,
                ("resource_limits", field),
                "",
                "a limit of at least 1",
                "0",
                hint="leave it out for no limit",
                key=True,
            )
    if spec.level != "none":
        return
    if spec.capabilities is not None and any(tool.function for tool in manifest.tools):
        manifest.problem(
            sandbox,
            ("capabilities",),
            "at level none the functions of tools.py run in the agent's own process: these cannot "
            "be kept there",
            hint="use level: process, or remove them",
            key=True,
        )
    for field in sandboxes.LIMITS[:-1]:
        if limits is not None and getattr(limits, field):
            manifest.problem(
                sandbox,
                ("resource_limits", field),
                "at level none this limit cannot be kept",
                hint="use level: process"
                if field != "timeout_ms"
                else "set timeout_ms on the tools that need one",
                key=True,
            )


def compile_sections(manifest, work) -> dict:
    return {SANDBOX: sandboxes.section(manifest, work.pool), LOCAL: sandboxes.local(manifest)}


def find_needs(manifest) -> list[Requirement]:
    if manifest.tools and sandboxes.level(manifest):
        return [Requirement("process", LinePlace(manifest.file, 1))]
    return []


def warn(manifest, work) -> list:
    return without_effect.find(manifest) + [
        (manifest.sandbox.where(*path), message)
        for path, message in sandbox_warnings.find(manifest)
    ]


def fit(manifest, board, other, problems) -> None:
    if manifest.sandbox is None:
        if manifest.tools and "process" not in board.sandbox.levels:
            problems.add(
                manifest.tools[0].report_place,
                (),
                "no Sandbox is declared, and that means the most restrictive one: level process, "
                f"which {board.name} does not have",
                hint="declare sandbox: { inline: { level: none } } to run tools in the "
                "agent's own process",
            )
        return
    spec, place = manifest.sandbox.spec, manifest.sandbox.place
    if spec.level not in board.sandbox.levels:
        problems.add(
            place,
            ("level",),
            f'{board.name} cannot isolate tools at level "{spec.level}"',
            hint=other(lambda b: spec.level in b.sandbox.levels, "level none"),
        )
    if board.sandbox.profiles == ["L"]:
        for path, what, above in sandbox_warnings.find_inexpressible(manifest):
            problems.add(
                place,
                path,
                f"{what} lies in {enquote(above)}, which tools may write to: {board.name} has only "
                "Landlock, which takes no rights away below a folder",
                hint=f"move it out of {enquote(above)}",
            )
    limits = spec.resource_limits
    # else it bounds what a child says, of which an answer holds the first part
    if limits and "process" not in board.sandbox.levels:
        problems.add_excess(
            place,
            ("resource_limits", "max_output_bytes"),
            limits.max_output_bytes,
            board.messages.max_result_bytes,
            board.name,
        )
    for name in limits.__struct_fields__ if limits else ():
        if getattr(limits, name) and name not in board.sandbox.limits:
            problems.add(
                place,
                ("resource_limits", name),
                f"{board.name} cannot keep this limit",
                key=True,
                hint=other(
                    lambda b: name in b.sandbox.limits,
                    "set timeout_ms on the tools that need one"
                    if name == "timeout_ms"
                    else "remove it",
                ),
            )


FEATURE = Feature(
    "Sandbox",
    SandboxSpec,
    check=check,
    compile=compile_sections,
    needs=find_needs,
    warn=warn,
    fit=fit,
)

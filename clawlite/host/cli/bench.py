"""``clawlite bench``, which needs the standard library alone on a device: it calls the suites, and
prints their rows.
"""

from clawlite.core.base.errors import ClawError
from clawlite.host.cli import ui


def bench(suites, here, ssh, port, sim, compare, output, rounds, as_json):
    from clawlite.host.bench import bench, device
    from clawlite.host.firmware import cache

    places = {"--here": here, "--ssh": ssh, "--port": port, "--sim": sim, "--compare": compare}
    chosen = [name for name, value in places.items() if value not in (None, False)]
    if len(chosen) > 1:
        raise ClawError(f"{chosen[1]} is not allowed with {chosen[0]}", "leave out one of them")
    if compare:
        before, after = compare
        return 1 if bench.compare(before, after, as_json) else 0
    cache.on_miss = ui.note_compiling
    suites = bench.suites_of(suites, sim)
    on_device = here or ssh is not None or port is not None

    def measure(took):
        if not on_device:
            bench.run(suites, rounds, took)
        elif here:
            device.measure_here(suites, rounds, took)
        elif ssh is not None:
            device.over_ssh(ssh, suites, rounds, took)
        else:
            device.on_port(port, suites, rounds, took)

    summary = device.explain if port is not None else bench.compare_recorded
    bench.show(measure, as_json, output, summary=summary)
    return 0

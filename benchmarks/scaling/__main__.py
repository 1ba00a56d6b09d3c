"""The same runs on 1, 2 and 4 virtual devices of a CPU, and in 1 and 2 processes: `python -m benchmarks.scaling`.

Prints how long each took over the time on one device, and whether the result is the same to the bit; how long processes
take to exchange a message; and what follows for many devices. Virtual devices share the cores of this machine: they
show what the layout costs, not what devices gain. A report, not a test: it always exits with 0.
"""

import math

from rich.console import Console
from rich.table import Table

from benchmarks.scaling import latency
from benchmarks.scaling.layouts import Layout, measure

RUNS = [("a kernel", 2_000_000), ("automatic", 1_000_000), ("batch in parts", 5_000), ("shared theta", 5_000)]
LAYOUTS = [Layout(), Layout(devices=2), Layout(devices=4), Layout(processes=2)]
SEGMENT, EXCHANGES = 0.5, 4  # seconds of a segment between two looks at one another, and messages then
DEVICES = (2, 8, 64, 1000)


def main() -> None:
    console = Console(width=110)
    found = {layout: measure(layout, RUNS)[0] for layout in LAYOUTS}
    table = Table(
        "run of 8 chains", "steps", *map(str, LAYOUTS), title="seconds without compilation, and over one device"
    )
    for row, (kind, steps) in enumerate(RUNS):
        one = found[LAYOUTS[0]][row]
        cells = []
        for layout in LAYOUTS:
            run = found[layout][row]
            same = "" if run["digest"] == one["digest"] else ", other bits"
            cells.append(f"{run['seconds']:.2f} ({run['seconds'] / one['seconds']:.2f}{same})")
        table.add_row(kind, f"{steps:,}", *cells)
    console.print(table)

    message, step = latency.measure()
    console.print(f"Two processes exchange a message in {1e3 * message:.1f} ms, and a mean within a program, as for")
    console.print(f"a shared θ, in {1e3 * step:.2f} ms.")
    model = Table("devices", "exchanges, of the time", "a step with shared θ, ms", title="model for many devices")
    for devices in DEVICES:
        rounds = math.log2(devices)
        segment = max(SEGMENT, 100 * message * rounds)
        share = EXCHANGES * message * rounds / segment
        model.add_row(f"{devices:,}", f"{share:.1%}", f"{2e3 * step * rounds:.1f}")
    console.print(model)


if __name__ == "__main__":
    main()

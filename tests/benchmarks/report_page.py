"""What the page of many items costs: CPU seconds of `judgecal report`, its size, and how long a browser takes
to load it. By hand, some two minutes. `python -m tests.benchmarks.report_page`

1,490 items of three judges: at most 4 s of CPU, 700 kB, loaded within 0.5 s. 20,000 items: at most 8 s of
CPU. Exits 1 where one of them breaks; on a machine that is busy with other things CPU seconds are longer than
they are. Modules are compiled by the first command, as an installation has them: without that each run would
take some 2 s more.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.driver import Bench
from tests.support.browser import PROGRAM, browser
from tests.support.many_items import many_items

LIMITS = {1_490: (4.0, 700_000, 0.5), 20_000: (8.0, 2_700_000, None)}
"""Items -> CPU seconds, bytes, seconds to load."""


def run(folder: Path, *argv: str) -> float:
    """CPU seconds of a command."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = os.times()
    subprocess.run(
        [sys.executable, "-m", "judgecal", *argv],
        cwd=folder,
        check=True,
        stdout=subprocess.DEVNULL,
        env=environment,
    )
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def loading(page: Path) -> float:
    """Seconds from the request to the end of the load event, the best of three."""
    with browser() as found:
        script = "performance.getEntriesByType('navigation')[0].loadEventEnd"
        return min(float(found.tab().open(page.as_uri()).run(script)) for _ in range(3)) / 1000.0


def main() -> int:
    bench = Bench(__doc__, n=2, of="builds of each page, the faster counts")
    for n, (cpu, size, load) in LIMITS.items():
        with tempfile.TemporaryDirectory() as name:
            run(Path(name), "init", "work")
            work = Path(name) / "work"
            judgements = str(many_items(work, n))
            run(work, "agreement", "--gold", "many", "--judgements", judgements, "--name", "many")
            seconds = min(run(work, "report", "many", "--format", "html") for _ in range(bench.n))
            page = work / "experiments" / "many" / "report.html"
            bench.head(f"{n:,} items")
            bench.target("s of CPU", seconds, most=cpu)
            bench.target("bytes", page.stat().st_size, most=size)
            if PROGRAM and load is not None:
                bench.target("s to load", loading(page), most=load)
    return bench.end()


if __name__ == "__main__":
    sys.exit(main())

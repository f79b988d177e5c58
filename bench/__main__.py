"""`python -m bench [suite ...]`: run the suites and print what was measured."""

import argparse
import asyncio
import json
import signal
from pathlib import Path
from typing import Final

import uvloop

from bench.chart import as_svg
from bench.contests import bars
from bench.report import as_text
from bench.results import as_json
from bench.suites import SUITES

CHART: Final = Path(__file__).parent.parent / "docs" / "reference" / "benchmarks.svg"


def main() -> None:
    options = _options()
    # As an interrupt does: what was started is stopped on the way out.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    found = {}
    for name in options.suites or SUITES:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            suite = SUITES[name]
            results = runner.run(suite.run(quick=options.quick, rounds=options.rounds))
        print(as_text(name, results), end="\n\n", flush=True)
        found[name] = as_json(results)
        chart = options.chart or (None if options.quick else CHART)
        if name == "peers" and chart is not None:
            chart.write_text(as_svg(bars(results)))
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "suites", nargs="*", choices=[*SUITES, []], metavar=f"{{{','.join(SUITES)}}}"
    )
    parser.add_argument("--rounds", type=_positive, help="rounds that count (default: the suite's)")
    parser.add_argument("--quick", action="store_true", help="less work, and fewer rounds of it")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    parser.add_argument(
        "--chart", type=Path, help="where to draw the peers (full runs: the documentation's chart)"
    )
    return parser.parse_args()


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"rounds must be at least 1, not {number}")
    return number


if __name__ == "__main__":
    main()

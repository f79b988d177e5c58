"""`python -m bench [suite ...]`: run the suites and print what was measured."""

import argparse
import asyncio
import json
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import uvloop

from bench.chart import as_svg
from bench.contests import bars
from bench.report import as_text
from bench.results import Result, as_json
from bench.suites import SUITES

DOCUMENTATION: Final = Path(__file__).parent.parent / "docs" / "reference"
_OTHERWISE: Final = "full runs: in docs/reference; quick ones: nowhere"


def main() -> None:
    options = _options()
    # As an interrupt does: what was started is stopped on the way out.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for name in options.suites or SUITES:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            suite = SUITES[name]
            results = runner.run(suite.run(quick=options.quick, rounds=options.rounds))
        print(as_text(name, results), end="\n\n", flush=True)
        if options.json is not None:
            keep(options.json, name, results)
        if name == "peers" and options.chart is not None:
            options.chart.write_text(as_svg(bars(results)))


def keep(file: Path, suite: str, results: Sequence[Result]) -> None:
    """The results of other suites that the file has stay in it."""
    known = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps({**known, suite: as_json(results)}, indent=2) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "suites", nargs="*", choices=[*SUITES, []], metavar=f"{{{','.join(SUITES)}}}"
    )
    parser.add_argument("--rounds", type=_positive, help="rounds that count (default: the suite's)")
    parser.add_argument("--quick", action="store_true", help="less work, and fewer rounds of it")
    parser.add_argument("--json", type=Path, help=f"where to keep the results ({_OTHERWISE})")
    parser.add_argument("--chart", type=Path, help=f"where to draw the peers ({_OTHERWISE})")
    options = parser.parse_args()
    if not options.quick:
        options.json = options.json or DOCUMENTATION / "benchmarks.json"
        options.chart = options.chart or DOCUMENTATION / "benchmarks.svg"
    return options


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"rounds must be at least 1, not {number}")
    return number


if __name__ == "__main__":
    main()

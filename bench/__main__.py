"""`python -m bench [suite ...]`: run the suites and print what was measured."""

import argparse
import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import uvloop

from bench import backlog, bus, expressions, flow, store, worker
from bench.measure import Case, Result, measure
from bench.report import as_json, as_text

Suite = Callable[[bool], AbstractAsyncContextManager[list[Case]]]

SUITES: dict[str, Suite] = {
    "store": store.cases,
    "bus": bus.cases,
    "expressions": expressions.cases,
    "worker": worker.cases,
    "flow": flow.cases,
    "backlog": backlog.cases,
}


def main() -> None:
    options = _options()
    found = {}
    for name in options.suites or SUITES:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            results = runner.run(_run(SUITES[name], options))
        print(as_text(name, results), end="\n\n")
        found[name] = as_json(results)
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "suites", nargs="*", choices=[*SUITES, []], metavar=f"{{{','.join(SUITES)}}}"
    )
    parser.add_argument("--rounds", type=int, default=5, help="rounds that count (default: 5)")
    parser.add_argument("--quick", action="store_true", help="less work in each round")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    return parser.parse_args()


async def _run(suite: Suite, options: argparse.Namespace) -> list[Result]:
    async with suite(options.quick) as cases:
        return await measure(cases, options.rounds)


if __name__ == "__main__":
    main()

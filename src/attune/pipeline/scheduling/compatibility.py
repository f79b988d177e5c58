"""Which workers can run an execution, which it would rather have, and what it looked for. Pure.

A demand is a list of requirements, each with its words: what decides is what is told.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from attune.catalog.model import ActionDefinition
from attune.catalog.placement import Needs, Toleration
from attune.catalog.runners import RUNNER_WORDS
from attune.catalog.version_constraints import satisfies
from attune.pipeline.scheduling.labels import in_words, matches, says_something
from attune.pipeline.scheduling.model import Demand
from attune.pipeline.workers.model import Worker

_CORE: Final = "core."
_HARD: Final = "no_schedule"


class Requirement(msgspec.Struct, frozen=True):
    """`words` complete "a worker with …". A `usual` one is told only where it is not met: nobody asked for it."""

    words: str
    met: Callable[[Worker], bool]
    usual: bool = False


def demand_of(definition: ActionDefinition, needs: Needs | None) -> Demand:
    """What an execution of this definition needs of a worker."""
    ref = definition.runtime_ref
    required = definition.required_worker_runtimes
    return Demand(
        runtime_name(ref) if ref else None,
        definition.runtime_version_constraint,
        {runtime_name(name): str(version) for name, version in required.items()},
        needs or Needs(),
        definition.action_ref,
    )


def runtime_name(word: str) -> str:
    """The name that workers use: `python` for core.python and python3, the whole ref for a runtime of another pack."""
    return RUNNER_WORDS.get(word.lower(), word).removeprefix(_CORE)


def can_run(worker: Worker, demand: Demand) -> bool:
    return all(one.met(worker) for one in requirements(demand))


def preference(worker: Worker, demand: Demand) -> int:
    """The weights of the preferred terms that it matches; higher is better."""
    return sum(
        one.weight
        for one in demand.needs.affinity.preferred
        if says_something(one.preference) and matches(worker.labels, one.preference)
    )


def discouraged(worker: Worker, demand: Demand) -> int:
    """How many taints ask the execution to go elsewhere if it can; lower is better."""
    return len(list(_untolerated(worker, demand, hard=False)))


def looked_for(demand: Demand) -> list[str]:
    """What a worker must have, in words."""
    return [one.words for one in requirements(demand) if not one.usual]


def lacking(demand: Demand, workers: Sequence[Worker]) -> str | None:
    """Why none of these workers can run it, beside what was looked for; None where that says it all."""
    wanted = requirements(demand)
    if not workers:
        return None
    unmet = [one for one in wanted if not any(map(one.met, workers))]
    if not unmet:
        return "no one has all of it"
    if unmet == [one for one in wanted if not one.usual]:
        return None
    words = " or ".join(one.words for one in unmet if not one.usual)
    told = [f"no one has {words}"] if words else []
    taints = [_taints_in_the_way(demand, workers) for one in unmet if one.usual]
    return "; ".join(told + taints)


def requirements(demand: Demand) -> list[Requirement]:
    needs = demand.needs
    return [
        *_runtimes(demand),
        *(_label(key, value) for key, value in sorted(needs.selector.items())),
        *_affinity(demand),
        Requirement(
            f"only taints that it tolerates ({', '.join(map(_toleration, needs.tolerations))})",
            lambda worker: not any(True for _ in _untolerated(worker, demand, hard=True)),
            usual=not needs.tolerations,
        ),
    ]


def _runtimes(demand: Demand) -> Iterator[Requirement]:
    if demand.runtime is not None:
        yield _runtime(demand.runtime, demand.version)
    for name, version in sorted(demand.required.items()):
        yield _runtime(name, version)


def _runtime(name: str, version: str | None) -> Requirement:
    constraint = (version or "*").strip()
    words = f"runtime {name}" if constraint == "*" else f"runtime {name} {constraint}"
    return Requirement(words, lambda worker: _has_runtime(worker, name, constraint))


def _has_runtime(worker: Worker, name: str, constraint: str) -> bool:
    """A name without a pack may also be the last part of a ref."""
    last = f".{name}"
    return any(
        (each.name == name or each.name.endswith(last))
        and (constraint == "*" or any(satisfies(one, constraint) for one in each.versions))
        for each in worker.supported_runtimes
    )


def _label(key: str, value: str) -> Requirement:
    return Requirement(f"label {key}={value}", lambda worker: worker.labels.get(key) == value)


def _affinity(demand: Demand) -> Iterator[Requirement]:
    affinity = demand.needs.affinity
    if required := [one for one in affinity.required if says_something(one)]:
        yield Requirement(
            f"labels {' or '.join(map(in_words, required))}",
            lambda worker: any(matches(worker.labels, one) for one in required),
        )
    if barred := [one for one in affinity.anti_affinity if says_something(one)]:
        yield Requirement(
            f"labels other than {' or '.join(map(in_words, barred))}",
            lambda worker: not any(matches(worker.labels, one) for one in barred),
        )


def _untolerated(worker: Worker, demand: Demand, *, hard: bool) -> Iterator[dict[str, str]]:
    tolerations = demand.needs.tolerations
    for taint in worker.taints:
        is_hard = taint.get("effect", _HARD) == _HARD
        if is_hard is hard and not any(_tolerates(one, taint) for one in tolerations):
            yield taint


def _tolerates(toleration: Toleration, taint: dict[str, str]) -> bool:
    if toleration.key != taint.get("key"):
        return False
    if toleration.effect not in (None, taint.get("effect", _HARD)):
        return False
    return toleration.operator == "exists" or (toleration.value or "") == (taint.get("value") or "")


def _toleration(toleration: Toleration) -> str:
    of = f", {toleration.effect} only" if toleration.effect else ""
    if toleration.operator == "exists" or toleration.value is None:
        return f"{toleration.key}{of}"
    return f"{toleration.key}={toleration.value}{of}"


def _taints_in_the_way(demand: Demand, workers: Iterable[Worker]) -> str:
    found = {_taint(one) for worker in workers for one in _untolerated(worker, demand, hard=True)}
    return f"all have a taint that it does not tolerate ({', '.join(sorted(found))})"


def _taint(taint: dict[str, str]) -> str:
    return f"{taint.get('key')}={taint['value']}" if taint.get("value") else f"{taint.get('key')}"

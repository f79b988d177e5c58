"""Which workers can run an execution, and which it would rather have. Pure."""

from attune.catalog.model import ActionDefinition
from attune.catalog.placement import Needs
from attune.pipeline.scheduling.model import Demand
from attune.pipeline.workers.model import Worker


def demand_of(definition: ActionDefinition, needs: Needs | None) -> Demand:
    """What an execution of this definition needs of a worker."""
    ref = definition.runtime_ref
    return Demand(
        ref.rpartition(".")[2] if ref else None,
        definition.runtime_version_constraint,
        definition.required_worker_runtimes,
        needs or Needs(),
        definition.action_ref,
    )


def can_run(worker: Worker, demand: Demand) -> bool:
    return _has_runtime(worker, demand.runtime) and all(
        worker.labels.get(label) == value for label, value in demand.needs.selector.items()
    )


def preference(worker: Worker, demand: Demand) -> int:
    """Higher is better."""
    return 0


def looked_for(demand: Demand) -> list[str]:
    """What a worker must have, in words."""
    wanted = [f"runtime {demand.runtime}"] if demand.runtime else []
    return wanted + [f"label {k}={v}" for k, v in sorted(demand.needs.selector.items())]


def _has_runtime(worker: Worker, runtime: str | None) -> bool:
    return runtime is None or any(each.name == runtime for each in worker.supported_runtimes)

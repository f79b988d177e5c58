"""What holds of every selection, whoever is there and whatever waits."""

from hypothesis import given
from hypothesis import strategies as st

from attune.catalog.placement import (
    Affinity,
    LabelExpression,
    Needs,
    PreferredTerm,
    SelectorTerm,
    Toleration,
)
from attune.kernel.ids import WorkerId
from attune.pipeline.scheduling.compatibility import (
    can_run,
    discouraged,
    lacking,
    looked_for,
    preference,
)
from attune.pipeline.scheduling.decide import Setback, candidates, place
from attune.pipeline.scheduling.model import Demand, Terms
from attune.pipeline.workers.model import Worker
from tests.unit.pipeline.selections import NODE, NOW, PYTHON, SHELL, waiting, worker

LABELS = st.dictionaries(st.sampled_from("kl"), st.sampled_from("ab"), max_size=2)
TAINTS = st.lists(
    st.fixed_dictionaries(
        {"key": st.just("t"), "effect": st.sampled_from(["no_schedule", "prefer_no_schedule"])}
    ),
    max_size=1,
)
TERMS = st.builds(
    SelectorTerm,
    LABELS,
    st.lists(
        st.builds(
            LabelExpression,
            st.sampled_from("kl"),
            st.sampled_from(["in", "not_in", "exists", "does_not_exist"]),
            st.lists(st.sampled_from("ab"), max_size=2),
        ),
        max_size=1,
    ),
)
NEEDS = st.builds(
    Needs,
    selector=LABELS,
    tolerations=st.sampled_from([(), (Toleration("t"),)]),
    affinity=st.builds(
        Affinity,
        st.lists(TERMS, max_size=2),
        st.lists(st.builds(PreferredTerm, TERMS, st.integers(1, 100)), max_size=2),
        st.lists(TERMS, max_size=1),
    ),
    avoid=st.sampled_from([(), (1,), (1, 2)]),
)
DEMANDS = st.builds(
    Demand,
    st.sampled_from([None, "python", "nodejs"]),
    st.sampled_from([None, "*", "3.12", ">=3"]),
    st.sampled_from([{}, {"shell": "*"}]),
    NEEDS,
    st.sampled_from(["a.one", "a.two"]),
)


@st.composite
def fields(draw: st.DrawFn) -> tuple[list[Worker], dict[WorkerId, int], set[Setback]]:
    workers = [
        worker(
            number,
            draw(st.integers(0, 3)),
            runtimes=draw(st.lists(st.sampled_from([PYTHON, NODE, SHELL]), max_size=3)),
            labels=draw(LABELS),
            taints=draw(TAINTS),
        )
        for number in range(1, draw(st.integers(0, 4)) + 1)
    ]
    loads = {one.id: draw(st.integers(0, 3)) for one in workers}
    pairs = st.tuples(st.integers(1, 4).map(WorkerId), st.sampled_from(["a.one", "a.two"]))
    return workers, loads, draw(st.sets(pairs, max_size=4))


@given(fields(), st.lists(DEMANDS, max_size=8))
def test_nobody_is_overfilled_or_given_what_he_cannot_run_and_no_one_is_skipped(
    field: tuple[list[Worker], dict[WorkerId, int], set[Setback]], demands: list[Demand]
) -> None:
    workers, loads, aside = field
    line = [waiting(number, one) for number, one in enumerate(demands, 1)]
    placement = place(line, workers, loads, Terms(), NOW, aside)
    by_id = {one.id: one for one in workers}
    given_away = {one.entry.execution: one.worker for one in placement.assigned}
    hopeless = {one.execution for one in placement.unplaceable}
    load = dict(loads)
    for one in line:
        able = candidates(one.demand, workers, aside)
        free = [each for each in able if load[each.id] < each.capacity]
        chosen = given_away.get(one.entry.execution)
        assert (chosen is not None) == bool(free)
        assert (one.entry.execution in hopeless) == (not able)
        if chosen is not None:
            assert by_id[chosen] in free
            assert can_run(by_id[chosen], one.demand)
            load[chosen] += 1
    assert all(load[one.id] <= max(one.capacity, loads[one.id]) for one in workers)
    assert [one.entry.execution for one in placement.assigned] == sorted(given_away)


@given(fields(), DEMANDS)
def test_who_gets_it_is_as_good_as_anybody_with_room(
    field: tuple[list[Worker], dict[WorkerId, int], set[Setback]], demand: Demand
) -> None:
    workers, loads, aside = field

    def rank(one: Worker) -> tuple[object, ...]:
        avoided = one.id in demand.needs.avoid
        liked = preference(one, demand)
        return (avoided, discouraged(one, demand), -liked, loads[one.id] / one.capacity, one.id)

    free = [one for one in candidates(demand, workers, aside) if loads[one.id] < one.capacity]
    placement = place([waiting(1, demand)], workers, loads, Terms(), NOW, aside)
    best = min(free, key=rank, default=None)
    assert [one.worker for one in placement.assigned] == ([best.id] if best else [])


@given(fields(), DEMANDS)
def test_what_is_told_to_be_lacking_is_lacking(
    field: tuple[list[Worker], dict[WorkerId, int], set[Setback]], demand: Demand
) -> None:
    workers, _, _ = field
    if workers and not any(can_run(one, demand) for one in workers):
        told = lacking(demand, workers)
        assert told is not None or looked_for(demand)
        if told == "no one has all of it":
            assert len(looked_for(demand)) + any(one.taints for one in workers) > 1

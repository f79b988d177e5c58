"""Which workers can run what, and whom an execution gets."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from attune.catalog.model import ActionDefinition
from attune.catalog.placement import (
    Affinity,
    LabelExpression,
    Needs,
    PreferredTerm,
    SelectorTerm,
    Toleration,
)
from attune.kernel.ids import ExecutionId, WorkerId
from attune.pipeline.scheduling.compatibility import (
    can_run,
    demand_of,
    discouraged,
    lacking,
    looked_for,
    preference,
)
from attune.pipeline.scheduling.decide import Setback, place
from attune.pipeline.scheduling.model import Demand, Placement, Terms, Waiting
from attune.pipeline.workers.model import RuntimeSupport, Worker
from tests.unit.pipeline.selections import NODE, NOW, PYTHON, SHELL, waiting, worker

DEFINITION = {
    "action_ref": "a.one",
    "pack_ref": "a",
    "pack_version": "1",
    "entrypoint": "one.py",
    "is_inline": False,
    "runtime_ref": "core.python",
    "runtime_version_constraint": "3.12",
    "execution_config": {},
    "parameter_delivery": "stdin",
    "parameter_format": "json",
    "output_format": "text",
    "on_worker_lost": "retry",
    "reuse": False,
}


def wanting(**needs: Any) -> Demand:
    return Demand(None, needs=Needs(**needs), action_ref="a.one")


def given_to(
    some: list[Demand], workers: list[Worker], *, aside: set[tuple[int, str]] | None = None
) -> list[int | None]:
    """The worker of each, in their order."""
    line = [waiting(number, one) for number, one in enumerate(some, 1)]
    placement = placed(line, workers, aside or set())
    found = {one.entry.execution: int(one.worker) for one in placement.assigned}
    return [found.get(ExecutionId(number)) for number in range(1, len(some) + 1)]


def placed(
    line: list[Waiting], workers: list[Worker], aside: set[tuple[int, str]], **how: Any
) -> Placement:
    set_aside: set[Setback] = {(WorkerId(each), ref) for each, ref in aside}
    return place(line, workers, {}, Terms(), NOW, set_aside, **how)


class TestRuntimes:
    @pytest.mark.parametrize(
        ("demand", "able"),
        [
            (Demand(None), True),
            (Demand("python"), True),
            (Demand("nodejs"), False),
            (Demand("python", "*"), True),
            (Demand("python", "3.12"), True),
            (Demand("python", ">=3.10,<3.11"), False),
            (Demand("python", "banana"), False),
            (Demand("python", None, {"shell": "*"}), True),
            (Demand("python", None, {"shell": ">=6"}), False),
            (Demand("python", None, {"nodejs": "*"}), False),
        ],
    )
    def test_all_must_be_there_in_a_fitting_version(self, demand: Demand, able: bool) -> None:
        assert can_run(worker(), demand) is able

    def test_one_that_tells_no_version_fits_where_none_is_asked_for(self) -> None:
        silent = worker(runtimes=[RuntimeSupport("python")])
        assert can_run(silent, Demand("python"))
        assert not can_run(silent, Demand("python", "3"))

    def test_people_may_use_other_words_for_a_runtime(self) -> None:
        definition = msgspec.convert(
            dict.fromkeys(ActionDefinition.__struct_fields__)
            | DEFINITION
            | {"required_worker_runtimes": {"Node": ">=18", "bash": "*", "b.ruby": "3"}},
            ActionDefinition,
        )
        demand = demand_of(definition, None)
        assert (demand.runtime, demand.version, demand.action_ref) == ("python", "3.12", "a.one")
        assert demand.required == {"nodejs": ">=18", "shell": "*", "b.ruby": "3"}
        ruby = RuntimeSupport("b.ruby", ["3.1.2"])
        assert can_run(worker(runtimes=[PYTHON, NODE, SHELL, ruby]), demand)
        assert not can_run(worker(runtimes=[PYTHON, NODE, SHELL]), demand)

    def test_the_runtime_of_a_pack_is_found_by_its_last_word(self) -> None:
        ruby = worker(runtimes=[RuntimeSupport("b.ruby", ["3.1.2"])])
        assert can_run(ruby, Demand("ruby"))
        assert can_run(ruby, Demand("b.ruby"))
        assert not can_run(ruby, Demand("c.ruby"))


class TestTaints:
    GPU = {"key": "gpu", "value": "big", "effect": "no_schedule"}
    OLD = {"key": "old", "effect": "prefer_no_schedule"}

    @pytest.mark.parametrize(
        ("toleration", "able"),
        [
            (Toleration("gpu", value="big"), True),
            (Toleration("gpu", value="small"), False),
            (Toleration("gpu"), False),
            (Toleration("gpu", "exists"), True),
            (Toleration("other", "exists"), False),
            (Toleration("gpu", "exists", effect="no_schedule"), True),
            (Toleration("gpu", "exists", effect="prefer_no_schedule"), False),
        ],
    )
    def test_a_taint_keeps_away_what_does_not_tolerate_it(
        self, toleration: Toleration, able: bool
    ) -> None:
        tainted = worker(taints=[self.GPU])
        assert not can_run(tainted, wanting())
        assert can_run(tainted, wanting(tolerations=(toleration,))) is able

    def test_every_taint_must_be_tolerated(self) -> None:
        both = worker(taints=[self.GPU, {"key": "room", "effect": "no_schedule"}])
        assert not can_run(both, wanting(tolerations=(Toleration("gpu", "exists"),)))
        room = Toleration("room")
        assert can_run(both, wanting(tolerations=(Toleration("gpu", "exists"), room)))

    def test_a_worker_that_discourages_it_comes_last_and_only_then(self) -> None:
        workers = [worker(1, taints=[self.OLD]), worker(2)]
        assert given_to([wanting()] * 4, workers) == [2, 2, 1, 1]
        fond = wanting(tolerations=(Toleration("old"),))
        assert given_to([fond] * 2, workers) == [1, 2]
        assert discouraged(workers[0], wanting()) == 1

    def test_taints_in_the_way_are_named(self) -> None:
        assert lacking(wanting(), [worker(taints=[self.GPU])]) == (
            "all have a taint that it does not tolerate (gpu=big)"
        )


def term(*expressions: tuple[Any, ...], **labels: str) -> SelectorTerm:
    return SelectorTerm(labels, [LabelExpression(*each) for each in expressions])


class TestAffinity:
    @pytest.mark.parametrize(
        ("wanted", "able"),
        [
            (term(zone="a"), True),
            (term(zone="b"), False),
            (term(zone="a", disk="hdd"), False),
            (term(("zone", "in", ["a", "b"])), True),
            (term(("zone", "in", ["b"])), False),
            (term(("zone", "not_in", ["b"])), True),
            (term(("zone", "not_in", ["a"])), False),
            (term(("rack", "not_in", ["1"])), True),
            (term(("rack", "in", ["1"])), False),
            (term(("disk", "exists")), True),
            (term(("rack", "exists")), False),
            (term(("rack", "does_not_exist")), True),
            (term(("disk", "does_not_exist")), False),
            (term(("disk", "exists"), zone="b"), False),
        ],
    )
    def test_a_term_matches_if_all_that_it_says_does(
        self, wanted: SelectorTerm, able: bool
    ) -> None:
        labelled = worker(labels={"zone": "a", "disk": "ssd"})
        assert can_run(labelled, wanting(affinity=Affinity(required=[wanted]))) is able
        assert can_run(labelled, wanting(affinity=Affinity(anti_affinity=[wanted]))) is not able
        liked = Affinity(preferred=[PreferredTerm(wanted, 7)])
        assert preference(labelled, wanting(affinity=liked)) == (7 if able else 0)

    def test_any_required_term_suffices_and_no_barred_one_may_match(self) -> None:
        labelled = worker(labels={"zone": "a"})
        some = [term(zone="b"), term(zone="a")]
        assert can_run(labelled, wanting(affinity=Affinity(required=some)))
        assert not can_run(labelled, wanting(affinity=Affinity(anti_affinity=some)))

    def test_a_term_that_says_nothing_is_passed_over(self) -> None:
        empty = Affinity(
            required=[term()], anti_affinity=[term()], preferred=[PreferredTerm(term(), 9)]
        )
        assert can_run(worker(), wanting(affinity=empty))
        assert preference(worker(), wanting(affinity=empty)) == 0
        assert looked_for(wanting(affinity=empty)) == []

    def test_weights_are_summed_and_the_best_has_its_room_filled_first(self) -> None:
        liked = Affinity(
            preferred=[
                PreferredTerm(term(zone="a"), 10),
                PreferredTerm(term(disk="ssd"), 30),
                PreferredTerm(term(("zone", "exists")), 5),
            ]
        )
        zone, disk = worker(1, labels={"zone": "a"}), worker(2, labels={"disk": "ssd"})
        assert preference(zone, wanting(affinity=liked)) == 15
        assert given_to([wanting(affinity=liked)] * 4, [zone, disk]) == [2, 2, 1, 1]


def test_all_that_was_looked_for_is_told() -> None:
    needs = Needs(
        selector={"zone": "a"},
        tolerations=(Toleration("gpu", value="big"), Toleration("old", "exists")),
        affinity=Affinity(
            required=[term(disk="ssd"), term(("rack", "in", ["1", "2"]), hall="b")],
            anti_affinity=[term(("slow", "exists"))],
        ),
    )
    assert looked_for(Demand("python", ">=3.12", {"nodejs": "*"}, needs)) == [
        "runtime python >=3.12",
        "runtime nodejs",
        "label zone=a",
        "labels disk=ssd or hall=b and rack in (1, 2)",
        "labels other than slow (any value)",
        "only taints that it tolerates (gpu=big, old)",
    ]


def test_what_nobody_meets_is_told_apart_from_what_some_do() -> None:
    workers = [worker(1, labels={"zone": "a"}), worker(2, runtimes=[NODE])]
    demand = Demand("nodejs", None, {}, Needs(selector={"zone": "b"}))
    assert lacking(demand, workers) == "no one has label zone=b"
    both = Demand("nodejs", None, {}, Needs(selector={"zone": "a"}))
    assert lacking(both, workers) == "no one has all of it"
    assert lacking(Demand("ruby"), workers) is None
    assert lacking(Demand("ruby"), []) is None


def test_a_retry_goes_to_a_worker_that_it_has_not_failed_on_as_long_as_there_is_room() -> None:
    again = wanting(avoid=(1,))
    assert given_to([again] * 3, [worker(1), worker(2)]) == [2, 2, 1]


class TestSetAside:
    def test_who_is_set_aside_gets_nothing_of_that_action(self) -> None:
        workers = [worker(1, 9), worker(2, 1)]
        other = Demand(None, action_ref="a.two")
        found = given_to([wanting(), wanting(), other], workers, aside={(2, "a.one")})
        assert found == [1, 1, 2]
        assert given_to([wanting()] * 2, workers, aside={(1, "a.one")}) == [2, None]

    def test_if_everybody_is_they_get_it_all_the_same(self) -> None:
        aside = {(1, "a.one"), (2, "a.one")}
        assert given_to([wanting()] * 2, [worker(1), worker(2)], aside=aside) == [1, 2]

    def test_one_that_is_asked_alone_gets_nothing_that_others_might_take(self) -> None:
        line = [waiting(1, wanting()), waiting(2, Demand(None, action_ref="a.two"))]
        found = placed(line, [worker(1)], {(1, "a.one")}, alone=True)
        assert [one.entry.execution for one in found.assigned] == [2]
        assert (found.passed_over, found.unplaceable) == ([1], [])


def test_a_place_for_a_retry_is_waited_for_since_it_was_due() -> None:
    terms = Terms(no_worker_grace=timedelta(seconds=10))
    first = waiting(1, Demand("ruby"))
    again = waiting(2, Demand("ruby"), due_at=NOW + timedelta(seconds=60))
    found = place([first, again], [worker()], {}, terms, NOW + timedelta(seconds=65))
    assert [one.execution for one in found.unplaceable] == [1]

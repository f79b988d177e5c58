"""Each gate as it stands now, which of them is named first, and what is refused."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attune.kernel.ids import LaneId, PolicyId, PoolId
from attune.pipeline.policies.gates import (
    Starts,
    concurrency_gate,
    first_blocker,
    opens_at,
    quota_gate,
    rate_gate,
    room,
    window_gate,
)
from attune.pipeline.policies.model import (
    Blackout,
    EffectivePolicy,
    GateName,
    Method,
    Quota,
    QuotaType,
    Rate,
)
from attune.pipeline.queues.decide import gates, refusal
from attune.pipeline.queues.model import Lane, Pool

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SHUT = Blackout(NOW - timedelta(hours=1), NOW + timedelta(hours=1))
POOL = PoolId(3)


def lane(active: int = 0, waiting: int = 0, *, paused: bool = False, **terms: Any) -> Lane:
    bound = EffectivePolicy(policy=PolicyId(1), policy_ref="p.one", **{"scope": "action", **terms})
    return Lane(
        id=LaneId(1),
        action_ref="a.one",
        last_enqueued_at=NOW,
        terms=bound,
        max_concurrent=bound.limit,
        active_count=active,
        queue_length=waiting,
        paused=paused,
    )


def pool(active: int = 0, accepted: int = 0) -> dict[str, Pool]:
    found = Pool(id=POOL, policy=PolicyId(1), key="", active_count=active, total_accepted=accepted)
    return {"": found}


def ago(*seconds: float) -> tuple[datetime, ...]:
    return tuple(sorted(NOW - timedelta(seconds=each) for each in seconds))


class TestOneGate:
    @pytest.mark.parametrize(
        ("limit", "active", "free", "closed"),
        [(2, 1, 1, False), (2, 2, 0, True), (2, 5, -3, True), (0, 0, 0, True)],
    )
    def test_a_limit_has_room_for_the_rest(
        self, limit: int, active: int, free: int, closed: bool
    ) -> None:
        gate = concurrency_gate("p.one", limit, active)
        assert (gate.free, gate.is_closed, gate.limit) == (free, closed, limit)

    def test_f12_a_limit_of_zero_says_that_it_holds_everything(self) -> None:
        assert "holds everything" in concurrency_gate("p.one", 0, 0).text

    def test_a_quota_says_whose_it_is(self) -> None:
        each = quota_gate("p.one", Quota(QuotaType.RUNNING, 2, "identity"), 2)
        assert each.is_closed
        assert "of the identity" in each.text
        assert "identity" not in quota_gate("p.one", Quota(QuotaType.RUNNING, 2), 1).text

    def test_a_closed_window_says_until_when(self) -> None:
        bound = lane(blackouts=(SHUT,)).terms
        assert bound is not None
        gate = window_gate(bound, NOW)
        assert (gate.is_closed, gate.until) == (True, SHUT.end)
        assert window_gate(bound, SHUT.end).until is None

    def test_a_rate_opens_when_its_oldest_start_is_a_window_old(self) -> None:
        rate = Rate(2, 10)
        assert rate_gate("p.one", rate, Starts(ago(9))).free == 1
        full = rate_gate("p.one", rate, Starts(ago(9, 4)))
        assert (full.free, full.until) == (0, NOW + timedelta(seconds=1))
        over = rate_gate("p.one", rate, Starts(ago(9, 4, 2)))
        assert over.until == NOW + timedelta(seconds=6)

    def test_a_rate_that_hangs_on_a_start_yet_to_come_knows_no_time(self) -> None:
        gate = rate_gate("p.one", Rate(1, 10), Starts((), 1))
        assert (gate.is_closed, gate.until) == (True, None)
        assert rate_gate("p.one", Rate(2, 10), Starts(ago(4), 1)).until is not None

    @given(
        most=st.integers(1, 4),
        waits=st.lists(st.floats(0, 30, allow_nan=False), max_size=40),
    )
    def test_starts_that_ask_the_rate_never_exceed_it_in_any_window(
        self, most: int, waits: list[float]
    ) -> None:
        rate, window = Rate(most, 10), timedelta(seconds=10)
        started: list[datetime] = []
        now = NOW
        for wait in waits:
            now += timedelta(seconds=wait)
            counted = Starts(tuple(each for each in started if each > now - window))
            gate = rate_gate("p.one", rate, counted)
            if gate.is_closed:
                assert gate.until is not None
                assert gate.until > now
                now = gate.until
            started.append(now)
        for first, last in zip(started, started[most:], strict=False):
            assert last - first >= window


class TestAllTogether:
    def test_the_first_blocker_is_named_in_their_order(self) -> None:
        quotas = (Quota(QuotaType.RUNNING, 1),)
        found = gates(
            lane(1, paused=True, limit=1, blackouts=(SHUT,), quotas=quotas, rate=Rate(1, 10)),
            pool(active=1),
            {POOL: Starts(ago(1))},
            NOW,
        )
        assert [gate.name for gate in found] == [
            GateName.PAUSE,
            GateName.WINDOW,
            GateName.CONCURRENCY,
            GateName.QUOTA,
            GateName.RATE_LIMIT,
        ]
        assert all(gate.is_closed for gate in found)
        assert first_blocker(found) == found[0]
        assert first_blocker(found[2:]) == found[2]

    def test_the_smallest_room_counts_and_none_is_any_number(self) -> None:
        found = gates(lane(1, limit=5, rate=Rate(2, 10)), pool(1), {POOL: Starts(ago(1))}, NOW)
        assert room(found) == 1
        assert room([]) is None
        assert room([concurrency_gate("p.one", 1, 4)]) == 0

    def test_the_last_gate_of_time_says_when_to_look_again(self) -> None:
        found = gates(
            lane(blackouts=(SHUT,), rate=Rate(1, 10)), pool(), {POOL: Starts(ago(1))}, NOW
        )
        assert opens_at(found) == SHUT.end
        assert opens_at([concurrency_gate("p.one", 0, 0)]) is None

    def test_a_lane_without_a_policy_knows_the_pause_only(self) -> None:
        bare = Lane(id=LaneId(1), action_ref="a.one", last_enqueued_at=NOW, paused=True)
        assert [gate.name for gate in gates(bare, {}, {}, NOW)] == [GateName.PAUSE]


class TestRefusal:
    def _refused(self, one: Lane, more: int, **how: Any) -> str | None:
        pools = pool(accepted=how.get("accepted", 0))
        claims = {POOL: how["claims"]} if "claims" in how else {}
        error = refusal(one, pools, gates(one, pools, {}, NOW), more, 2, claims)
        return None if error is None else str(error)

    def test_free_slots_count_only_while_nobody_waits(self) -> None:
        assert self._refused(lane(limit=2), 4) is None
        assert "Queue full (max length: 2): 0 wait" in (self._refused(lane(limit=2), 5) or "")
        assert self._refused(lane(0, 1, limit=2), 2) is not None

    def test_a_total_quota_counts_what_others_of_its_lanes_ask_for(self) -> None:
        quota = (Quota(QuotaType.TOTAL, 5),)
        assert self._refused(lane(quotas=quota), 3, accepted=2) is None
        assert "quota" in (self._refused(lane(quotas=quota), 3, accepted=3) or "")
        assert "quota" in (self._refused(lane(quotas=quota), 3, claims=6) or "")

    @pytest.mark.parametrize(("active", "more"), [(2, 50), (0, 50)])
    def test_where_the_limit_turns_away_nobody_would_wait(self, active: int, more: int) -> None:
        assert self._refused(lane(active, limit=2, method=Method.CANCEL), more) is None

    def test_a_paused_queue_is_joined_also_where_the_limit_turns_away(self) -> None:
        held = lane(limit=2, paused=True, method=Method.CANCEL)
        assert "Queue full" in (self._refused(held, 3) or "")

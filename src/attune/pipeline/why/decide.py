"""The words: what must happen so that a gate opens. Pure."""

from collections.abc import Sequence
from datetime import UTC, datetime

from attune.kernel.ids import ExecutionId
from attune.pipeline.policies.model import Gate, GateName
from attune.pipeline.queues.ahead import MOST
from attune.pipeline.scheduling.compatibility import lacking, looked_for
from attune.pipeline.scheduling.model import Demand
from attune.pipeline.why.model import Obstacle
from attune.pipeline.workers.model import Worker

_NAMED = 5


def delay_obstacle(until: datetime, attempt: int) -> Obstacle:
    """For one between two attempts; `attempt` is the number of the next."""
    at = moment(until)
    text = f"attempt {attempt - 1} failed, and attempt {attempt} may begin at {at}"
    gate = Gate(name=GateName.DELAY, free=0, text=text, until=until)
    return Obstacle(gate, f"its delay ends at {at}")


def lane_obstacle(gate: Gate, slots_of: str, queue: str) -> Obstacle:
    """`slots_of` is whose slots the gate counts, `queue` the name of the lane."""
    return Obstacle(gate, _lane_remedy(gate, slots_of, queue))


def _lane_remedy(gate: Gate, slots_of: str, queue: str) -> str:
    policy = f"the policy {gate.policy_ref}"
    match gate.name:
        case GateName.PAUSE:
            return f"somebody must resume the queue of {queue}"
        case GateName.WINDOW if gate.until is None:
            return f"somebody must change {policy}: none of its windows opens"
        case GateName.WINDOW:
            return f"{policy} opens at {moment(gate.until)}"
        case GateName.RATE_LIMIT:
            return _rate_remedy(gate, policy)
        case _:
            return _end_of(gate, f"hold a slot of {slots_of}", f"the limit of {policy}")


def _rate_remedy(gate: Gate, policy: str) -> str:
    if gate.until is not None:
        return f"the rate of {policy} lets the next one start at {moment(gate.until)}"
    return f"one that was admitted must begin, so that the rate of {policy} counts its time: {_named(gate.holders)}"


def turn_obstacle(ahead: int | None, of: str, giver: str) -> Obstacle:
    """`of` completes "3 others …", `giver` "… gives it …" for one that has nobody before it."""
    if ahead == 0:
        text = f"nothing is in its way: {giver} in the next pass"
        return Obstacle(Gate(name=GateName.TURN, free=0, text=text), f"{giver} in the next pass")
    others = _others(ahead)
    text = f"{others} {of} before it"
    return Obstacle(Gate(name=GateName.TURN, free=0, text=text), f"{others} {of} before it")


def cap_obstacle(gate: Gate) -> Obstacle:
    return Obstacle(gate, _end_of(gate, "workers have", "max_concurrent_executions"))


def nobody_obstacle(gate: Gate, demand: Demand) -> Obstacle:
    return Obstacle(gate, f"{described(demand)} must come")


def full_obstacle(gate: Gate, demand: Demand) -> Obstacle:
    if gate.limit == 0:
        return Obstacle(gate, f"{described(demand)} must come, or get room for more than 0")
    remedy = _end_of(gate, "such workers have", "their capacity")
    chance = f"; or one that is set aside gets another chance at {moment(gate.until)}"
    return Obstacle(
        gate, f"{described(demand)} must get free: {remedy}{chance if gate.until else ''}"
    )


def nobody_text(demand: Demand, present: Sequence[Worker]) -> str:
    """Which of its needs nobody meets."""
    why = lacking(demand, present)
    told = f"{len(present)} active; {why}" if why else f"{len(present)} active"
    return f"{described(demand)} is not there ({told})"


def able_text(workers: int, load: int, capacity: int) -> str:
    return f"{_counted(workers)} can run it, with {load} of at most {capacity}"


def away_text(count: int) -> str:
    """Of workers that are silent, or do not answer, and have not been given up."""
    if count == 0:
        return ""
    return f"; {count} of them {'is' if count == 1 else 'are'} not heard of and must come back, or be given up"


def aside_text(demand: Demand, back: Sequence[datetime], out_of: int) -> str:
    """`back` are the times until which workers are set aside, out of all that can run it."""
    if not back:
        return ""
    until = moment(back[0])
    if len(back) == out_of:
        return f"; all that can are set aside for {demand.action_ref} (the first until {until}), and get it all the same"
    verb = "is" if len(back) == 1 else "are"
    first = "" if len(back) == 1 else "the first "
    return (
        f"; {_counted(len(back))} {verb} set aside for {demand.action_ref} ({first}until {until})"
    )


def described(demand: Demand) -> str:
    """The worker that it needs."""
    wanted = looked_for(demand)
    return f"a worker with {' and '.join(wanted)}" if wanted else "a worker"


def next_step(obstacles: Sequence[Obstacle], ahead: int | None) -> str | None:
    """What must happen first; then those who are ahead have their turn."""
    if not obstacles:
        return None
    first = obstacles[0]
    if ahead == 0 or first.gate.name is GateName.TURN:
        return first.remedy
    verb = "goes" if ahead == 1 else "go"
    return f"{first.remedy}; {_others(ahead)} {verb} before it"


def moment(at: datetime | None) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z") if at else ""


def _end_of(gate: Gate, hold: str, limited_by: str) -> str:
    """How many of the holders must end before one more fits."""
    limit, free = gate.limit or 0, gate.free or 0
    if limit == 0:
        return f"somebody must raise {limited_by}, which is 0"
    count, needed = limit - free, 1 - free
    if count == 1:
        return f"the one execution that {_singular(hold)} must end: {_named(gate.holders)}"
    word = "one" if needed == 1 else str(needed)
    return f"{word} of the {count} executions that {hold} must end: {_named(gate.holders)}"


def _singular(hold: str) -> str:
    """For one: "hold a slot" is "holds a slot"; what workers have, they have in any number."""
    return hold.replace("hold ", "holds ", 1)


def _named(holders: Sequence[ExecutionId]) -> str:
    ids = [str(each) for each in holders[:_NAMED]]
    return ", ".join([*ids, "…"] if len(holders) > _NAMED else ids)


def _counted(workers: int) -> str:
    return "1 worker" if workers == 1 else f"{workers} workers"


def _others(ahead: int | None) -> str:
    if ahead is None:
        return f"more than {MOST} others"
    return "one other" if ahead == 1 else f"{ahead} others"

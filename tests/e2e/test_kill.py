"""kill -9 of everything at once, with work waiting and work running; then a start on the same data."""

import signal
from pathlib import Path

import attune
from harness.waiting import wait_until
from tests.e2e.installation import Installation

ENDED = {"completed", "failed", "timeout", "cancelled", "abandoned"}


def limited(folder: Path) -> Path:
    files = {
        "pack.yaml": "ref: held\nlabel: Held\nversion: 1.0.0\n",
        "actions/work.yaml": (
            "ref: held.work\nlabel: Work\nrunner_type: shell\nentry_point: work.sh\n"
            "parameters:\n  hold: {type: boolean, default: false}\n"
        ),
        # It runs on only where it is not held, so that exactly ten run when the process is killed.
        "actions/work.sh": 'read -r line\ncase "$line" in *true*) exec sleep 300 ;; esac\n',
        "policies/work.yaml": (
            "ref: held.work_limit\nname: Ten at a time\naction_ref: held.work\n"
            "concurrency: {limit: 10, method: enqueue}\n"
        ),
    }
    for name, text in files.items():
        place = folder / "held" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return folder / "held"


def test_after_kill_9_everything_that_was_accepted_ends_and_what_waited_keeps_its_order(
    tmp_path: Path,
) -> None:
    with Installation(tmp_path / "data") as before:
        before.up("--no-demo")
        client = before.client()
        client.packs.upload(limited(tmp_path))
        running = [client.executions.execute("held.work", {"hold": True}) for _ in range(10)]
        held = {each.id for each in running}

        def all_running() -> bool:
            found = client.executions.list(action_ref="held.work", status="running").items
            return {each.id for each in found} == held

        wait_until(all_running, timeout=60)
        waiting = client.executions.execute_many([{"action_ref": "held.work"}] * 200)
        assert all(each.status == "requested" for each in waiting)
        before.processes["up"].signal(signal.SIGKILL)
    with Installation(tmp_path / "data") as after:
        after.up("--no-demo")
        client = after.client()
        ids = [each.id for each in waiting]
        _wait_for_all(client, held | set(ids))
        ended = {each.id: each for each in client.executions.iterate(action_ref="held.work")}
        assert {ended[each].status for each in held} == {"abandoned"}
        assert {ended[each].status for each in ids} == {"completed"}
        starts = [ended[each].started_at or "" for each in ids]
        assert starts == sorted(starts)


def _wait_for_all(client: attune.Client, ids: set[int]) -> None:
    def over() -> bool:
        found = client.executions.iterate(action_ref="held.work")
        return ids <= {each.id for each in found if each.status in ENDED}

    wait_until(over, timeout=120, interval=0.5)

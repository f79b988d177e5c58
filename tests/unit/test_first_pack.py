"""The pack of the README and of the guide is one that loads and runs as they say."""

import json
import re
import subprocess
import sys
from pathlib import Path

from attune.expressions.conditions import compile_condition
from attune.expressions.templates import compile_template
from tests.unit.catalog.packs import parsed

ROOT = Path(__file__).parents[2]
FILE = re.compile(r"^cat > disk/(\S+) <<'END'\n(.*?)^END$", re.MULTILINE | re.DOTALL)


def files_of(document: str) -> dict[str, str]:
    return dict(FILE.findall((ROOT / document).read_text()))


README = files_of("README.md")
GUIDE = files_of("docs/guides/first-pack.md")


def test_the_readme_s_three_files_are_a_pack_and_those_of_the_guide() -> None:
    assert set(README) == {"pack.yaml", "actions/check.yaml", "actions/check.py"}
    assert GUIDE.items() >= README.items()
    pack = parsed(README)
    assert ([action.ref for action in pack.actions], pack.warnings) == (["disk.check"], ())


def test_the_guide_s_pack_has_what_the_guide_adds() -> None:
    pack = parsed(GUIDE)
    assert pack.warnings == ()
    [trigger], [rule], [policy] = pack.triggers, pack.rules, pack.policies
    assert (rule.trigger_ref, rule.action_ref) == (trigger.ref, "disk.check")
    assert (policy.scope_ref, policy.concurrency_limit) == ("disk.check", 1)


def test_its_rule_answers_one_of_the_guide_s_two_events() -> None:
    [rule] = parsed(GUIDE).rules
    condition = compile_condition(rule.conditions, "conditions")
    scopes = [{"event": {"payload": {"path": path}}} for path in ("/tmp", "here")]
    assert [condition.check(scope).matched for scope in scopes] == [True, False]
    rendered = compile_template(rule.action_params, "action_params").render(scopes[0], strict=True)
    assert rendered.value == {"path": "/tmp", "most": 80}


def test_its_script_tells_how_full_a_disk_is_and_fails_above_the_most() -> None:
    good = run(100)
    assert good.returncode == 0
    assert json.loads(good.stdout)["path"] == "/"
    bad = run(-1)
    assert (bad.returncode, bad.stderr.endswith("% full.\n")) == (1, True)


def run(most: float) -> subprocess.CompletedProcess[str]:
    given = json.dumps({"path": "/", "most": most})
    command = [sys.executable, "-c", README["actions/check.py"]]
    return subprocess.run(command, input=given, capture_output=True, text=True, check=False)

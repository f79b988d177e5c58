"""Every policy of the guide is one that loads, and the guide names every field that there is."""

import re
from pathlib import Path

import pytest

from attune.catalog.policy_gates import CONCURRENCY, GATES, METHODS, QUOTA_TYPES
from tests.unit.catalog.packs import SHOP, parsed

GUIDE = (Path(__file__).parents[2] / "docs/guides/policies.md").read_text()
POLICIES = re.findall(r"^```yaml\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("text", POLICIES, ids=lambda text: text.partition("\n")[0])
def test_every_policy_of_the_guide_loads_without_a_warning(text: str) -> None:
    pack = parsed({**SHOP, "policies/p.yaml": text})
    assert (len(pack.policies), pack.warnings) == (1, ())


@pytest.mark.parametrize("word", [*GATES, *CONCURRENCY.fields, *METHODS, *QUOTA_TYPES])
def test_the_guide_shows_every_word_that_a_policy_may_use(word: str) -> None:
    assert re.search(rf"\b{word}\b", "".join(POLICIES)) or f"`{word}`" in GUIDE

"""Finding an action by words of its ref, label or description."""

from typing import Annotated, Final

from fastapi import APIRouter, Query

from attune.api.access import ACTIONS, PACKS, readable, readable_page
from attune.api.action_models import ActionSearchHit
from attune.api.authentication import RightsOf
from attune.api.bodies import router
from attune.api.description import refusals
from attune.api.pages import Page, PageOf, Wanted, page_of
from attune.api.parts import ApiParts
from attune.catalog import rows
from attune.catalog.model import Action
from attune.identities.rights import Rights
from attune.identities.row_conditions import Condition
from attune.store.database import Tx

_MOST_WORDS: Final = 10
_MOST_PACKS: Final = 100
_TEXTS: Final = "lower(ref || ' ' || label || ' ' || coalesce(description, ''))"

Words = Annotated[str, Query(max_length=500, description="All of these words must occur.")]
PackRefs = Annotated[
    list[str] | None, Query(description="Only of these packs: refs, comma-separated or repeated.")
]


def action_search_routes(parts: ApiParts) -> APIRouter:
    routes = router("/api/v1/actions", "actions")

    @routes.get("/search", summary="Search actions", responses=refusals(404))
    async def search(
        rights: RightsOf, wanted: PageOf, q: Words = "", packs: PackRefs = None
    ) -> Page[ActionSearchHit]:
        named = [ref.strip() for refs in packs or () for ref in refs.split(",")]
        refs = list(dict.fromkeys(ref for ref in named if ref))[:_MOST_PACKS]
        found = await parts.database.read(_search, rights, wanted, q, refs)
        return page_of(wanted, map(_hit, found.items), total=found.total)

    return routes


async def _search(
    tx: Tx, rights: Rights, wanted: Wanted, text: str, refs: list[str]
) -> rows.Page[Action]:
    conditions = [_occurs(place, word) for place, word in enumerate(text.split()[:_MOST_WORDS])]
    if refs:
        packs = [(await readable(tx, PACKS, rights, ref)).id for ref in refs]
        conditions.append(Condition("pack = ANY(:of_packs::bigint[])", {"of_packs": packs}))
    return await readable_page(tx, ACTIONS, rights, wanted, *conditions)


def _occurs(place: int, word: str) -> Condition:
    """What means something to LIKE is escaped: people look for `a_b`, not for a pattern."""
    plain = word.lower().replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return Condition(f"{_TEXTS} LIKE :word_{place} ESCAPE '!'", {f"word_{place}": f"%{plain}%"})


def _hit(action: Action) -> ActionSearchHit:
    return ActionSearchHit(
        ref=action.ref,
        pack_ref=action.pack_ref,
        label=action.label,
        description=action.description,
        runtime_ref=action.runtime_ref,
        accesses_mcp=action.accesses_mcp,
        is_workflow=action.workflow_def is not None,
    )

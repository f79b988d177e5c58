"""Whether a caller may install the pack that was just read.

Whoever installs a pack gives its actions and rules what their files name, and to everyone who holds its
permission sets what these say: none of it may be more than he has himself. A policy over more than the pack's own
binds people who know nothing of it, so it takes an administrator.
"""

from attune.api.access import PACKS, readable
from attune.catalog import rows
from attune.catalog.packs import Approval
from attune.catalog.refs import pack_part
from attune.catalog.sources.model import PackSource
from attune.identities.constraints import Target
from attune.identities.grant_book import GrantBook
from attune.identities.model import ADMINISTRATOR
from attune.identities.rights import Rights, read_grants, refusal
from attune.kernel.errors import Forbidden, NotFound
from attune.store.database import Database, Tx


def approval_by(rights: Rights, grants: GrantBook, database: Database) -> Approval:
    async def approve(source: PackSource) -> None:
        if rights.is_everything:
            return
        rights.require("packs", "install", Target(ref=source.ref, pack_ref=source.ref))
        await database.read(_check_not_hidden, rights, source.ref)
        await _check_gifts(rights, grants, source)
        _check_policies(source)

    return approve


async def _check_gifts(rights: Rights, grants: GrantBook, source: PackSource) -> None:
    brought = {each.ref for each in source.permission_sets}
    own = read_grants(grant for each in source.permission_sets for grant in each.grants)
    await grants.check_gift(rights, (), "permission_sets", own)
    for action in source.actions:
        refs = set(action.default_execution_permission_set_refs) - brought
        await grants.check_gift(
            rights, refs, f"{action.file}: default_execution_permission_set_refs"
        )
    for rule in source.rules:
        refs = set(rule.permission_set_refs or ()) - brought
        await grants.check_gift(rights, refs, f"{rule.file}: permission_set_refs")


def _check_policies(source: PackSource) -> None:
    for policy in source.policies:
        if policy.scope_ref is None or pack_part(policy.scope_ref) != source.ref:
            over = policy.scope_ref or "everything"
            raise Forbidden(
                f"{policy.file}: a policy over {over}, which is not of the pack, needs the permission set"
                f" {ADMINISTRATOR}, which you do not have.",
                permission=ADMINISTRATOR,
            )


async def _check_not_hidden(tx: Tx, rights: Rights, ref: str) -> None:
    """A pack that the caller may not see is another's, and not to be overwritten."""
    if await rows.find(tx, rows.PACKS, ref) is None:
        return
    try:
        await readable(tx, PACKS, rights, ref)
    except NotFound as hidden:
        raise refusal("packs", "install", ref) from hidden

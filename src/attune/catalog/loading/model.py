"""What loading a pack did."""

from enum import Enum

import msgspec

from attune.kernel.ids import PackId


class Mode(Enum):
    """What loading does about a pack that is there already."""

    NEW = "refuse it"
    FORCE = "update it"
    CHANGED = "update it if its files differ"


class Changes(msgspec.Struct, frozen=True):
    """The refs of one kind, by what happened to each."""

    created: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()

    @property
    def any(self) -> bool:
        return bool(self.created or self.updated or self.removed)


class LoadSummary(msgspec.Struct, frozen=True, kw_only=True):
    """`pack` tells of the pack's own row. `warnings` is what its author should know."""

    pack_id: PackId
    pack_ref: str
    version: str
    pack: Changes = Changes()
    permission_sets: Changes = Changes()
    runtimes: Changes = Changes()
    triggers: Changes = Changes()
    actions: Changes = Changes()
    policies: Changes = Changes()
    rules: Changes = Changes()
    warnings: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        parts = (self.pack, self.permission_sets, self.runtimes, self.triggers, self.actions)
        return any(part.any for part in (*parts, self.policies, self.rules))

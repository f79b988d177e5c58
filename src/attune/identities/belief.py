"""What identities were last seen to hold: believed until the step that needs it has asked again.

A look of its own is a round trip to the database; a question along with the statements of a step is none.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from attune.identities.assignments import ask_held, held_from
from attune.identities.model import Caller, Held
from attune.kernel.ids import IdentityId
from attune.store.database import Tx

_KEPT_AT_MOST: Final = 4096


@dataclass(frozen=True, slots=True)
class Belief:
    """A caller by what he was last seen to hold. A step that acts for him asks, and looks before it writes."""

    caller: Caller
    held: Held

    async def ask(self, tx: Tx) -> Callable[[], bool]:
        """Whether it is true in this transaction, to be called when what was put off has settled."""
        told = await ask_held(tx, self.caller.identity)
        return lambda: held_from(told.rows) == self.held


class LastSeen:
    def __init__(self) -> None:
        self._held: OrderedDict[IdentityId, Held] = OrderedDict()

    def get(self, identity: IdentityId) -> Held | None:
        return self._held.get(identity)

    def note(self, identity: IdentityId, held: Held | None) -> None:
        """None for one that is gone or frozen."""
        self._held.pop(identity, None)
        if held is not None:
            self._held[identity] = held
            if len(self._held) > _KEPT_AT_MOST:
                self._held.popitem(last=False)

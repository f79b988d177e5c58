"""Tells other processes what a request has changed, once it is committed, without waiting for the broker."""

from typing import Protocol

from attune.bus.announcer import Announcer
from attune.catalog.model import Pack, Rule
from attune.kernel.envelope import Stamp
from attune.kernel.ids import PackId
from attune.kernel.messages import MessageType, PackChanged, RuleChanged
from attune.store.database import Tx


class Notices(Protocol):
    """Called inside the transaction of the change; nothing is told that was not committed."""

    def rule(self, tx: Tx, kind: MessageType, rule: Rule) -> None: ...

    def pack(self, tx: Tx, kind: MessageType, pack: Pack) -> None: ...

    def pack_loaded(self, kind: MessageType, pack: PackId, ref: str) -> None:
        """The one that is told after its own commit, because a pack's files are loaded elsewhere."""


class BusNotices:
    def __init__(self, announcer: Announcer, stamp: Stamp) -> None:
        self._announcer = announcer
        self._stamp = stamp

    def rule(self, tx: Tx, kind: MessageType, rule: Rule) -> None:
        changed = RuleChanged(rule_id=rule.id, rule_ref=rule.ref)
        tx.on_commit(lambda: self._announcer.announce(self._stamp.envelope(kind, changed)))

    def pack(self, tx: Tx, kind: MessageType, pack: Pack) -> None:
        tx.on_commit(lambda: self.pack_loaded(kind, pack.id, pack.ref))

    def pack_loaded(self, kind: MessageType, pack: PackId, ref: str) -> None:
        changed = PackChanged(pack_id=pack, pack_ref=ref)
        self._announcer.announce(self._stamp.envelope(kind, changed))

"""Ids as distinct types, and the source of the random ones.

Row ids come from the database. Message ids and tokens come from `Ids`, so that a seed repeats a run.
"""

import random
import secrets
from typing import NewType
from uuid import UUID

IdentityId = NewType("IdentityId", int)
PermissionSetId = NewType("PermissionSetId", int)
PermissionAssignmentId = NewType("PermissionAssignmentId", int)
PackId = NewType("PackId", int)
RuntimeId = NewType("RuntimeId", int)
ActionId = NewType("ActionId", int)
ActionDefinitionId = NewType("ActionDefinitionId", int)
TriggerId = NewType("TriggerId", int)
RuleId = NewType("RuleId", int)
PolicyId = NewType("PolicyId", int)
EventId = NewType("EventId", int)
EnforcementId = NewType("EnforcementId", int)
ExecutionId = NewType("ExecutionId", int)
InquiryId = NewType("InquiryId", int)
WorkerId = NewType("WorkerId", int)
LaneId = NewType("LaneId", int)
PoolId = NewType("PoolId", int)
DeadLetterId = NewType("DeadLetterId", int)
MessageId = NewType("MessageId", UUID)


class Ids:
    """Random ids from one source, which a test replaces by a seeded one.

    The default source is the operating system's, because tokens must not be guessable.
    """

    def __init__(self, source: random.Random | None = None) -> None:
        self._source = source or secrets.SystemRandom()

    def message_id(self) -> MessageId:
        return MessageId(UUID(int=self._source.getrandbits(128), version=4))

    def token(self, prefix: str = "", size: int = 32) -> str:
        """A secret of `size` random bytes, written in hexadecimal after its prefix."""
        return prefix + self._source.randbytes(size).hex()

"""What binds everybody is for administrators alone."""

from attune.identities.model import ADMINISTRATOR
from attune.identities.rights import Rights
from attune.kernel.errors import Forbidden


def require_administrator(rights: Rights, what: str) -> None:
    """`what` begins the sentence, as "Settings are changed"."""
    if not rights.is_everything:
        raise Forbidden(
            f"{what} by administrators: this needs the permission set {ADMINISTRATOR},"
            " which you do not have.",
            permission=ADMINISTRATOR,
        )

"""The words of permissions: what a grant may name. Whether one holds is decided where a request is served."""

from typing import Final

RESOURCES: Final = (
    "packs", "actions", "queues", "rules", "triggers", "executions", "events", "enforcements",
    "inquiries", "keys", "artifacts", "runtimes", "workers", "retention", "identities",
    "permissions", "audit_log",
)  # fmt: skip
ACTIONS: Final = (
    "read", "create", "install", "configure", "update", "delete", "execute", "cancel", "respond",
    "manage", "decrypt",
)  # fmt: skip
CONSTRAINTS: Final = (
    "pack_refs", "owner", "owner_types", "owner_refs", "visibility", "execution_scope", "refs",
    "ids", "encrypted", "attributes",
)  # fmt: skip

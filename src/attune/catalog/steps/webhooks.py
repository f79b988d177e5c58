"""The webhook of a trigger: its key, which is its address, and who may call it how.

`WebhookTarget` alone holds the configuration, because it has the secret; rows and answers do not.
"""

import ipaddress
from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec

from attune.catalog import rows
from attune.catalog.model import Trigger
from attune.catalog.rows import TRIGGERS
from attune.kernel.errors import InvalidInput
from attune.kernel.ids import Ids, TriggerId
from attune.store.database import Tx

KEY_PREFIX: Final = "wh_"

Positive = Annotated[int, msgspec.Meta(ge=1)]


class Hmac(msgspec.Struct, frozen=True):
    enabled: bool = False
    secret: str | None = None
    algorithm: Literal["sha256", "sha512", "sha1"] = "sha256"


class RateLimit(msgspec.Struct, frozen=True):
    enabled: bool = False
    requests: Positive = 60
    window_seconds: Positive = 60


class IpWhitelist(msgspec.Struct, frozen=True):
    enabled: bool = False
    ips: list[str] = []


class WebhookConfig(msgspec.Struct, frozen=True):
    """A part that is absent does not apply."""

    hmac: Hmac | None = None
    rate_limit: RateLimit | None = None
    ip_whitelist: IpWhitelist | None = None
    payload_size_limit_kb: Positive | None = None


class WebhookTarget(msgspec.Struct, frozen=True):
    """What the receiver of calls needs to know of a trigger."""

    id: TriggerId
    ref: str
    enabled: bool
    webhook_config: WebhookConfig | None


def new_key(ids: Ids) -> str:
    return ids.token(KEY_PREFIX, 24)


async def enable_webhook(
    tx: Tx, key: str | int, webhook_key: str, now: datetime, config: WebhookConfig | None = None
) -> Trigger:
    """`webhook_key` is a fresh one; a trigger whose webhook is on keeps the key that it has."""
    trigger = await rows.get(tx, TRIGGERS, key)
    changes = {"webhook_enabled": True, "webhook_key": trigger.webhook_key or webhook_key}
    hidden = {} if config is None else {"webhook_config": await _checked(tx, trigger, config)}
    return await rows.change(tx, TRIGGERS, trigger, changes, now, **hidden)


async def configure_webhook(
    tx: Tx, key: str | int, config: WebhookConfig | None, now: datetime
) -> Trigger:
    trigger = await rows.get(tx, TRIGGERS, key)
    checked = None if config is None else await _checked(tx, trigger, config)
    return await rows.change(tx, TRIGGERS, trigger, {}, now, webhook_config=checked)


async def disable_webhook(tx: Tx, key: str | int, now: datetime) -> Trigger:
    """The key is thrown away: its address is gone for good."""
    trigger = await rows.get(tx, TRIGGERS, key)
    off = {"webhook_enabled": False, "webhook_key": None}
    return await rows.change(tx, TRIGGERS, trigger, off, now)


async def regenerate_webhook_key(
    tx: Tx, key: str | int, webhook_key: str, now: datetime
) -> Trigger:
    trigger = await rows.get(tx, TRIGGERS, key)
    if not trigger.webhook_enabled:
        raise InvalidInput(
            f"The webhook of '{trigger.ref}' is not enabled.", field="webhook_enabled"
        )
    return await rows.change(tx, TRIGGERS, trigger, {"webhook_key": webhook_key}, now)


async def webhook_target(tx: Tx, webhook_key: str) -> WebhookTarget | None:
    """Whom a call is for; None for a key that nobody has, or no longer."""
    return await tx.first(
        WebhookTarget,
        "SELECT id, ref, enabled, webhook_config FROM trigger"
        " WHERE webhook_key = :key AND webhook_enabled",
        key=webhook_key,
    )


async def _checked(tx: Tx, trigger: Trigger, config: WebhookConfig) -> WebhookConfig:
    """Clients never see the secret, so a configuration that comes back without it keeps it."""
    _check_addresses(config)
    if config.hmac is None or config.hmac.secret:
        return config
    before = await tx.one(
        WebhookTarget,
        "SELECT id, ref, enabled, webhook_config FROM trigger WHERE id = :id",
        id=trigger.id,
    )
    kept = before.webhook_config and before.webhook_config.hmac
    if config.hmac.enabled and not (kept and kept.secret):
        field = "webhook_config.hmac.secret"
        raise InvalidInput(f"{field}: is required", field=field)
    secret = kept.secret if kept else None
    return msgspec.structs.replace(config, hmac=msgspec.structs.replace(config.hmac, secret=secret))


def _check_addresses(config: WebhookConfig) -> None:
    for address in config.ip_whitelist.ips if config.ip_whitelist else ():
        try:
            ipaddress.ip_network(address, strict=False)
        except ValueError as error:
            field = "webhook_config.ip_whitelist.ips"
            raise InvalidInput(f"{field}: {error}", field=field) from error

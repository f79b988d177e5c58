"""A webhook's key is its address: made, kept, changed and thrown away; its secret goes in and never out."""

import random

import msgspec
import pytest

from attune.catalog.rows import TRIGGERS
from attune.catalog.steps.webhooks import (
    Hmac,
    IpWhitelist,
    RateLimit,
    WebhookConfig,
    configure_webhook,
    disable_webhook,
    enable_webhook,
    new_key,
    regenerate_webhook_key,
    webhook_target,
)
from attune.kernel.errors import InvalidInput, NotFound
from attune.kernel.ids import Ids
from attune.store.database import Database
from tests.contract.catalog.world import LATER, NOW, get, load, load_core


@pytest.fixture(autouse=True)
async def shop(database: Database) -> None:
    await load_core(database)
    await load(database)


async def test_the_life_of_a_key(database: Database) -> None:
    key = new_key(Ids(random.Random(1)))
    assert key.startswith("wh_")
    enabled = await database.run(enable_webhook, "shop.ordered", key, NOW)
    assert (enabled.webhook_enabled, enabled.webhook_key) == (True, key)
    again = await database.run(enable_webhook, "shop.ordered", "wh_other", LATER)
    assert again == enabled
    target = await database.read(webhook_target, key)
    assert target is not None
    assert (target.ref, target.enabled, target.webhook_config) == ("shop.ordered", True, None)
    await database.run(regenerate_webhook_key, "shop.ordered", "wh_new", LATER)
    assert await database.read(webhook_target, key) is None
    assert await database.read(webhook_target, "wh_new") is not None
    disabled = await database.run(disable_webhook, "shop.ordered", LATER)
    assert (disabled.webhook_enabled, disabled.webhook_key) == (False, None)
    assert await database.read(webhook_target, "wh_new") is None
    assert await get(database, TRIGGERS, "shop.ordered") == disabled


async def test_what_cannot_be(database: Database) -> None:
    with pytest.raises(InvalidInput, match="The webhook of 'shop.ordered' is not enabled"):
        await database.run(regenerate_webhook_key, "shop.ordered", "wh_x", NOW)
    with pytest.raises(NotFound):
        await database.run(enable_webhook, "shop.none", "wh_x", NOW)


async def test_f41_the_secret_is_kept_and_never_shown(database: Database) -> None:
    config = WebhookConfig(
        hmac=Hmac(enabled=True, secret="hush"), rate_limit=RateLimit(True, 5, 60)
    )
    shown = await database.run(enable_webhook, "shop.ordered", "wh_k", NOW, config)
    assert b"hush" not in msgspec.json.encode(shown)
    assert b"hush" not in msgspec.json.encode(await get(database, TRIGGERS, "shop.ordered"))
    without = WebhookConfig(hmac=Hmac(enabled=True, algorithm="sha512"), payload_size_limit_kb=9)
    await database.run(configure_webhook, "shop.ordered", without, LATER)
    target = await database.read(webhook_target, "wh_k")
    assert target is not None
    assert target.webhook_config == WebhookConfig(
        hmac=Hmac(enabled=True, secret="hush", algorithm="sha512"), payload_size_limit_kb=9
    )
    await database.run(configure_webhook, "shop.ordered", None, LATER)
    target = await database.read(webhook_target, "wh_k")
    assert target is not None
    assert target.webhook_config is None


async def test_a_bad_configuration_is_refused(database: Database) -> None:
    with pytest.raises(InvalidInput, match=r"webhook_config\.hmac\.secret: is required"):
        await database.run(
            enable_webhook, "shop.ordered", "wh_k", NOW, WebhookConfig(hmac=Hmac(enabled=True))
        )
    addresses = WebhookConfig(ip_whitelist=IpWhitelist(enabled=True, ips=["10.0.0.0/8", "home"]))
    with pytest.raises(InvalidInput, match=r"webhook_config\.ip_whitelist\.ips: 'home'"):
        await database.run(configure_webhook, "shop.ordered", addresses, NOW)

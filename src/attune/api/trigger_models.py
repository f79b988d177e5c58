"""Bodies and answers of /triggers and their webhooks, under the names of the contract."""

from datetime import datetime
from typing import Literal, Self

import pydantic
from pydantic import Field

from attune.api.fields import Filled, JsonObject, Ref, Schema, TextPatch
from attune.catalog.model import Trigger

WEBHOOKS_PATH = "/api/v1/webhooks"


class TriggerSummary(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(from_attributes=True)

    id: int
    ref: str
    pack_ref: str | None
    label: str
    description: str | None
    enabled: bool
    webhook_enabled: bool
    tags: list[str]
    created: datetime
    updated: datetime


class TriggerResponse(TriggerSummary):
    """`webhook_url` is a path, without a host."""

    pack: int | None
    is_adhoc: bool
    param_schema: JsonObject | None
    out_schema: JsonObject | None
    sensor: int | None = None
    sensor_ref: str | None = None
    webhook_key: str | None
    webhook_url: str | None = None

    @classmethod
    def of(cls, trigger: Trigger) -> Self:
        shown = cls.model_validate(trigger)
        if trigger.webhook_enabled and trigger.webhook_key:
            shown.webhook_url = f"{WEBHOOKS_PATH}/{trigger.webhook_key}"
        else:
            shown.webhook_key = None
        return shown


class HmacConfig(pydantic.BaseModel):
    """Whoever leaves the secret out keeps the one that is there."""

    enabled: bool = False
    secret: str | None = None
    algorithm: Literal["sha256", "sha512", "sha1"] = "sha256"


class RateLimitConfig(pydantic.BaseModel):
    enabled: bool = False
    requests: int = Field(default=60, ge=1)
    window_seconds: int = Field(default=60, ge=1)


class IpWhitelistConfig(pydantic.BaseModel):
    enabled: bool = False
    ips: list[str] = Field(default=[], description="Addresses and CIDR ranges.")


class WebhookConfigBody(pydantic.BaseModel):
    """A part that is absent does not apply."""

    hmac: HmacConfig | None = None
    rate_limit: RateLimitConfig | None = None
    ip_whitelist: IpWhitelistConfig | None = None
    payload_size_limit_kb: int | None = Field(default=None, ge=1)


class EnableWebhookRequest(pydantic.BaseModel):
    webhook_config: WebhookConfigBody | None = None


class CreateTriggerRequest(pydantic.BaseModel):
    ref: Ref
    label: Filled
    pack_ref: Ref | None = None
    description: str | None = None
    enabled: bool | None = None
    param_schema: Schema | None = None
    out_schema: Schema | None = None
    tags: list[str] | None = None


class UpdateTriggerRequest(pydantic.BaseModel):
    label: Filled | None = None
    description: TextPatch | None = None
    enabled: bool | None = None
    param_schema: Schema | None = None
    out_schema: Schema | None = None
    tags: list[str] | None = None
    webhook_config: WebhookConfigBody | None = None

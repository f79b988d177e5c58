"""What a webhook is sent and what it answers, under the names of the contract."""

from datetime import datetime
from typing import Any

import pydantic
from pydantic import Field

from attune.api.fields import JsonObject


class WebhookReceiverRequest(pydantic.BaseModel):
    """What is beside `payload` is kept as the event's `config`."""

    payload: Any = Field(description="Any JSON: the event's payload.")
    headers: JsonObject | None = None
    source_ip: str | None = None
    user_agent: str | None = None


class WebhookReceiverResponse(pydantic.BaseModel):
    event_id: int
    trigger_ref: str
    received_at: datetime
    message: str = "Webhook received successfully"

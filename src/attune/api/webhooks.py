"""/webhooks/{key}: a call becomes an event.

It needs no token: the key in the address is the secret, and the trigger's configuration may ask for more. The body
is JSON whatever its media type says, because many senders say nothing.
"""

import json
from typing import Any, Final

import pydantic
from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError

from attune.api.answers import Answer
from attune.api.bodies import decoded, router
from attune.api.description import open_refusals
from attune.api.errors import WrongRequest
from attune.api.parts import ApiParts
from attune.api.webhook_checks import (
    CallRates,
    caller_address,
    check_address,
    check_signature,
    check_size,
)
from attune.api.webhook_models import WebhookReceiverRequest, WebhookReceiverResponse
from attune.catalog.steps.webhooks import WebhookConfig, WebhookTarget, webhook_target
from attune.kernel.errors import NotFound
from attune.pipeline.events.model import NewEvent

SOURCE: Final = "webhook"

_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": WebhookReceiverRequest.model_json_schema()}},
    },
    "security": [],
}


def webhook_receiver_routes(parts: ApiParts) -> APIRouter:
    routes = router("/api/v1/webhooks", "webhooks")
    rates = CallRates()

    @routes.post(
        "/{webhook_key}",
        summary="Call a trigger's webhook",
        responses=open_refusals(400, 401, 403, 404, 413, 422, 429, 503),
        openapi_extra=_BODY,
    )
    async def receive(webhook_key: str, request: Request) -> Answer[WebhookReceiverResponse]:
        raw = await request.body()
        body = _body(raw)
        target = await parts.database.glance(webhook_target, webhook_key)
        if target is None or not target.enabled:
            raise NotFound("There is no such webhook.")
        _check(target, webhook_key, request, raw, rates, parts.clock.monotonic())
        [event] = await parts.flow.record_events([_event(target, body)])
        received = WebhookReceiverResponse(
            event_id=event.id, trigger_ref=event.trigger_ref, received_at=event.created
        )
        return Answer(data=received)

    return routes


def _check(
    target: WebhookTarget, key: str, request: Request, raw: bytes, rates: CallRates, now: float
) -> None:
    """In the order of the contract: size, address, rate, signature."""
    config = target.webhook_config or WebhookConfig()
    peer = request.client.host if request.client else None
    address = caller_address(request.headers, peer)
    check_size(raw, config.payload_size_limit_kb)
    check_address(address, config.ip_whitelist)
    rates.check(key, address, config.rate_limit, now)
    check_signature(request.headers, raw, config.hmac)


def _body(raw: bytes) -> WebhookReceiverRequest:
    try:
        return WebhookReceiverRequest.model_validate(decoded(raw))
    except json.JSONDecodeError as error:
        place = f"{error.msg}, at character {error.pos}"
        raise WrongRequest(f"The body is not valid JSON: {place}.") from error
    except pydantic.ValidationError as error:
        problems = [{**each, "loc": ("body", *each["loc"])} for each in error.errors()]
        raise RequestValidationError(problems) from error


def _event(target: WebhookTarget, body: WebhookReceiverRequest) -> NewEvent:
    beside = body.model_dump(include={"headers", "source_ip", "user_agent"}, exclude_none=True)
    return NewEvent(
        trigger_ref=target.ref,
        payload={} if body.payload is None else body.payload,
        config=beside or None,
        source_ref=SOURCE,
    )

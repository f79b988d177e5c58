"""The application: routes, and how errors are shown."""

from typing import Any

from fastapi import APIRouter, FastAPI

from attune import __version__
from attune.api.action_queues import action_queue_routes
from attune.api.action_search import action_search_routes
from attune.api.actions import action_routes
from attune.api.admin import admin_routes
from attune.api.admin_settings import settings_routes
from attune.api.auth import auth_routes
from attune.api.authentication import install_authentication
from attune.api.body_limit import JSON_BYTES, BodyLimit
from attune.api.dead_letters import dead_letter_routes
from attune.api.decisions import decision_routes
from attune.api.description import TAGS, with_error_shape
from attune.api.docs import docs_routes
from attune.api.enforcements import enforcement_routes
from attune.api.errors import install_error_handlers
from attune.api.events import event_routes
from attune.api.execution_requests import execution_request_routes
from attune.api.execution_streams import execution_stream_routes
from attune.api.execution_views import ExecutionViews
from attune.api.executions import execution_routes
from attune.api.health import health_routes
from attune.api.log_streams import log_stream_routes
from attune.api.metrics import metrics_routes
from attune.api.pack_installs import UPLOAD_BODY_BYTES, UPLOAD_PATH, pack_install_routes
from attune.api.pack_workflows import pack_workflow_routes
from attune.api.packs import pack_routes
from attune.api.parts import ApiParts
from attune.api.policies import policy_routes
from attune.api.queue_stats import queue_stats_routes
from attune.api.route_index import install_route_index
from attune.api.rule_lists import rule_list_routes
from attune.api.rules import rule_routes
from attune.api.runtimes import runtime_routes
from attune.api.triggers import trigger_routes
from attune.api.validation import install_validation_answers
from attune.api.webhook_switches import webhook_switch_routes
from attune.api.webhooks import webhook_receiver_routes
from attune.api.why import why_routes
from attune.api.workers import worker_routes


class _Application(FastAPI):
    def openapi(self) -> dict[str, Any]:
        return with_error_shape(super().openapi())


def create_app(parts: ApiParts) -> FastAPI:
    app = _Application(
        title="Attune",
        version=__version__,
        summary="Event-driven automation with order and limits you can prove",
        openapi_tags=TAGS,
        docs_url=None,
        redoc_url=None,
    )
    install_error_handlers(app)
    install_validation_answers(app)
    install_authentication(app, parts.accounts, parts.grants)
    app.add_middleware(BodyLimit, limit_of=_limit_of)
    _include(app, health_routes(parts.health))
    _include(app, auth_routes(parts.accounts))
    _include(app, docs_routes())
    _include_catalog(app, parts)
    _include_happenings(app, parts)
    install_route_index(app)
    return app


def _include(app: FastAPI, routes: APIRouter) -> None:
    """As they are: in a router of their own each of them would be asked twice for every request."""
    app.router.routes += routes.routes


def _include_catalog(app: FastAPI, parts: ApiParts) -> None:
    """Of two paths that fit, the first one serves: fixed words come before a ref."""
    _include(app, pack_install_routes(parts))
    _include(app, pack_routes(parts))
    _include(app, pack_workflow_routes(parts))
    _include(app, action_search_routes(parts))
    _include(app, action_routes(parts))
    _include(app, trigger_routes(parts))
    _include(app, webhook_switch_routes(parts))
    _include(app, rule_list_routes(parts))
    _include(app, rule_routes(parts))
    _include(app, runtime_routes(parts))
    _include(app, policy_routes(parts))


def _include_happenings(app: FastAPI, parts: ApiParts) -> None:
    """What happens. Here, too, fixed words come before an id."""
    views = ExecutionViews(parts.database, parts.flow.definitions)
    _include(app, execution_stream_routes(parts))
    _include(app, execution_request_routes(parts, views))
    _include(app, execution_routes(parts, views))
    _include(app, why_routes(parts))
    _include(app, log_stream_routes(parts))
    _include(app, event_routes(parts))
    _include(app, enforcement_routes(parts))
    _include(app, webhook_receiver_routes(parts))
    _include(app, worker_routes(parts))
    _include(app, queue_stats_routes(parts))
    _include(app, action_queue_routes(parts))
    _include(app, admin_routes(parts))
    _include(app, settings_routes(parts))
    _include(app, decision_routes(parts))
    _include(app, dead_letter_routes(parts))
    _include(app, metrics_routes(parts, with_queue=parts.queue_metrics))


def _limit_of(path: str) -> int:
    return UPLOAD_BODY_BYTES if path == UPLOAD_PATH else JSON_BYTES

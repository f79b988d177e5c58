"""The application: routes, and how errors are shown."""

from fastapi import FastAPI

from attune import __version__
from attune.api.auth import auth_routes
from attune.api.authentication import install_authentication
from attune.api.errors import install_error_handlers
from attune.api.health import Health, health_routes
from attune.api.validation import install_validation_answers
from attune.identities.accounts import Accounts


def create_app(health: Health, accounts: Accounts) -> FastAPI:
    app = FastAPI(
        title="Attune",
        version=__version__,
        summary="Event-driven automation with order and limits you can prove",
    )
    install_error_handlers(app)
    install_validation_answers(app)
    install_authentication(app, accounts)
    app.include_router(health_routes(health))
    app.include_router(auth_routes(accounts))
    return app

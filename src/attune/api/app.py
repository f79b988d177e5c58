"""The application: routes, and how errors are shown."""

from fastapi import FastAPI

from attune import __version__
from attune.api.errors import install_error_handlers
from attune.api.health import Health, health_routes


def create_app(health: Health) -> FastAPI:
    app = FastAPI(
        title="Attune",
        version=__version__,
        summary="Event-driven automation with order and limits you can prove",
    )
    install_error_handlers(app)
    app.include_router(health_routes(health))
    return app

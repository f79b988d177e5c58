"""/docs: the description of the API as a page that needs nothing from anywhere else."""

from pathlib import Path
from typing import Final

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

_PAGE: Final = (Path(__file__).parent / "docs.html").read_text(encoding="utf-8")


def docs_routes() -> APIRouter:
    routes = APIRouter()

    @routes.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(_PAGE)

    return routes

"""The description of the API, and the page that shows it."""

import json
import re

from tests.contract.api.world import World


async def test_every_operation_has_a_tag_a_summary_and_its_refusals(world: World) -> None:
    described = world.app.openapi()
    known = {tag["name"] for tag in described["tags"]}
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            assert operation["summary"], (method, path)
            assert set(operation["tags"]) <= known, (method, path)
            if path.startswith("/api/v1") and path != "/api/v1/webhooks/{webhook_key}":
                assert operation["security"] == [{"bearer": []}], (method, path)
                assert {"401", "422"} <= set(operation["responses"]), (method, path)
                assert ("404" in operation["responses"]) or "{" not in path.replace("{status}", ""), (
                    method, path,
                )  # fmt: skip


async def test_a_list_is_described_with_its_page(world: World) -> None:
    listed = world.app.openapi()["paths"]["/api/v1/packs"]["get"]
    names = {parameter["name"] for parameter in listed["parameters"]}
    assert names == {"page", "page_size", "per_page", "limit"}


async def test_the_page_of_the_description_needs_no_other_server(world: World) -> None:
    page = await world.nobody.get("/docs")
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    text = page.raw.decode()
    assert 'fetch("openapi.json")' in text
    assert not re.findall(r"""(?:src|href)\s*=\s*["'](?:https?:)?//""", text)
    assert (await world.nobody.get("/openapi.json")).body["info"]["title"] == "Attune"


async def test_every_shape_that_the_description_refers_to_is_in_it(world: World) -> None:
    described = world.app.openapi()
    text = json.dumps(described)
    referred = set(re.findall(r'"#/components/schemas/([^"]+)"', text))
    assert "ErrorAnswer" in referred
    assert referred <= described["components"]["schemas"].keys()


async def test_a_refusal_is_json_also_where_the_answer_is_text(world: World) -> None:
    responses = world.app.openapi()["paths"]["/metrics"]["get"]["responses"]
    assert list(responses["503"]["content"]) == ["application/json"]

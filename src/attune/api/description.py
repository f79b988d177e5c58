"""What the description of the API says about refusals and areas."""

from typing import Any, Final

from attune.api.answers import ErrorAnswer

_ERROR_CONTENT: Final = {
    "application/json": {"schema": {"$ref": f"#/components/schemas/{ErrorAnswer.__name__}"}}
}
_MEANINGS: Final = {
    400: "The request cannot be read, or asks for what cannot be had.",
    401: "No token, or one that is not valid.",
    403: "The permission for this is missing.",
    404: "There is no such thing, or none that you may see.",
    409: "It exists already, or its state rules this out.",
    413: "The body is too large.",
    415: "The body is in a format that is not read here.",
    422: "Fields break a rule; `details` names each.",
    429: "A limit was reached; see Retry-After.",
    501: "Not configured here.",
    503: "A server that is needed is away; try again.",
}

TAGS: Final = [
    {"name": "packs", "description": "Folders of automation: installed, made by hand, configured."},
    {"name": "actions", "description": "What can be run, and with which parameters."},
    {"name": "triggers", "description": "What can happen."},
    {"name": "webhooks", "description": "Addresses that make a trigger's events."},
    {
        "name": "rules",
        "description": "What is run when something happens, and under which conditions.",
    },
    {"name": "policies", "description": "How many run at once, how often, when, and for whom."},
    {"name": "queues", "description": "Who waits for an action; paused, resumed, cleared."},
    {"name": "admin", "description": "Executions of everybody, all queues, runtime settings."},
    {"name": "events", "description": "What happened, and which rules were considered for it."},
    {"name": "enforcements", "description": "Rules that answered events, and with what."},
    {"name": "executions", "description": "Runs of actions: asked for, followed, cancelled."},
    {"name": "workers", "description": "Who runs them."},
    {"name": "runtimes", "description": "How actions are run."},
    {"name": "auth", "description": "Logging in, and one's own account."},
    {"name": "health", "description": "Whether this process can do its work."},
]


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route that needs a token: these, and those that every such route can give."""
    return open_refusals(401, 422, 503, *statuses)


def open_refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """These alone. They refer to their shape by name: a model for each would make the routes twice as slow to build."""
    return {
        status: {"description": _MEANINGS[status], "content": _ERROR_CONTENT}
        for status in sorted(set(statuses))
    }


def with_error_shape(schema: dict[str, Any]) -> dict[str, Any]:
    """The description with the shape to which all refusals refer."""
    schemas = schema.setdefault("components", {}).setdefault("schemas", {})
    schemas.setdefault(ErrorAnswer.__name__, ErrorAnswer.model_json_schema(mode="serialization"))
    return schema

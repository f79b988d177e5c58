"""Parameters are judged by either form of schema; every bad one is named, and no value is ever repeated."""

import socket
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attune.catalog.schemas import compile_schema, schema_fault
from attune.kernel.errors import InvalidInput

FLAT: dict[str, Any] = {
    "host": {"type": "string", "required": True},
    "port": {"type": "integer", "default": 22, "minimum": 1, "maximum": 65535},
    "mode": {"type": "string", "enum": ["fast", "slow"], "default": "fast"},
    "password": {"type": "string", "secret": True},
    "tags": {"type": "array", "items": {"type": "string"}},
    "retry": {
        "type": "object",
        "properties": {"count": {"type": "integer", "required": True}, "delay": {"default": 1}},
    },
    "anything": {"description": "of any type", "position": 3},
}
JSON_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "host": {"type": "string"},
        "port": {"type": "integer", "default": 22, "minimum": 1, "maximum": 65535},
        "password": {"type": "string", "secret": True},
    },
    "required": ["host"],
}


def problems(schema: dict[str, Any], given: dict[str, Any], **options: Any) -> Any:
    with pytest.raises(InvalidInput) as refusal:
        compile_schema(schema).check(given, **options)
    return refusal.value.fields["problems"]


@pytest.mark.parametrize("schema", [FLAT, JSON_SCHEMA], ids=["flat", "json schema"])
def test_both_forms_judge_alike(schema: dict[str, Any]) -> None:
    filled = compile_schema(schema).check({"host": "a", "more": [1]})
    assert {name: filled[name] for name in ("host", "port", "more")} == {
        "host": "a",
        "port": 22,
        "more": [1],
    }
    assert problems(schema, {}) == {"host": "is required"}
    assert problems(schema, {"host": 5, "port": 0}) == {
        "host": "must be a string",
        "port": "must be at least 1",
    }
    assert compile_schema(schema).secret_names == {"password"}


def test_every_bad_parameter_is_named_with_its_place() -> None:
    given = {"host": "a", "port": 70_000, "mode": "odd", "tags": ["a", 1], "retry": {"count": "x"}}
    assert problems(FLAT, given, field="action_params") == {
        "action_params.port": "must be at most 65535",
        "action_params.mode": "must be one of fast, slow",
        "action_params.tags[1]": "must be a string",
        "action_params.retry.count": "must be an integer",
    }


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("string", ["", "x"], [1, True, [], {}]),
        ("number", [0, 1.5, -2], ["1", True]),
        ("integer", [0, 2.0], [1.5, "1", True]),
        ("boolean", [True, False], [0, "true"]),
        ("object", [{}, {"a": 1}], [[], "x"]),
        ("array", [[], [1]], [{}, "x"]),
    ],
)
def test_types_are_taken_at_their_word(kind: str, good: list[Any], bad: list[Any]) -> None:
    schema = compile_schema({"p": {"type": kind}})
    for value in good:
        assert schema.check({"p": value}) == {"p": value}
    for value in bad:
        with pytest.raises(InvalidInput, match="p: must be an? "):
            schema.check({"p": value})


def test_f35_zero_false_and_empty_are_given_values() -> None:
    schema = compile_schema(
        {
            "n": {"type": "integer", "default": 5},
            "b": {"type": "boolean", "default": True},
            "s": {"default": "x"},
        }
    )
    assert schema.check({"n": 0, "b": False, "s": ""}) == {"n": 0, "b": False, "s": ""}


def test_null_counts_as_not_given_unless_the_type_has_it() -> None:
    schema = compile_schema(
        {
            "a": {"type": "string", "default": "x"},
            "b": {"type": ["string", "null"]},
            "c": {},
            "d": {"enum": [1, None]},
            "e": {"type": "string", "enum": ["u"]},
        }
    )
    given: dict[str, Any] = {"a": None, "b": None, "c": None, "d": None, "e": None, "z": None}
    assert schema.check(given) == {"a": "x", "b": None, "c": None, "d": None, "z": None}
    assert problems(FLAT, {"host": None}) == {"host": "is required"}


def test_defaults_are_filled_in_inside_objects_and_never_shared() -> None:
    schema = compile_schema({"o": {"type": "object", "properties": {"l": {"default": []}}}})
    first = schema.check({"o": {}})
    first["o"]["l"].append(1)
    assert schema.check({"o": {}}) == {"o": {"l": []}}
    assert schema.check({}) == {}


def test_a_template_passes_for_any_type_when_asked() -> None:
    templates = {
        "host": "{{ event.h }}",
        "port": "{{ event.p }}",
        "tags": ["{{ x }}"],
        "retry": "{{ r }}",
    }
    filled = compile_schema(FLAT).check({**templates, "mode": "{{ m }}"}, templates=True)
    assert filled["port"] == "{{ event.p }}"
    assert problems(FLAT, {"port": "{{ x }}"}, templates=True) == {"host": "is required"}
    assert problems(FLAT, {"host": "a", "port": "{{ x }}"}) == {"port": "must be an integer"}
    assert problems(FLAT, {"host": "a", "tags": {"a": "{{ x }}"}}, templates=True) == {
        "tags": "must be an array"
    }
    choice = {
        "type": "object",
        "properties": {"x": {"anyOf": [{"required": ["a"]}, {"type": "array"}]}},
    }
    assert compile_schema(choice).check({"x": {"b": "{{ y }}"}}, templates=True)


def test_f41_no_secret_is_shown_or_told() -> None:
    schema = compile_schema(
        {
            "token": {"type": "string", "secret": True, "pattern": "^x+$"},
            "users": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"pin": {"type": "integer", "secret": True}},
                },
            },
        }
    )
    given: dict[str, Any] = {"token": "a{{b", "users": [{"pin": 1234, "n": "x"}], "other": "y"}
    assert schema.redact(given) == {
        "token": "[redacted]",
        "users": [{"pin": "[redacted]", "n": "x"}],
        "other": "y",
    }
    with pytest.raises(InvalidInput) as refusal:
        schema.check({"token": "hunter2", "users": [{"pin": "hunter3"}]})
    assert "hunter" not in f"{refusal.value.message} {refusal.value.fields}"


BAD: dict[str, tuple[Any, str]] = {
    "word": ({"a": "string"}, "s.a: a parameter is described by an object, such as {type: string}"),
    "list": ([1], "s: a schema is an object, of parameters or in JSON Schema"),
    "type": ({"a": {"type": "strng"}}, "s.a.type: unknown type 'strng'; did you mean 'string'?"),
    "type inside": ({"a": {"type": "array", "items": {"type": "x"}}}, "s.a.items.type: unknown type 'x'; known are"),
    "json schema type": (
        {"type": "object", "properties": {"a": {"type": "x"}}},
        "s.properties.a.type: unknown type; known are string",
    ),
    "required": ({"a": {"required": "yes"}}, "s.a.required: must be true or false"),
    "secret": ({"a": {"secret": 1}}, "s.a.secret: must be true or false"),
    "pattern": ({"a": {"pattern": "("}}, "s.a.pattern: "),
    "enum": ({"a": {"enum": "x"}}, "s.a.enum: must be an array"),
    "minimum": ({"a": {"minimum": "x"}}, "s.a.minimum: must be a number"),
    "default": ({"a": {"type": "integer", "default": "x"}}, "s.a.default: must be an integer"),
    "local ref": ({"$ref": "#/nowhere"}, "s: a $ref must stay inside the schema"),
    "dialect": ({"$schema": "http://example.org/other"}, "s: a $ref must stay inside the schema"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_schema_is_refused_with_its_place(name: str) -> None:
    schema, text = BAD[name]
    with pytest.raises(InvalidInput) as refusal:
        compile_schema(schema, "s")
    assert refusal.value.message.startswith(text)
    assert schema_fault(schema) is not None


def test_a_parameter_may_be_called_like_a_keyword() -> None:
    schema = compile_schema(
        {
            "type": {"type": "string"},
            "properties": {"type": "object"},
            "required": {"type": "boolean"},
        }
    )
    assert schema.check({"type": "x", "properties": {}, "required": True})
    assert problems({"properties": {"type": "object"}}, {"properties": 1}) == {
        "properties": "must be an object"
    }


@pytest.mark.parametrize("scheme", ["http", "https", "file"])
def test_nothing_is_ever_fetched(scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        url = f"{scheme}://127.0.0.1:{server.getsockname()[1]}/etc/passwd"
        for place in (
            {"$ref": url},
            {"type": "object", "properties": {"a": {"$ref": url}}},
            {"$schema": url},
        ):
            with pytest.raises(InvalidInput, match=r"a \$ref must stay inside the schema"):
                compile_schema(place)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_f36_a_slow_pattern_ends_soon() -> None:
    began = time.monotonic()
    for pattern in ("^(a+)+$", "^(?=(a|a)+$)b", "^(a|a)*(?!x)$"):
        with pytest.raises(InvalidInput):
            compile_schema({"p": {"pattern": pattern}}).check({"p": "a" * 5000 + "!"})
    assert time.monotonic() - began < 2


def test_the_same_content_is_compiled_once() -> None:
    assert compile_schema({"a": {}, "b": {}}) is compile_schema({"b": {}, "a": {}})
    assert compile_schema(None).check({"x": 1}) == {"x": 1}


json_data = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from(["string", "a", "{{ x }}", "#"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "properties",
                    "required",
                    "default",
                    "enum",
                    "items",
                    "a",
                    "$ref",
                    "secret",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(
    json_data.filter(lambda value: isinstance(value, dict)),
    st.dictionaries(st.sampled_from("ab"), json_data),
)
def test_any_schema_is_compiled_or_refused(
    schema: dict[str, Any], parameters: dict[str, Any]
) -> None:
    try:
        compiled = compile_schema(schema)
        compiled.redact(parameters)
        compiled.check(parameters, templates=True)
    except InvalidInput as refusal:
        assert refusal.message

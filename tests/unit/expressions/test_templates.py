"""Templates keep types, name what is missing, and say where they are wrong."""

from typing import Any

import pytest

from attune.expressions.errors import ExpressionError
from attune.expressions.functions import BUILTIN
from attune.expressions.templates import Rendered, compile_template, holds_template

SCOPE: dict[str, Any] = {
    "event": {
        "id": 7,
        "trigger": "core.webhook",
        "payload": {
            "text": "disk full",
            "number": 5,
            "ratio": 1.0,
            "yes": True,
            "nothing": None,
            "list": [1, "a"],
            "object": {"ä": [None]},
        },
    }
}


def rendered(document: object) -> object:
    found = compile_template(document).render(SCOPE)
    assert found.missing == ()
    return found.value


@pytest.mark.parametrize("name", ["text", "number", "ratio", "yes", "nothing", "list", "object"])
def test_f37_a_string_that_is_one_template_keeps_the_type(name: str) -> None:
    expected = SCOPE["event"]["payload"][name]
    for source in (f"{{{{ event.payload.{name} }}}}", f"{{{{event.payload.{name}}}}}"):
        found = rendered(source)
        assert found == expected
        assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("text", "disk full"),
        ("number", "5"),
        ("ratio", "1.0"),
        ("yes", "true"),
        ("nothing", ""),
        ("list", '[1,"a"]'),
        ("object", '{"ä":[null]}'),
    ],
)
def test_f37_inside_a_longer_string_a_value_becomes_text(name: str, written: str) -> None:
    assert rendered(f"<{{{{ event.payload.{name} }}}}>") == f"<{written}>"
    assert rendered(f" {{{{ event.payload.{name} }}}}") == f" {written}"


def test_a_document_is_rendered_at_every_depth_but_not_in_its_keys() -> None:
    document = {
        "{{ event.id }}": ["{{ event.id }}", {"deep": "{{ event.payload.list }}"}, 1, None, True],
        "plain": "{ not } a {% template %}",
        "empty": "",
    }
    assert rendered(document) == {
        "{{ event.id }}": [7, {"deep": [1, "a"]}, 1, None, True],
        "plain": "{ not } a {% template %}",
        "empty": "",
    }


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ '}}' }}", "}}"),
        ("{{ '{{' }} x {{ \"}}\" }}", "{{ x }}"),
        (r"{{ 'it\'s }}' }}", "it's }}"),
        ("{{ event.id }}{{ event.id }}", "77"),
        ("a{{ 1 }}b{{ 2 }}c", "a1b2c"),
        ("{{\n  event.id\n  + 1\n}}", 8),
        ("{{ event.id > 3 and 'many' or 'few' }}", "many"),
        ("it's {{ event.id }} o'clock", "it's 7 o'clock"),
        ("}} {{ 1 }}", "}} 1"),
        ("{{ [event.id, 'a'] }}", [7, "a"]),
        ("{{ event.payload.gone or 'none' }}", "none"),
    ],
)
def test_what_stands_between_the_braces_is_an_expression(source: str, expected: object) -> None:
    assert rendered(source) == expected


def test_f37_a_missing_name_gives_null_and_is_listed_once_with_its_path() -> None:
    template = compile_template(
        {
            "whole": "{{ event.payload.gone }}",
            "part": "[{{ event.payload.gone }}|{{ event.payload.object.x }}]",
            "used": "{{ event.payload.gone + 1 }}",
            "asked": "{{ event.payload.gone == 1 }}",
            "null": "{{ event.payload.nothing }}",
            "elsewhere": "{{ pack.config.url }}",
        }
    )
    found = template.render(SCOPE)
    assert found.value == {
        "whole": None,
        "part": "[|]",
        "used": None,
        "asked": None,
        "null": None,
        "elsewhere": None,
    }
    assert found.missing == ("event.payload.gone", "event.payload.object.x", "pack.config.url")


def test_strict_refuses_what_is_missing_and_names_all_of_it() -> None:
    template = compile_template(["{{ event.payload.a }}", "-{{ event.payload.b }}"])
    with pytest.raises(ExpressionError, match=r"missing: event\.payload\.a, event\.payload\.b$"):
        template.render(SCOPE, strict=True)
    assert compile_template("{{ event.payload.nothing }}").render(SCOPE, strict=True) == Rendered(
        None
    )
    assert compile_template("{{ event.payload.a or 1 }}").render(SCOPE, strict=True) == Rendered(1)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{{ 1 + }}", "action_params, column 8: expected a value, found the end"),
        ({"a": ["x", "id {{ x | upper }}"]}, "action_params.a[1], column 9: | cannot stand here"),
        ({"a": {"b": "{{ event.id"}}, "action_params.a.b, column 1: {{ is not closed"),
        ("text {{ it's }}", "action_params, column 11: the string is not closed"),
        ("{{ }}", "action_params, column 4: expected a value"),
        ("{{{ a }}}", "action_params, column 3: { cannot stand here"),
        ("{{ .Name }}", "action_params, column 4: expected a value, found ."),
        ("{{ lookup('x') }}", "action_params, column 4: there is no function lookup()"),
    ],
)
def test_a_template_that_cannot_be_parsed_is_refused_at_its_place(
    document: object, message: str
) -> None:
    with pytest.raises(ExpressionError) as refused:
        compile_template(document, "action_params")
    assert refused.value.message.startswith(message)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{{ 1 / 0 }}", "input.x, column 4: division by zero"),
        ("{{ 'a' < event.id }}", "input.x, column 4: < does not take a string and a number"),
        ("a {{ int('b') }}", "input.x, column 6: int(): the string is no number"),
    ],
)
def test_an_operation_without_a_result_fails_the_rendering_at_its_place(
    source: str, message: str
) -> None:
    template = compile_template({"x": source}, "input")
    with pytest.raises(ExpressionError) as failed:
        template.render(SCOPE)
    assert failed.value.message == message


def test_a_template_knows_the_names_that_it_reads() -> None:
    template = compile_template({"a": "{{ keystore.db.password }}", "b": ["{{ event.id + item }}"]})
    assert template.names == {"keystore", "event", "item"}
    assert template.paths == {("keystore", "db", "password"), ("event", "id"), ("item",)}
    assert compile_template({"a": 1}).names == frozenset()


def test_the_caller_s_functions_work_in_templates() -> None:
    table = BUILTIN.extended({"result": lambda scope: scope["outcome"]})
    template = compile_template({"id": "{{ result().id }}"}, functions=table)
    assert template.render({"outcome": {"id": 3}}).value == {"id": 3}
    assert template.render({"outcome": {}}).missing == ("result().id",)


def test_rendering_twice_gives_documents_of_their_own() -> None:
    template = compile_template({"a": [1, {"b": "{{ event.id }}"}]})
    first, second = template.render(SCOPE).value, template.render(SCOPE).value
    assert first == second
    assert isinstance(first, dict)
    first["a"].append(2)
    assert template.render(SCOPE).value == second


def test_a_schema_can_tell_a_template_from_text() -> None:
    assert holds_template("{{ event.id }}")
    assert holds_template("id {{ event.id }}")
    assert not holds_template("{ event.id }")
    assert not holds_template(5)

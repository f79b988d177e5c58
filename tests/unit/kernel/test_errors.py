"""The tree of errors: stable codes, fields that survive, and one answer to "does trying again help"."""

import pickle

from attune.kernel import errors
from attune.kernel.errors import AttuneError
from attune.kernel.urls import masked


def every_error() -> list[type[AttuneError]]:
    kinds = [value for value in vars(errors).values() if isinstance(value, type)]
    return [kind for kind in kinds if issubclass(kind, AttuneError)]


def test_every_error_has_a_code_of_its_own() -> None:
    codes = [kind.code for kind in every_error()]
    assert len(codes) == len(set(codes))


def test_only_what_may_pass_by_itself_is_retriable() -> None:
    retriable = {kind.code for kind in every_error() if kind.retriable}
    assert retriable == {
        "unavailable",
        "database_unavailable",
        "bus_unavailable",
        "queue_unavailable",
        "queue_lost",
        "contention",
        "outdated",
    }


def test_an_error_crosses_a_process_whole() -> None:
    error = errors.NotFound("no such rule", ref="a.b")
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (type(copy), copy.message, copy.fields) == (
        errors.NotFound,
        "no such rule",
        {"ref": "a.b"},
    )


def test_a_url_is_shown_without_its_password() -> None:
    assert masked("amqp://guest:s:e@host:5672/v") == "amqp://guest:***@host:5672/v"
    assert masked("postgresql://host/db") == "postgresql://host/db"
    assert masked("postgresql://u:p/w@d@host/db is away") == "postgresql://u:***@host/db is away"

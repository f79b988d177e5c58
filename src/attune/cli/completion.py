"""Completing refs while they are typed: quickly, and silently where no server answers."""

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

import typer

from attune.cli.choices import choices_of
from attune.client.client import Client
from attune.client.session import Patience
from attune.kernel.errors import AttuneError

_IMPATIENT: Final = Patience(seconds=1.0, delays=())
_MOST: Final = 500

Completer = Callable[[typer.Context, str], list[str]]


def _completer(refs: Callable[[Client], Iterable[str]]) -> Completer:
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        choices = choices_of(ctx)
        try:
            client = choices.connect(choices) if choices.connect else _client(ctx)
            with client:
                return [ref for ref in islice(refs(client), _MOST) if ref.startswith(incomplete)]
        except AttuneError:
            return []

    return complete


def _client(context: typer.Context) -> Client:
    choices = choices_of(context)
    url = context.params.get("url") or choices.url
    folder = context.params.get("data_dir") or choices.data_dir
    return Client.from_environment(os.environ, url=url, data_dir=folder, patience=_IMPATIENT)


def _actions(client: Client) -> Iterator[str]:
    return (each.ref for each in client.actions.iterate())


def _packs(client: Client) -> Iterator[str]:
    return (each.ref for each in client.packs.iterate())


def _rules(client: Client) -> Iterator[str]:
    return (each.ref for each in client.rules.iterate())


def _triggers(client: Client) -> Iterator[str]:
    return (each.ref for each in client.triggers.iterate())


def _workers(client: Client) -> Iterator[str]:
    return (each.name for each in client.workers.iterate())


action_refs = _completer(_actions)
pack_refs = _completer(_packs)
rule_refs = _completer(_rules)
trigger_refs = _completer(_triggers)
worker_names = _completer(_workers)

"""Packs written in tests as text by path."""

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

from attune.catalog.sources.model import PackSource
from attune.catalog.sources.parsing import is_definition, parse_pack

HEAD = "ref: shop\nlabel: Shop\nversion: 1.2.3\n"
TRIGGER = "ref: shop.ordered\nlabel: Ordered\nparameters:\n  region: {type: string}\n"
ACTION = "ref: shop.ship\nlabel: Ship\nrunner_type: python\nentry_point: ship.py\n"
RULE = "ref: on_order\nlabel: On order\ntrigger_ref: ordered\naction_ref: ship\n"

SHOP: Mapping[str, str] = {
    "pack.yaml": HEAD,
    "triggers/ordered.yaml": TRIGGER,
    "actions/ship.yaml": ACTION,
    "actions/ship.py": "print('shipped')\n",
    "rules/on_order.yaml": RULE,
}


def parsed(files: Mapping[str, str]) -> PackSource:
    texts = {path: text.encode() for path, text in files.items() if is_definition(path)}
    return parse_pack(texts, frozenset(files))


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return folder


def archive(files: Mapping[str, str], top: str = "") -> io.BytesIO:
    found = io.BytesIO()
    with tarfile.open(fileobj=found, mode="w:gz") as tar:
        for path, text in files.items():
            member = tarfile.TarInfo(top + path)
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    found.seek(0)
    return found

"""A pack from the text of its files: pure, so that a test needs no disk. Every fault is found in one pass."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec

from attune.catalog.sources.actions import read_action
from attune.catalog.sources.documents import Unreadable, read_document
from attune.catalog.sources.faults import Findings
from attune.catalog.sources.fields import Fields
from attune.catalog.sources.head import read_head
from attune.catalog.sources.model import PackSource, RuntimeSource, Source
from attune.catalog.sources.permission_sets import read_permission_set
from attune.catalog.sources.policies import read_policy
from attune.catalog.sources.rules import read_rule
from attune.catalog.sources.runtimes import read_runtime
from attune.catalog.sources.triggers import read_trigger

T = TypeVar("T", bound=Source)

HEAD: Final = "pack.yaml"
FOLDERS: Final = ("permission_sets", "runtimes", "triggers", "actions", "policies", "rules")
LATER: Final = ("sensors", "queues", "workflows")
_ENDINGS: Final = (".yaml", ".yml")


def is_definition(path: str) -> bool:
    """Whether a file says something about the pack, rather than being a part of it."""
    folder, _, name = path.rpartition("/")
    return path == HEAD or (folder in FOLDERS and _is_yaml(name))


def parse_pack(texts: Mapping[str, bytes], paths: Collection[str]) -> PackSource:
    """`texts` are the definition files, `paths` all files. Raises `InvalidInput` with every fault."""
    findings = Findings()
    head_fields = _fields(HEAD, texts.get(HEAD), findings)
    if head_fields is None:
        findings.refuse_faults()
        raise AssertionError("a pack without a head has a fault")
    head = read_head(head_fields)
    pack = _with_content(head, _Folders(texts, findings), paths)
    for path in sorted(paths):
        if _is_yaml(path) and (kind := _later_kind(path)):
            findings.warn(path, "", f"{kind} are not yet supported; the file is kept")
    findings.refuse_faults()
    return msgspec.structs.replace(pack, warnings=findings.warnings)


def _with_content(head: PackSource, folders: "_Folders", paths: Collection[str]) -> PackSource:
    ref = head.ref
    runtimes = folders.read("runtimes", lambda fields: read_runtime(fields, ref))
    runners = _runners(runtimes)
    return msgspec.structs.replace(
        head,
        runtimes=runtimes,
        permission_sets=folders.read("permission_sets", lambda f: read_permission_set(f, ref)),
        triggers=folders.read("triggers", lambda fields: read_trigger(fields, ref)),
        actions=folders.read("actions", lambda fields: read_action(fields, ref, runners, paths)),
        policies=folders.read("policies", lambda fields: read_policy(fields, ref)),
        rules=folders.read("rules", lambda fields: read_rule(fields, ref)),
    )


class _Folders:
    """Reads the files of one folder after the other, in order of their names."""

    def __init__(self, texts: Mapping[str, bytes], findings: Findings) -> None:
        self._texts = texts
        self._findings = findings

    def read(self, folder: str, read: Callable[[Fields], T]) -> tuple[T, ...]:
        found: dict[str, T] = {}
        for fields in self._documents(folder):
            source = read(fields)
            if source.ref and source.ref in found:
                fields.fault("ref", f"'{source.ref}' is also in {found[source.ref].file}")
            found[source.ref] = source
        return tuple(found.values())

    def _documents(self, folder: str) -> Iterator[Fields]:
        for path in sorted(self._texts):
            if path.rpartition("/")[0] == folder:
                fields = _fields(path, self._texts[path], self._findings)
                if fields is not None:
                    yield fields


def _fields(path: str, content: bytes | None, findings: Findings) -> Fields | None:
    if content is None:
        findings.fault(path, "", "the pack has no such file")
        return None
    try:
        document: Any = read_document(content)
    except Unreadable as error:
        findings.fault(path, "", str(error))
        return None
    if not isinstance(document, dict):
        findings.fault(path, "", "must be a mapping of fields")
        return None
    return Fields(path, document, findings)


def _runners(runtimes: tuple[RuntimeSource, ...]) -> dict[str, str]:
    """The pack's own runtimes by their names and aliases; those of others are named by their full refs."""
    found = {}
    for runtime in runtimes:
        for word in (runtime.name.lower(), *runtime.aliases):
            found[word] = runtime.ref
    return found


def _later_kind(path: str) -> str | None:
    if path.startswith("actions/workflows/"):
        return "workflows"
    folder = path.partition("/")[0]
    return folder if folder in LATER else None


def _is_yaml(path: str) -> bool:
    """Hidden files are what editors and other systems leave behind."""
    name = path.rpartition("/")[2]
    return name.endswith(_ENDINGS) and not name.startswith(".")

"""pack.yaml: what the pack is."""

import re
from typing import Final

from attune.catalog.refs import label_from, pack_ref_fault, shown
from attune.catalog.sources.fields import Fields
from attune.catalog.sources.model import PackSource

_NUMBER: Final = r"(0|[1-9]\d*)"
_PART: Final = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_SEMVER = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PART}(\.{_PART})*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)


def read_head(fields: Fields) -> PackSource:
    """The pack without its content, which is added when all of it has been read."""
    ref = fields.required_text("ref")
    if ref and (rule := pack_ref_fault(ref)):
        fields.fault("ref", rule)
    head = PackSource(
        ref=ref,
        label=fields.text("label", "name") or label_from(ref),
        description=fields.optional_text("description"),
        version=_version(fields),
        author=fields.optional_text("author"),
        email=fields.optional_text("email"),
        enabled=fields.boolean("enabled", default=True),
        is_standard=fields.boolean("is_standard", "system", default=False),
        conf_schema=fields.schema("conf_schema") or {},
        config=fields.mapping("config"),
        meta=fields.mapping("meta"),
        tags=fields.texts("tags"),
        runtime_deps=fields.texts("runtime_deps"),
        dependencies=fields.texts("dependencies"),
        testing=fields.raw("testing"),
    )
    fields.finish()
    return head


def _version(fields: Fields) -> str:
    version = fields.required_text("version")
    if version and (len(version) > 255 or not _SEMVER.fullmatch(version)):
        fields.fault("version", f"{shown(version)} is not a semantic version such as 1.0.0")
    return version

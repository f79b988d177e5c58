"""runtimes/*.yaml"""

from attune.catalog.refs import label_from
from attune.catalog.sources.fields import Fields
from attune.catalog.sources.model import RuntimeSource


def read_runtime(fields: Fields, pack_ref: str) -> RuntimeSource:
    ref = fields.member_ref(pack_ref, fields.required_text("ref"))
    found = RuntimeSource(
        file=fields.file,
        ref=ref,
        name=fields.text("name", "label") or label_from(ref),
        aliases=[alias.lower() for alias in fields.texts("aliases")],
        description=fields.optional_text("description"),
        distributions=fields.mapping("distributions"),
        installation=fields.raw("installation"),
        execution_config=fields.mapping("execution_config"),
    )
    fields.finish()
    return found

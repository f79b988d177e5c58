"""triggers/*.yaml"""

from attune.catalog.refs import label_from
from attune.catalog.sources.fields import Fields
from attune.catalog.sources.model import TriggerSource


def read_trigger(fields: Fields, pack_ref: str) -> TriggerSource:
    ref = fields.member_ref(pack_ref, fields.required_text("ref"))
    found = TriggerSource(
        file=fields.file,
        ref=ref,
        label=fields.text("label") or label_from(fields.text("name") or ref),
        description=fields.optional_text("description"),
        enabled=fields.boolean("enabled", default=True),
        type=fields.optional_text("type"),
        param_schema=fields.schema("parameters"),
        out_schema=fields.schema("output", "output_schema"),
        tags=fields.texts("tags"),
    )
    fields.finish()
    return found

"""Parameter schemas: what an action or trigger takes, written flat or as JSON Schema."""

from attune.catalog.schemas.parameters import ParameterSchema, compile_schema, schema_fault

__all__ = ["ParameterSchema", "compile_schema", "schema_fault"]

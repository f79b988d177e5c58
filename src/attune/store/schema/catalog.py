"""What users define: packs and what is in them, and who the users are. Columns have the API's field names.

A ref is the key that people use; an id is the key that rows use. A rule keeps the refs of its trigger and
action when their ids go null, so that it can be joined again when they come back. `declared` is what the
pack's file said, beside the column that a user may have changed since (`enabled`, `config`, `grants`).
"""

import sqlalchemy as sa

from attune.store.schema.base import Id, JsonText, Moment, metadata, table

identity = table(
    "identity",
    sa.Column("login", sa.Text, nullable=False, unique=True),
    sa.Column("display_name", sa.Text),
    sa.Column("password_hash", sa.Text),
    sa.Column("attributes", JsonText, nullable=False),
    sa.Column("frozen", sa.Boolean, nullable=False),
)

pack = table(
    "pack",
    sa.Column("ref", sa.Text, nullable=False, unique=True),
    sa.Column("label", sa.Text, nullable=False),
    sa.Column("description", sa.Text),
    sa.Column("version", sa.Text, nullable=False),
    sa.Column("author", sa.Text),
    sa.Column("email", sa.Text),
    sa.Column("enabled", sa.Boolean, nullable=False),
    sa.Column("is_standard", sa.Boolean, nullable=False),
    sa.Column("conf_schema", JsonText, nullable=False),
    sa.Column("config", JsonText, nullable=False),
    sa.Column("meta", JsonText, nullable=False),
    sa.Column("tags", JsonText, nullable=False),
    sa.Column("runtime_deps", JsonText, nullable=False),
    sa.Column("dependencies", JsonText, nullable=False),
    sa.Column("testing", JsonText),
    # Where its files are, below the root of all packs; null for a pack that was made without files.
    sa.Column("pack_dir", sa.Text),
    sa.Column("owner_identity", Id, sa.ForeignKey("identity.id", ondelete="SET NULL")),
    sa.Column("declared", JsonText),
)

permission_set = table(
    "permission_set",
    sa.Column("ref", sa.Text, nullable=False, unique=True),
    sa.Column("pack", Id, sa.ForeignKey("pack.id", ondelete="CASCADE")),
    sa.Column("pack_ref", sa.Text),
    sa.Column("label", sa.Text),
    sa.Column("description", sa.Text),
    sa.Column("grants", JsonText, nullable=False),
    sa.Column("is_adhoc", sa.Boolean, nullable=False),
    sa.Column("declared", JsonText),
)

runtime = table(
    "runtime",
    sa.Column("ref", sa.Text, nullable=False, unique=True),
    sa.Column("pack", Id, sa.ForeignKey("pack.id", ondelete="CASCADE")),
    sa.Column("pack_ref", sa.Text),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("aliases", JsonText, nullable=False),
    sa.Column("description", sa.Text),
    sa.Column("distributions", JsonText, nullable=False),
    sa.Column("installation", JsonText),
    sa.Column("execution_config", JsonText, nullable=False),
    sa.Column("is_adhoc", sa.Boolean, nullable=False),
)

trigger = table(
    "trigger",
    sa.Column("ref", sa.Text, nullable=False, unique=True),
    sa.Column("pack", Id, sa.ForeignKey("pack.id", ondelete="CASCADE")),
    sa.Column("pack_ref", sa.Text),
    sa.Column("label", sa.Text, nullable=False),
    sa.Column("description", sa.Text),
    sa.Column("enabled", sa.Boolean, nullable=False),
    sa.Column("type", sa.Text),
    sa.Column("param_schema", JsonText),
    sa.Column("out_schema", JsonText),
    sa.Column("tags", JsonText, nullable=False),
    sa.Column("webhook_enabled", sa.Boolean, nullable=False),
    sa.Column("webhook_key", sa.Text, unique=True),
    sa.Column("webhook_config", JsonText),
    sa.Column("is_adhoc", sa.Boolean, nullable=False),
    sa.Column("declared", JsonText),
)

action = table(
    "action",
    sa.Column("ref", sa.Text, nullable=False, unique=True),
    sa.Column("pack", Id, sa.ForeignKey("pack.id", ondelete="CASCADE"), nullable=False),
    sa.Column("pack_ref", sa.Text, nullable=False),
    sa.Column("label", sa.Text, nullable=False),
    sa.Column("description", sa.Text),
    sa.Column("enabled", sa.Boolean, nullable=False),
    sa.Column("entrypoint", sa.Text, nullable=False),
    sa.Column("runtime", Id, sa.ForeignKey("runtime.id", ondelete="SET NULL")),
    sa.Column("runtime_ref", sa.Text),
    sa.Column("runtime_version_constraint", sa.Text),
    sa.Column("required_worker_runtimes", JsonText, nullable=False),
    sa.Column("param_schema", JsonText),
    sa.Column("out_schema", JsonText),
    sa.Column("parameter_delivery", sa.Text, nullable=False),
    sa.Column("parameter_format", sa.Text, nullable=False),
    sa.Column("output_format", sa.Text, nullable=False),
    sa.Column("timeout_seconds", sa.Integer),
    sa.Column("max_retries", sa.Integer, nullable=False),
    sa.Column("on_worker_lost", sa.Text, nullable=False),
    # Delays between attempts, and after which errors there is another; null for the usual.
    sa.Column("retry", JsonText),
    # What one process of it may use, null for no bound of its own.
    sa.Column("limits", JsonText),
    # Whether executions may share one process, one after the other.
    sa.Column("reuse", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("worker_selector", JsonText, nullable=False),
    sa.Column("worker_tolerations", JsonText, nullable=False),
    sa.Column("worker_affinity", JsonText, nullable=False),
    sa.Column("default_execution_permission_set_refs", JsonText, nullable=False),
    sa.Column("accesses_mcp", sa.Boolean, nullable=False),
    sa.Column("workflow_def", Id),
    sa.Column("tags", JsonText, nullable=False),
    sa.Column("is_adhoc", sa.Boolean, nullable=False),
    sa.Column("declared", JsonText),
)

# What an execution runs, found by the digest of its content: it outlives the action and its pack's updates.
action_definition = table(
    "action_definition",
    sa.Column("digest", sa.Text, nullable=False, unique=True),
    sa.Column("action_ref", sa.Text, nullable=False),
    sa.Column("definition", JsonText, nullable=False),
)

rule = table(
    "rule",
    sa.Column("ref", sa.Text, nullable=False, unique=True),
    sa.Column("pack", Id, sa.ForeignKey("pack.id", ondelete="CASCADE"), nullable=False),
    sa.Column("pack_ref", sa.Text, nullable=False),
    sa.Column("label", sa.Text, nullable=False),
    sa.Column("description", sa.Text),
    sa.Column("enabled", sa.Boolean, nullable=False),
    sa.Column("trigger", Id, sa.ForeignKey("trigger.id", ondelete="SET NULL")),
    sa.Column("trigger_ref", sa.Text, nullable=False),
    sa.Column("trigger_params", JsonText, nullable=False),
    sa.Column("conditions", JsonText, nullable=False),
    sa.Column("action", Id, sa.ForeignKey("action.id", ondelete="SET NULL")),
    sa.Column("action_ref", sa.Text, nullable=False),
    sa.Column("action_params", JsonText, nullable=False),
    sa.Column("strict", sa.Boolean, nullable=False),
    sa.Column("permission_set_refs", JsonText),
    sa.Column("owner_identity", Id, sa.ForeignKey("identity.id", ondelete="SET NULL")),
    sa.Column("is_adhoc", sa.Boolean, nullable=False),
    sa.Column("declared", JsonText),
)
sa.Index(
    "ix_rule_enabled_trigger",
    rule.c.trigger,
    postgresql_where=rule.c.enabled,
    sqlite_where=rule.c.enabled,
)

# How many executions may run, and when. The scope's ref is an action's or a pack's; null for everything.
policy = table(
    "policy",
    sa.Column("ref", sa.Text, nullable=False, unique=True),
    sa.Column("pack", Id, sa.ForeignKey("pack.id", ondelete="CASCADE")),
    sa.Column("pack_ref", sa.Text),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("description", sa.Text),
    sa.Column("enabled", sa.Boolean, nullable=False),
    sa.Column("priority", sa.Integer, nullable=False),
    sa.Column("scope_type", sa.Text, nullable=False),
    sa.Column("scope_ref", sa.Text),
    # Null where there is none, or where it follows the action between floor and ceiling (`limit: auto`).
    sa.Column("concurrency_limit", sa.Integer),
    sa.Column("concurrency_floor", sa.Integer),
    sa.Column("concurrency_ceiling", sa.Integer),
    sa.Column("concurrency_method", sa.Text, nullable=False),
    sa.Column("concurrency_parameters", JsonText, nullable=False),
    sa.Column("rate_limit", JsonText),
    sa.Column("quotas", JsonText, nullable=False),
    sa.Column("windows", JsonText, nullable=False),
    sa.Column("blackouts", JsonText, nullable=False),
    sa.Column("tags", JsonText, nullable=False),
    sa.Column("is_adhoc", sa.Boolean, nullable=False),
    sa.Column("declared", JsonText),
)
sa.Index(None, policy.c.scope_type, policy.c.scope_ref)

# One row. Every change of what users define raises it in the same transaction, so that a step which reads it
# knows whether what its process has compiled still holds.
catalog_version = sa.Table(
    "catalog_version",
    metadata,
    sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False),
)

# What may be changed while everything runs. A name that is not here has its default.
setting = sa.Table(
    "setting",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", JsonText, nullable=False),
    sa.Column("updated", Moment, nullable=False),
    sa.Column("updated_by", Id),
)

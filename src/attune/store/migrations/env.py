"""Run by Alembic: applies the migrations over the connection that `attune.store.migrate` opened."""

from alembic import context

from attune.store.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
    transaction_per_migration=True,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()

"""Runs the migrations over the connection that the health manager hands in."""

from alembic import context

CREATE_ROLE = """
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'gatemesh_reader') THEN
        CREATE ROLE gatemesh_reader NOLOGIN;
    END IF;
EXCEPTION
    WHEN duplicate_object OR unique_violation THEN NULL;
    WHEN insufficient_privilege THEN
        RAISE WARNING 'role gatemesh_reader was not made, this user lacks CREATEROLE: have an '
            'administrator run CREATE ROLE gatemesh_reader NOLOGIN, then migrate again';
END $$"""

# Roles belong to the whole server and grants to one database, so this runs with every migration.
GRANT_VIEWS = """
DO $$
DECLARE
    name text;
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'gatemesh_reader') THEN
        FOR name IN SELECT viewname FROM pg_views
            WHERE schemaname = current_schema() AND viewname ~ '_v[0-9]+$'
        LOOP
            EXECUTE 'GRANT SELECT ON ' || quote_ident(name) || ' TO gatemesh_reader';
        END LOOP;
    END IF;
END $$"""

connection = context.config.attributes["connection"]
context.configure(connection=connection, transaction_per_migration=False)
with context.begin_transaction():
    # Two managers that start at once migrate one after the other.
    connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('gatemesh.migrations'))")
    context.run_migrations()
    connection.exec_driver_sql(CREATE_ROLE)
    connection.exec_driver_sql(GRANT_VIEWS)

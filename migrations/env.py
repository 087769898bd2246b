"""Runs the migrations over the connection that the health manager hands in."""

from alembic import context

READER = "gatemesh_reader"
EVIDENCE = "gatemesh_evidence"
"""May read the text of captures, too."""

CREATE_ROLE = """
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') THEN
        CREATE ROLE {role} NOLOGIN;
    END IF;
EXCEPTION
    WHEN duplicate_object OR unique_violation THEN NULL;
    WHEN insufficient_privilege THEN
        RAISE WARNING 'role {role} was not made, this user lacks CREATEROLE: have an '
            'administrator run CREATE ROLE {role} NOLOGIN, then migrate again';
END $$"""

# Roles belong to the whole server and grants to one database, so this runs with every migration.
GRANT_VIEWS = """
DO $$
DECLARE
    name text;
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') THEN
        FOR name IN SELECT viewname FROM pg_views
            WHERE schemaname = current_schema() AND viewname ~ '{views}'
        LOOP
            EXECUTE 'GRANT SELECT ON ' || quote_ident(name) || ' TO {role}';
        END LOOP;
    END IF;
END $$"""
VIEWS = {EVIDENCE: "_v[0-9]+$", READER: "(?<!_texts)_v[0-9]+$"}

connection = context.config.attributes["connection"]
context.configure(connection=connection, transaction_per_migration=False)
with context.begin_transaction():
    # Two managers that start at once migrate one after the other.
    connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('gatemesh.migrations'))")
    context.run_migrations()
    for role, views in VIEWS.items():
        connection.exec_driver_sql(CREATE_ROLE.format(role=role))
        connection.exec_driver_sql(GRANT_VIEWS.format(role=role, views=views))

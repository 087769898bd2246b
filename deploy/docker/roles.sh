#!/bin/bash
# Runs once, in an empty database: the owner of the schema, who is no superuser, and a login that
# may read the views. The migrations grant the views to the role gatemesh_reader.
set -euo pipefail
psql -v ON_ERROR_STOP=1 --no-psqlrc -U "$POSTGRES_USER" -d "$POSTGRES_DB" \
    -v owner="$(cat /run/gatemesh/owner)" -v reader="$(cat /run/gatemesh/reader)" <<'SQL'
CREATE ROLE gatemesh LOGIN PASSWORD :'owner';
CREATE ROLE gatemesh_reader NOLOGIN;
CREATE ROLE reader LOGIN PASSWORD :'reader' IN ROLE gatemesh_reader;
ALTER DATABASE gatemesh OWNER TO gatemesh;
SQL

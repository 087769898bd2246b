#!/bin/sh
# Hands a service its generated secrets as settings, then becomes the service.
# A file in /run/gatemesh is named for the setting that it holds; what the environment sets wins.
set -eu
for file in /run/gatemesh/GATEMESH_*; do
    [ -f "$file" ] || continue
    name=${file##*/}
    printenv "$name" >/dev/null || export "$name=$(cat "$file")"
done
exec "$@"

#!/bin/sh
# Installs what a service needs into the environment of the image, proves that it loads, and writes
# its bill of materials.
# Usage: install-extra SERVICE [REQUIREMENT...]
set -eu
service=$1
shift
# Wheels spell extras with hyphens; pip only warns of an extra that it does not find.
extra=$(echo "$service" | tr _ -)
wheel=$(echo /wheels/gatemesh-*.whl)
pip --python /opt/gatemesh install --no-cache-dir --quiet --disable-pip-version-check \
    --constraint /source/constraints.txt "$wheel[$extra]" "$@"
/opt/gatemesh/bin/python -c "import gatemesh_$service.__main__"
write-sbom /opt/gatemesh

#!/bin/sh
# Writes the bill of materials of an environment into it: sbom.cdx.json, CycloneDX 1.6.
# Usage: write-sbom ENVIRONMENT
set -eu
exec /opt/sbom/bin/cyclonedx-py environment --spec-version 1.6 --output-reproducible \
    --output-file "$1/sbom.cdx.json" "$1/bin/python"

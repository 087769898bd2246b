"""The version of the database's schema that this release is made for."""

SCHEMA_VERSION = "0026"
"""The newest migration; a test holds it to the folder."""

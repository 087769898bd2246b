"""The last routing table on disk, so that a restarted agent serves while the broker is away."""

import logging
from pathlib import Path

from pydantic import ValidationError

from gatemesh_common.messages import RoutingTable

log = logging.getLogger(__name__)


def save_table(path: Path, table: RoutingTable) -> None:
    """Replace the stored table in one step; a full disk is logged, routing goes on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".new")
    try:
        beside.write_text(table.model_dump_json(), encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        log.error("routing_table_not_stored", extra={"error": error.strerror})  # noqa: TRY400


def load_table(path: Path, pool: str) -> RoutingTable | None:
    """Return the stored table of a pool; None when there is none that can be read."""
    try:
        table = RoutingTable.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        log.warning("routing_table_unreadable", extra={"error": type(error).__name__})
        return None
    return table if table.pool == pool else None

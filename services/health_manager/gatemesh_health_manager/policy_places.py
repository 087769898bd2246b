"""Where a fault of the policy file stands: its table, its key, its line."""

import re
from collections import Counter
from collections.abc import Sequence

from pydantic import ValidationError

from gatemesh_common.invalid import Misfit, Place, misfits_of
from gatemesh_health_manager.own_conditions import KINDS


def faults_of(error: ValidationError) -> list[Misfit]:
    """Return each faulty key, and what it must be."""
    return [(_place_of(place), message) for place, message in misfits_of(error)]


def explained(name: str, text: str, faults: Sequence[Misfit]) -> str:
    """Name each faulty key and the line where it stands; not again for pools that inherit it."""
    own = [fault for fault in faults if not _is_inherited(fault, faults)]
    return "\n".join(
        f"{name}{_line_of(text, place)}: {'.'.join(map(str, place))}: {message}"
        for place, message in map(_as_written, own)
    )


def _is_inherited(fault: Misfit, faults: Sequence[Misfit]) -> bool:
    place, message = fault
    return place[:1] == ("pools",) and (("defaults", *place[2:]), message) in faults


def _as_written(fault: Misfit) -> Misfit:
    """Return a fault of a playbook at the place where the file has it."""
    place, message = fault
    return (place[1:] if place[:2] == ("defaults", "playbooks") else place), message


def _place_of(location: Place) -> Place:
    """Return a location without the kind that pydantic names behind the number of a table."""
    return tuple(
        part
        for before, part in zip(("", *location), location, strict=False)
        if not (isinstance(before, int) and part in KINDS)
    )


def _line_of(text: str, location: Place) -> str:
    """Return ` line N` of the key, or nothing when it stands in no line of its own."""
    for depth in range(len(location), 0, -1):
        number = _line_of_key(text, location[: depth - 1], location[depth - 1])
        if number:
            return f" line {number}"
    return ""


def _line_of_key(text: str, table: Place, key: int | str) -> int | None:
    wanted = tuple(map(str, table))
    inside = not wanted
    seen: Counter[tuple[str, ...]] = Counter()
    for number, line in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*(\[{1,2})([^\]]+)\]", line)
        if header:
            words = tuple(word.strip().strip("\"'") for word in header[2].split("."))
            if header[1] == "[[":
                # One of several: it is known by its place among them.
                seen[words] += 1
                words = (*words, str(seen[words] - 1))
            inside = words == wanted
            if words[: len(wanted) + 1] == (*wanted, str(key)):
                return number
        elif inside and re.match(rf"\s*[\"']?{re.escape(str(key))}[\"']?\s*=", line):
            return number
    return None
